//! What a comparison says, as data: the JSON is this, serialised, and the table and the page are made from it.
//!
//! Owns: the shape (schema version 1, docs/techniques.schema.json). Refuses: to change the meaning of a key within a schema
//! version; keys may be added.
//!
//! Sizes are in bytes, times in seconds. What is not known is `null`, never 0.

use memscope_core::report::ByCategory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the shape.
pub const SCHEMA_VERSION: u32 = 1;

/// A whole comparison.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// 1.
    pub schema_version: u32,
    /// The memscope that made it.
    pub memscope_version: String,
    /// What was asked for: published, all, or names.
    pub list: String,
    /// The trainer: gpt or resnet.
    pub sample: String,
    /// The model's size.
    pub size: String,
    /// Training steps of each run.
    pub steps: u64,
    /// Arguments that every run was given besides its own.
    pub arguments: Vec<String>,
    /// What was simulated, as `--device` takes it; `null` on a GPU.
    pub simulated_device: Option<String>,
    /// The device's product name, where a run told it.
    pub device: Option<String>,
    /// False when kernels and copies were skipped: there is no loss, and times mean nothing.
    pub compute: bool,
    /// What the peaks are of: `live`, the bytes asked for by what is alive, on the device where they were most.
    pub peak_of: String,
    /// What explains the published figures; `null` where the list does not have their runs.
    pub shares: Option<Shares>,
    /// A row a technique, the baseline first.
    pub rows: Vec<Row>,
}

/// The figures of runs from which the published ones follow by arithmetic.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// f: weights, gradients and optimizer at their own peaks, of the baseline's peak; 0 to 1.
    pub states: f64,
    /// r: what checkpointing leaves of the activations at their own peak; `null` when it was not run.
    pub activations_left: Option<f64>,
    /// r with a chunked loss: what both leave; `null` when they were not run together.
    #[serde(default)]
    pub activations_left_chunked: Option<f64>,
}

/// One technique, or several together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// The techniques that it is made of.
    pub techniques: Vec<String>,
    /// The trainer's arguments.
    pub command: Vec<String>,
    /// What each technique does.
    pub sentence: String,
    /// What becomes of the bytes.
    pub formula: String,
    /// What was claimed.
    pub claim: Option<Claim>,
    /// How its run ended.
    pub outcome: Outcome,
    /// Why there are no figures, as a sentence.
    pub message: Option<String>,
    /// What was measured; only with the outcome `measured`.
    pub figures: Option<Figures>,
    /// Why claim and measurement differ.
    pub why: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran to its end.
    Measured,
    /// The trainer does not have a flag of it.
    NotInSample,
    /// The trainer refused the flags together.
    DoesNotCombine,
    /// The device could not hold it.
    OutOfMemory,
    /// It failed for another reason.
    Failed,
}

/// What was claimed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// In words, with its source.
    pub text: String,
    /// What is true of it.
    pub verdict: Verdict,
    /// Percent of the baseline that shall be left.
    pub percent: Option<f64>,
    /// Of what.
    pub of: Option<Quantity>,
    /// The same as measured here; `null` where the batch is not the baseline's.
    pub measured_percent: Option<f64>,
}

/// What is true of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Arithmetic confirms it.
    Holds,
    /// True of some models and sizes.
    Depends,
    /// One part of it holds.
    InPart,
    /// From a paper, and not checked.
    Recalled,
    /// Wrong, or out of reach.
    Wrong,
}

/// What a claimed percentage is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The device's peak.
    Peak,
    /// Activations at their own peak.
    Activations,
    /// The optimizer's state at its own peak.
    Optimizer,
}

/// What was measured of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Largest live bytes, on the device where they were most; of a batch that was searched for, in the steps of the training.
    pub peak_bytes: u64,
    /// That of the baseline's peak; `null` without a measured baseline.
    pub percent_of_baseline: Option<f64>,
    /// UUID of the device.
    pub device: String,
    /// Sequences or images in a batch, as the trainer told; of a batch that was searched for, the one that it trained with.
    #[serde(default)]
    pub batch: Option<u64>,
    /// Largest bytes granted by the driver on that device; of a batch that was searched for, those at the peak.
    pub reserved_bytes: u64,
    /// What those bytes were for.
    pub by_category: ByCategory,
    /// The phase of that moment: model, data, forward, loss, backward or optimizer (the update).
    pub phase: Option<String>,
    /// Its step.
    pub step: Option<u64>,
    /// Each category's own largest value; not of one moment. Of a batch that was searched for, the values at the peak.
    pub category_peaks: ByCategory,
    /// Largest pinned host memory.
    pub host_peak_bytes: u64,
    /// The fastest of the steps after the first; `null` when nothing was computed.
    pub step_seconds: Option<f64>,
    /// That over the baseline's.
    pub step_time_ratio: Option<f64>,
    /// The loss after the last step; `null` when nothing was computed.
    pub loss: Option<f64>,
    /// Allocations that the driver refused on the way.
    pub refused: u64,
}

impl Figures {
    /// The measured value of a quantity.
    pub fn value(&self, of: Quantity) -> u64 {
        match of {
            Quantity::Peak => self.peak_bytes,
            Quantity::Activations => self.category_peaks.activations,
            Quantity::Optimizer => self.category_peaks.optimizer,
        }
    }
}

impl Quantity {
    /// In a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Quantity::Peak => "of the peak",
            Quantity::Activations => "of the activations",
            Quantity::Optimizer => "of the optimizer's state",
        }
    }
}

impl Verdict {
    /// In a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Depends => "depends on the model",
            Verdict::InPart => "holds in part",
            Verdict::Recalled => "from a paper, not checked",
            Verdict::Wrong => "wrong or out of reach",
        }
    }
}

impl Comparison {
    /// True when the rows do not all have one batch.
    pub fn batches_differ(&self) -> bool {
        let mut batches = self.rows.iter().filter_map(|row| row.figures.as_ref()?.batch);
        batches.next().is_some_and(|first| batches.any(|batch| batch != first))
    }

    /// True when some row reserves more than what is live, by more than a fiftieth: its own rounding aside.
    pub fn reserves(&self) -> bool {
        let mut figures = self.rows.iter().filter_map(|row| row.figures.as_ref());
        figures.any(|figures| figures.reserved_bytes > figures.peak_bytes + figures.peak_bytes / 50)
    }

    /// The first row's figures.
    pub fn baseline(&self) -> Option<&Figures> {
        self.rows.first()?.figures.as_ref()
    }

    /// Fills in all that follows from the baseline: percentages, ratios, measured claims.
    pub fn relate(&mut self) {
        let Some(baseline) = self.baseline().cloned() else { return };
        let percent = |part: u64, whole: u64| (whole > 0).then(|| 100.0 * part as f64 / whole as f64);
        for row in &mut self.rows {
            let Some(figures) = &mut row.figures else { continue };
            figures.percent_of_baseline = percent(figures.peak_bytes, baseline.peak_bytes);
            let times = figures.step_seconds.zip(baseline.step_seconds).filter(|(_, whole)| *whole > 0.0);
            figures.step_time_ratio = times.map(|(own, whole)| own / whole);
            if let Some(claim) = &mut row.claim {
                // Two batches are not compared.
                let of = claim.of.filter(|_| figures.batch == baseline.batch);
                claim.measured_percent = of.and_then(|of| percent(figures.value(of), baseline.value(of)));
            }
        }
    }
}

/// The JSON schema of [`Comparison`], as docs/techniques.schema.json holds it.
#[cfg(test)]
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Comparison)).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/techniques.schema.json");

    #[test]
    fn the_checked_in_schema_is_the_one_of_the_code() {
        let text = schema();
        if std::env::var_os("MEMSCOPE_UPDATE_SCHEMA").is_some() {
            std::fs::write(PATH, &text).expect("the schema is written");
        }
        let checked_in = std::fs::read_to_string(PATH).expect("docs/techniques.schema.json is there");
        assert!(
            text == checked_in,
            "docs/techniques.schema.json is out of date: run this test with MEMSCOPE_UPDATE_SCHEMA=1"
        );
    }
}
