//! What of a session is kept allocation by allocation, as a report tells it.
//!
//! Owns: the spans, and the sentence about them. Refuses: to decide what is kept (`keep`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;

/// What of a session is kept allocation by allocation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeptReport {
    /// As asked for by `--keep`.
    pub asked: String,
    /// The times that are kept, in order.
    pub spans: Vec<KeptTime>,
    /// Allocations and blocks that are only in sums.
    pub summed: u64,
    /// From then on every moment is told in figures alone, since there were more changes than have positions; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures_from_s: Option<f64>,
}

/// A time that is kept.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeptTime {
    /// From then on.
    pub begin_s: f64,
    /// Until then; `null` for the end of the session.
    pub end_s: Option<f64>,
}

/// So many times are told one by one in a sentence.
const MOST_SPANS: usize = 3;

impl KeptReport {
    /// As text: `kept: last:10m, from 600 s on; 8,123,456 other allocations are summed only`.
    pub fn sentence(&self) -> String {
        if self.summed == 0 {
            return format!(
                "kept: everything, allocation by allocation: the run ended before there was anything that {} drops",
                self.asked
            );
        }
        let time = |span: &KeptTime| match span.end_s {
            Some(end) => format!("from {} to {}", units::time(span.begin_s), units::time(end)),
            None => format!("from {} on", units::time(span.begin_s)),
        };
        let times = match &self.spans[..] {
            [first, .., last] if self.spans.len() > MOST_SPANS => {
                let count = units::grouped(self.spans.len() as u64);
                format!("{count} times, the first {}, the last {}", time(first), time(last))
            }
            spans => spans.iter().map(time).collect::<Vec<_>>().join(" and "),
        };
        let summed = units::count(self.summed, "other allocation is", "other allocations are");
        let stands = self.figures_from_s.map_or_else(String::new, |from| {
            format!("; from {} on, after 4,294,967,294 changes, moments have figures and no lists", units::time(from))
        });
        format!("kept: {}, {times}; {summed} summed only{stands}", self.asked)
    }
}
