//! Which moments of a session have whole lists, and how much of a moment's live bytes a list covers that is not whole.
//!
//! Owns: both, and their words, so that all views say the same. Refuses: to leave anything away (`summing`, `bound`), and figures:
//! those are whole at every moment.

use std::ops::Range;

use crate::journal::entry::Nanoseconds;
use crate::keep::KeptSpan;
use crate::report::units;
use crate::timeline::{LAST, StepFigures, Walk};

use super::explorer::Explorer;
use super::query::At;

/// Most times that are told in a sentence.
const TOLD: usize = 3;

/// The moments of a session whose lists are whole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// In order; the last one reaches to the end of the session.
    pub times: Vec<ListedTime>,
    /// What `--keep` asked for; `None` where the view itself has forgotten what ended long ago, of a session that runs.
    pub asked: Option<String>,
}

/// A time whose lists are whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedTime {
    /// From when until when.
    pub span: KeptSpan,
    /// The first and the last step that lie within it.
    pub steps: Option<(u64, u64)>,
}

/// How much a list covers that is not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Partial {
    /// Bytes in the list that count as live bytes of the target.
    pub listed: u64,
    /// All of them; `None` where nobody knows, as of what was made in a span of time.
    pub whole: Option<u64>,
}

impl Partial {
    /// A list of so many bytes of so many; `None` where that is all of them.
    pub(super) fn of(listed: u64, whole: u64) -> Option<Partial> {
        (listed < whole).then_some(Partial { listed, whole: Some(whole) })
    }

    /// Bytes that are in no list.
    pub fn missing(&self) -> u64 {
        self.whole.map_or(0, |whole| whole.saturating_sub(self.listed))
    }

    /// `3.35 MiB of 12.73 MiB`.
    pub fn covers(&self) -> String {
        match self.whole {
            Some(whole) => format!("{} of {}", units::bytes(self.listed), units::bytes(whole)),
            None => format!("{} of what is kept", units::bytes(self.listed)),
        }
    }
}

impl Listed {
    /// Of a session of which the user asked to keep these spans, or that has forgotten what ended by a position.
    fn of(spans: &[KeptSpan], asked: Option<String>, steps: &[StepFigures]) -> Listed {
        let times = spans.iter().map(|span| ListedTime::of(span, steps)).collect();
        Listed { times, asked }
    }

    fn spans(&self) -> impl Iterator<Item = &KeptSpan> {
        self.times.iter().map(|time| &time.span)
    }

    /// True when the lists of this time are whole.
    pub fn has(&self, time: Nanoseconds) -> bool {
        self.spans().any(|span| span.has_time(time))
    }

    /// True when those of all of this time are.
    pub fn has_all(&self, range: &Range<Nanoseconds>) -> bool {
        self.spans().any(|span| span.begin <= range.start && span.end.is_none_or(|end| range.end <= end))
    }

    /// True when those of a moment right after this change are.
    pub(super) fn has_moment(&self, at: At, order: u32) -> bool {
        match at {
            // Where changes are gone, times have no exact position.
            At::Time(time) => self.has(time),
            _ => self.spans().any(|span| span.has_order(order)),
        }
    }

    /// The moment nearest to this one whose lists are whole.
    pub fn nearest(&self, time: Nanoseconds) -> Option<Nanoseconds> {
        let within = |span: &KeptSpan| {
            let last = span.end.map_or(Nanoseconds(u64::MAX), |end| Nanoseconds(end.0.saturating_sub(1)));
            Nanoseconds(time.0.clamp(span.begin.0, last.0.max(span.begin.0)))
        };
        self.spans().map(within).min_by_key(|near| near.0.abs_diff(time.0))
    }

    /// The times in which lists are not whole, as far as they lie within a span.
    pub fn gaps(&self, range: &Range<Nanoseconds>) -> Vec<Range<Nanoseconds>> {
        let mut gaps = Vec::new();
        let mut from = range.start;
        for span in self.spans() {
            let until = span.begin.min(range.end);
            if from < until {
                gaps.push(from..until);
            }
            from = from.max(span.end.unwrap_or(range.end));
        }
        if from < range.end {
            gaps.push(from..range.end);
        }
        gaps
    }

    /// Which moments are listed, in few words: `steps 5 to 10, and from step 90 on`.
    pub fn when(&self) -> String {
        let mut times: Vec<String> = self.times.iter().rev().take(TOLD).map(ListedTime::text).collect();
        times.reverse();
        let hidden = self.times.len() - times.len();
        if hidden > 0 {
            times.insert(0, units::count(hidden as u64, "earlier time", "earlier times"));
        }
        match times.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, before)) => format!("{}, and {last}", before.join(", ")),
            None => "none".to_owned(),
        }
    }

    /// Where lists are whole, and what became of the rest.
    pub fn whole(&self) -> String {
        match &self.asked {
            Some(asked) => format!("Lists are kept: {}; the rest is summed only (--keep {asked})", self.when()),
            None => format!(
                "Lists are whole {}; the rest ended too long ago for this view of a running session",
                self.when()
            ),
        }
    }

    /// The same, as the end of a sentence about a part.
    pub fn rest(&self) -> String {
        match &self.asked {
            Some(asked) => format!("the rest is summed only (--keep {asked}); lists are kept: {}", self.when()),
            None => format!(
                "the rest ended too long ago for this view of a running session; lists are whole {}",
                self.when()
            ),
        }
    }
}

impl ListedTime {
    fn of(span: &KeptSpan, steps: &[StepFigures]) -> ListedTime {
        let KeptSpan { begin, end, .. } = *span;
        // They are in the order of their beginnings.
        let within = |time: Nanoseconds| steps.partition_point(|step| step.begin < time);
        let steps = &steps[within(begin)..end.map_or(steps.len(), within).max(within(begin))];
        let ended = |step: &&StepFigures| end.is_none_or(|end| step.end.is_some_and(|state| state.time <= end));
        let last = steps.iter().rev().find(ended);
        let steps = steps.first().zip(last).map(|(first, last)| (first.number, last.number));
        ListedTime { span: *span, steps }
    }

    fn text(&self) -> String {
        let time = |time: Nanoseconds| units::time(time.0 as f64 / 1e9);
        match (self.steps, self.span.end) {
            (Some((first, _)), None) => format!("from step {first} on"),
            (None, None) => format!("from {} on", time(self.span.begin)),
            (Some((first, last)), Some(_)) if first == last => format!("step {first}"),
            (Some((first, last)), Some(_)) => format!("steps {first} to {last}"),
            (None, Some(end)) => format!("from {} to {}", time(self.span.begin), time(end)),
        }
    }
}

impl Explorer {
    /// The moments whose lists are whole; `None` while all are.
    pub(super) fn listed(&self) -> Option<Listed> {
        let walk = &self.walk;
        let kept = self.model.kept();
        let asked = kept.and(self.model.session.keep).map(|keep| keep.to_string());
        let begin = walk.forgotten_before.or(walk.stands_since.map(|_| Nanoseconds(0)));
        let rest = || begin.map(|begin| vec![KeptSpan { from: walk.forgotten, until: u32::MAX, begin, end: None }]);
        let mut spans = kept.map(|kept| kept.spans.clone()).or_else(rest)?;
        if let Some(since) = walk.stands_since {
            // From then on positions stand still: only of now it is known what lives.
            spans.retain(|span| span.begin < since);
            for span in &mut spans {
                (span.until, span.end) = (span.until.min(LAST - 1), Some(span.end.map_or(since, |end| end.min(since))));
            }
        }
        Some(Listed::of(&spans, asked, steps(walk)))
    }
}

/// Those of the whole session.
fn steps(walk: &Walk) -> &[StepFigures] {
    walk.all.as_ref().map_or(&[], |track| &track.figures.steps)
}
