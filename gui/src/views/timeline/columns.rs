//! Which figures a column of pixels shows.
//!
//! Owns: the choice between the exact span that was asked for and the coarse series of all time, while the exact one is not there
//! yet. Refuses: to smooth: of all moments in a column the one with most live bytes is shown, so that no peak is lost.

use memscope_core::colours::Foreign;
use memscope_core::explorer::{Answer, Running, Target, WindowView};
use memscope_core::ledger::EventRows;
use memscope_core::timeline::{Bucket, SampleRows, Series};

use super::Chart;
use crate::shared::Span;

/// The moment of a part of time at which most was live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// The ledger at that moment. Of the coarse series rounding is not known, and counted as cached.
    pub rows: EventRows,
    /// Most that was reserved in this part of time.
    pub reserved: u64,
    /// When it was, nanoseconds; `None` where the coarse series speaks.
    pub time: Option<u64>,
    /// In use on the device, and none of the above: at the last sample.
    pub foreign: [u64; 4],
}

/// What is drawn between two edges.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// From.
    pub left: f32,
    /// To.
    pub right: f32,
    /// What.
    pub column: Column,
}

/// Where figures over time come from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    window: Option<&'a WindowView>,
    series: &'a Series,
    samples: &'a [SampleRows],
    /// No more changes come.
    ended: bool,
}

impl<'a> Source<'a> {
    /// What an answer knows of its target.
    pub fn of(answer: &'a Answer) -> Source<'a> {
        // Of one device only: samples of several are not taken at the same time.
        let device = answer.tracks.as_deref().and_then(|tracks| match (&tracks.devices[..], answer.target) {
            ([device], Target::All | Target::Device(_)) => Some(device),
            _ => None,
        });
        Source {
            window: answer.window.as_deref(),
            series: &answer.series,
            ended: answer.session.state != Running::Live,
            samples: device.map(|device| &device.rows[..]).unwrap_or_default(),
        }
    }

    /// A series alone.
    pub fn of_series(series: &'a Series) -> Source<'a> {
        Source { window: None, series, samples: &[], ended: true }
    }

    /// What a part of time shows; `None` where nothing is known.
    pub fn column(&self, span: Span) -> Option<Column> {
        let column = self.exact(span).or_else(|| self.coarse(span))?;
        let mut foreign = self.foreign(span);
        if column.reserved == 0 {
            // Before its first allocation and after its last one the program may not be there at all.
            foreign[Foreign::Unexplained as usize] = 0;
        }
        Some(Column { foreign, ..column })
    }

    fn exact(&self, span: Span) -> Option<Column> {
        let window = self.window?;
        // Of a session that runs, what came since is in the series alone.
        let until = if self.ended { window.range.end } else { window.range.end.min(window.as_of) };
        if span.begin < window.range.start.0 || span.end > until.0 {
            return None;
        }
        let first = window.buckets.partition_point(|bucket| bucket.begin.0 <= span.begin).checked_sub(1)?;
        let within = window.buckets[first..].iter().take_while(|bucket| bucket.begin.0 < span.end);
        let (mut most, mut reserved) = (None, 0);
        for bucket in within {
            reserved = bucket.reserved.max(reserved);
            if most.is_none_or(|(bytes, _)| bucket.rows.live_bytes() > bytes) {
                most = Some((bucket.rows.live_bytes(), bucket));
            }
        }
        let (_, bucket) = most?;
        // Where not all is listed, the series speaks here too.
        let time = bucket.allocations.map(|_| bucket.time.0);
        Some(Column { rows: bucket.rows, reserved, time, foreign: [0; 4] })
    }

    fn coarse(&self, span: Span) -> Option<Column> {
        let width = self.series.width_ns.max(1);
        let last = self.series.buckets.len().checked_sub(1)?;
        let (first, until) = ((span.begin / width) as usize, ((span.end - 1) / width) as usize);
        let within = self.series.buckets.get(first..=until.min(last))?;
        let live = |bucket: &&Bucket| bucket.live.iter().fold(0u64, |sum, bytes| sum.wrapping_add(*bytes));
        let most = within.iter().max_by_key(live)?;
        let reserved = within.iter().map(|bucket| bucket.reserved).max()?;
        let mut rows = EventRows { live: most.live, ..EventRows::default() };
        rows.reserved = most.reserved.max(rows.live_bytes());
        rows.cached = rows.reserved - rows.live_bytes();
        Some(Column { rows, reserved, time: None, foreign: [0; 4] })
    }

    /// By the number of [`memscope_core::colours::Foreign`]. What is negative (a sample that was taken while memory changed) is
    /// nothing that can be stacked.
    fn foreign(&self, span: Span) -> [u64; 4] {
        let last = self.samples.partition_point(|sample| sample.rows.time.0 < span.end);
        let Some(sample) = self.samples[..last].iter().rev().find(|sample| sample.settled) else { return [0; 4] };
        let rows = &sample.rows;
        let signed = |bytes: Option<i64>| bytes.map_or(0, |bytes| bytes.max(0) as u64);
        let (others, firmware) = (rows.other_processes.unwrap_or(0), rows.firmware_reserved.unwrap_or(0));
        [signed(rows.unexplained), others, firmware, signed(rows.unowned)]
    }
}

impl Column {
    /// The height of the whole stack.
    pub fn top(&self) -> u64 {
        self.foreign.iter().fold(self.reserved.max(self.rows.reserved), |sum, bytes| sum.saturating_add(*bytes))
    }
}

/// All columns of a chart, one a pixel of the screen; those that are alike are one.
pub fn runs(source: &Source<'_>, chart: &Chart, pixels_per_point: f32) -> Vec<Run> {
    let columns = (chart.rect.width() * pixels_per_point).ceil().clamp(1.0, 8192.0) as usize;
    let edge = |column: usize| chart.rect.left() + chart.rect.width() * column as f32 / columns as f32;
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let at = |column: usize| chart.seen.at(column as f64 / columns as f64);
        let Some(here) = source.column(Span::between(at(column), at(column + 1))) else { continue };
        let (left, right) = (edge(column), edge(column + 1));
        match runs.last_mut() {
            Some(run) if run.right == left && run.column.looks_like(&here) => run.right = right,
            _ => runs.push(Run { left, right, column: here }),
        }
    }
    runs
}

impl Column {
    fn looks_like(&self, other: &Column) -> bool {
        (self.rows, self.reserved, self.foreign) == (other.rows, other.reserved, other.foreign)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use memscope_core::explorer::WindowBucket;
    use memscope_core::journal::entry::Nanoseconds;
    use memscope_core::timeline::Bucket;

    use super::*;

    /// A session of 1000 ns: the series has two buckets with 100 and 200 bytes of weights, the window from 400 on tells 7 and 9.
    fn answer(state: Running, as_of: u64) -> Answer {
        let live = |bytes| [0, bytes, 0, 0, 0, 0, 0];
        let bucket = |bytes| Bucket { live: live(bytes), reserved: bytes + 50 };
        let part = |begin, bytes| WindowBucket {
            begin: Nanoseconds(begin),
            time: Nanoseconds(begin + 3),
            rows: EventRows { live: live(bytes), reserved: bytes, ..EventRows::default() },
            reserved: bytes,
            allocations: Some(1),
            ..WindowBucket::default()
        };
        let mut answer = Answer {
            series: Arc::new(Series { width_ns: 500, buckets: vec![bucket(100), bucket(200)] }),
            window: Some(Arc::new(WindowView {
                as_of: Nanoseconds(as_of),
                range: Nanoseconds(400)..Nanoseconds(800),
                buckets: vec![part(400, 7), part(600, 9)],
                ..WindowView::default()
            })),
            ..Answer::default()
        };
        answer.session.state = state;
        answer
    }

    fn live(answer: &Answer, begin: u64, end: u64) -> Option<u64> {
        Source::of(answer).column(Span { begin, end }).map(|column| column.rows.live_bytes())
    }

    #[test]
    fn within_the_window_figures_are_exact_and_elsewhere_those_of_the_series() {
        let answer = answer(Running::Ended, 0);
        assert_eq!(live(&answer, 410, 500), Some(7));
        assert_eq!(live(&answer, 590, 610), Some(9), "the largest of both");
        assert_eq!(live(&answer, 0, 100), Some(100));
        assert_eq!(live(&answer, 0, 900), Some(200));
        assert_eq!(live(&answer, 5000, 6000), None, "nothing is known of it");
        let column = Source::of(&answer).column(Span { begin: 0, end: 10 }).expect("known");
        assert_eq!((column.rows.cached, column.reserved, column.time), (50, 150, None));
    }

    #[test]
    fn what_came_since_the_window_was_made_is_not_hidden_by_it() {
        let answer = answer(Running::Live, 650);
        assert_eq!(live(&answer, 600, 640), Some(9));
        assert_eq!(live(&answer, 700, 740), Some(200));
    }
}
