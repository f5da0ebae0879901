//! Why a published figure and the measured one differ.
//!
//! Owns: the arithmetic of mixed precision (AMP), checkpointing and 8-bit optimizer states together, in shares of the baseline's
//! peak. Refuses: to explain away: what the arithmetic leaves out is named with its bytes.
//!
//! With f the baseline's share of weights, gradients and optimizer, and r what checkpointing, or that with a chunked loss, leaves of
//! the activations, all else being activations: AMP halves activations and leaves states (4 of weights, 4 of gradients, 8 of optimizer: 16 bytes a
//! parameter); 8-bit states leave 4 + 4 + 2 of those 16.

use super::comparison::{Comparison, Figures, Outcome, Row, Shares};

/// What AMP leaves of activations at best.
const AMP: f64 = 0.5;
/// What 8-bit optimizer states leave of all states: 10 of 16 bytes.
const EIGHT_BIT: f64 = 10.0 / 16.0;
/// How the names of rows with a chunked loss end.
pub const CHUNKED: &str = "+chunked-loss";
/// A claim that is met to so many points of percent holds, and one that is surpassed.
pub const MET: f64 = 1.0;

/// What is predicted for AMP with checkpointing: f + (1 − f)·½·r.
pub fn amp_checkpoint(f: f64, r: f64) -> f64 {
    f + (1.0 - f) * AMP * r
}

/// The same with 8-bit states: ⅝·f + (1 − f)·½·r.
pub fn all(f: f64, r: f64) -> f64 {
    EIGHT_BIT * f + (1.0 - f) * AMP * r
}

/// What is predicted for AMP with 8-bit states: ⅝·f + (1 − f)·½, never below ½.
pub fn amp_eight_bit(f: f64) -> f64 {
    EIGHT_BIT * f + (1.0 - f) * AMP
}

/// The largest f at which AMP with checkpointing comes down to `share`; negative when none does.
pub fn states_for(share: f64, r: f64) -> f64 {
    (share - AMP * r) / (1.0 - AMP * r)
}

/// f and r of a comparison's runs.
pub fn shares(comparison: &Comparison) -> Option<Shares> {
    let baseline = comparison.baseline().filter(|figures| figures.peak_bytes > 0)?;
    let peaks = &baseline.category_peaks;
    let states = (peaks.weights + peaks.gradients + peaks.optimizer) as f64 / baseline.peak_bytes as f64;
    let left = |name: &str| {
        let row = comparison.rows.iter().find(|row| row.name == name)?;
        let figures = row.figures.as_ref().filter(|_| peaks.activations > 0)?;
        Some(figures.category_peaks.activations as f64 / peaks.activations as f64)
    };
    let activations_left_chunked = left(&format!("checkpoint{CHUNKED}"));
    Some(Shares { states, activations_left: left("checkpoint"), activations_left_chunked })
}

/// The sentences for a row of the published comparison.
pub fn explain(row: &Row, shares: Shares, baseline: &Figures) -> Option<String> {
    let claimed = row.claim.as_ref()?.percent?;
    let Some(figures) = row.figures.as_ref().filter(|_| row.outcome == Outcome::Measured) else {
        return Some(format!("Claimed {}; not measured here. {}", percent(claimed), arithmetic(row, claimed, shares)?));
    };
    let measured = figures.percent_of_baseline?;
    let mut text = format!("Claimed {}, measured {}", percent(claimed), percent(measured));
    if measured <= claimed + MET {
        text += ": the claim holds here";
    }
    text += ". ";
    text += &arithmetic(row, claimed, shares)?;
    Some(text + &held(figures, baseline))
}

/// What the arithmetic says for a row.
fn arithmetic(row: &Row, claimed: f64, shares: Shares) -> Option<String> {
    let Shares { states: f, activations_left, activations_left_chunked } = shares;
    let (name, of_what, activations_left) = match row.name.strip_suffix(CHUNKED) {
        None => (row.name.as_str(), "checkpointing leaves", activations_left),
        Some(name) => (name, "checkpointing and the chunked loss leave", activations_left_chunked),
    };
    let states = format!("f = {} (the baseline's weights, gradients and optimizer)", share(f));
    if name == "amp+8bit" {
        return Some(format!(
            "By arithmetic ⅝·f + ½·(1 − f) = {} with {states}, and never below 50 %, whatever f: AMP leaves half of the \
             activations, and 8-bit states 10 of 16 bytes a parameter. {}",
            share(amp_eight_bit(f)),
            if claimed < 50.0 { format!("{} is out of reach. ", percent(claimed)) } else { String::new() },
        ));
    }
    let (formula, predict): (_, fn(f64, f64) -> f64) = match name {
        "amp+checkpoint" => ("f + ½·r·(1 − f)", amp_checkpoint),
        "all" => ("⅝·f + ½·r·(1 − f)", all),
        _ => return None,
    };
    let Some(r) = activations_left else {
        return Some(format!(
            "By arithmetic it is {formula}, {states}; r, what {of_what} of the activations, was not measured. "
        ));
    };
    let mut text = format!(
        "By arithmetic {formula} = {} with {states} and r = {} (what {of_what} of the activations). ",
        share(predict(f, r)),
        share(r)
    );
    if name == "amp+checkpoint" {
        let needed = states_for(claimed / 100.0, r);
        text += &if needed > 0.0 {
            format!("{} needs f ≤ {} at this r. ", percent(claimed), share(needed))
        } else {
            format!("{} is out of reach at this r, whatever f. ", percent(claimed))
        };
    }
    Some(text)
}

/// What the measured peak is made of.
fn held(figures: &Figures, baseline: &Figures) -> String {
    let of = |bytes: u64| share(bytes as f64 / baseline.peak_bytes as f64);
    let held = figures.by_category;
    format!(
        "At its peak, in {}, it holds {} of the baseline's peak as states, {} as activations and {} as workspace and inputs{}.",
        figures.phase.as_deref().unwrap_or("no phase"),
        of(held.weights + held.gradients + held.optimizer),
        of(held.activations),
        of(held.workspace + held.inputs + held.unknown),
        if figures.phase == baseline.phase {
            String::new()
        } else {
            format!("; the baseline's peak is in {}", baseline.phase.as_deref().unwrap_or("no phase"))
        }
    )
}

fn share(share: f64) -> String {
    percent(100.0 * share)
}

fn percent(percent: f64) -> String {
    if percent == percent.round() { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, by_hand: f64) {
        assert!((value - by_hand).abs() < 5e-4, "{value} is not {by_hand}");
    }

    /// By hand: (0.35 − 0.15) / 0.85 = 0.2353, "f ≤ 24 %".
    #[test]
    fn thirty_five_percent_needs_few_states() {
        near(states_for(0.35, 0.3), 0.2353);
        near(amp_checkpoint(0.2353, 0.3), 0.35);
        near(amp_checkpoint(0.24, 0.3), 0.24 + 0.76 * 0.15);
        assert!(states_for(0.35, 0.8) < 0.0, "half of r alone is more");
    }

    /// By hand: 16 · 25,557,032 bytes of 2947 MiB are 13.23 %; then 0.625 · 0.1323 + 0.5 · 0.8677 = 51.65 %.
    #[test]
    fn no_mix_of_states_and_activations_is_below_a_half() {
        let f = 16.0 * 25_557_032.0 / (2947.0 * 1_048_576.0);
        near(f, 0.1323);
        near(amp_eight_bit(f), 0.5165);
        near(amp_eight_bit(0.0), 0.5);
        near(amp_eight_bit(1.0), 0.625);
    }

    /// By hand for ResNet-50 at batch 32 with r = 0.4: 0.625 · 0.1323 + 0.8677 · 0.2 = 25.6 %; with fp32 states 30.6 %.
    #[test]
    fn everything_together_is_a_quarter_of_a_resnet() {
        near(all(0.1323, 0.4), 0.2562);
        near(amp_checkpoint(0.1323, 0.4), 0.3058);
    }
}
