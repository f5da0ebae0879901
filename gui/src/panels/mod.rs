//! What is beside the views: the session's facts, the moment under the cursor, and what was found out.
//!
//! Owns: how a fact is written. Refuses: to be hidden behind a click: the reason of an out-of-memory error is read here.

pub mod findings;
pub mod header;
pub mod moment;
pub mod partial;
pub mod refusal;
pub mod selected;

use eframe::egui::{RichText, Sense, Ui, Vec2};
use memscope_core::Category;
use memscope_core::explorer::{Answer, STACKED};
use memscope_core::ledger::CATEGORIES;
use memscope_core::report::units;

use crate::theme::Theme;

/// What something is called, and what it is.
fn fact(ui: &mut Ui, name: &str, value: String, theme: &Theme) {
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(format!("{name}:")).color(theme.faint()));
        ui.label(RichText::new(value).strong());
    });
}

/// A small square of a category's colour, and its bytes: of each that holds something.
pub fn categories(ui: &mut Ui, theme: &Theme, live: &[u64; CATEGORIES]) {
    for category in STACKED.iter().rev().filter(|category| live[**category as usize] > 0) {
        ui.horizontal(|ui| {
            let (swatch, _) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
            ui.painter().rect_filled(swatch, 2.0, theme.category(*category));
            ui.label(format!("{} {}", category.name(), units::bytes(live[*category as usize])));
        });
    }
}

/// Seconds since the session began, with digits down to the microsecond.
pub fn time(nanoseconds: u64) -> String {
    format!("{}.{:06} s", units::grouped(nanoseconds / 1_000_000_000), nanoseconds % 1_000_000_000 / 1000)
}

/// The same to the nanosecond.
pub fn exact_time(nanoseconds: u64) -> String {
    format!("{}.{:09} s", units::grouped(nanoseconds / 1_000_000_000), nanoseconds % 1_000_000_000)
}

/// How long something lasts, in the unit that fits.
pub fn length(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.3} µs", nanoseconds as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", nanoseconds as f64 / 1e6),
        _ => time(nanoseconds),
    }
}

/// The category that holds most; `None` where nothing is live.
pub fn largest(live: &[u64; CATEGORIES]) -> Option<(Category, u64)> {
    let named = Category::ALL.iter().map(|category| (*category, live[*category as usize]));
    named.filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes)
}

/// The scope, or scopes that are alike, with most of a category: its path and bytes. `None` where no scope holds any.
pub fn module_of(answer: &Answer, category: Category) -> Option<(String, u64)> {
    let held = answer.top_scopes.iter().map(|scope| (scope.path.as_str(), scope.live[category as usize]));
    let (path, bytes) = held.filter(|(_, bytes)| *bytes > 0).max_by_key(|(_, bytes)| *bytes)?;
    Some((if path.is_empty() { "outside all scopes".to_owned() } else { path.to_owned() }, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_microsecond() {
        assert_eq!(time(0), "0.000000 s");
        assert_eq!(time(1_234_567_890), "1.234567 s");
        assert_eq!(time(3_600_000_000_000), "3,600.000000 s");
        assert_eq!(exact_time(1_234_567_890), "1.234567890 s");
        let lengths = [999, 1_500, 2_345_678, 2_000_000_001].map(length);
        assert_eq!(lengths, ["999 ns", "1.500 µs", "2.346 ms", "2.000000 s"]);
    }
}
