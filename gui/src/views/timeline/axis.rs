//! The axes: time above, bytes at the left.
//!
//! Owns: where lines and labels stand, from hours to microseconds. Refuses: what is between them.

use std::ops::RangeInclusive;

use eframe::egui::{Align2, FontId, Painter, Rangef, Rect, Stroke, pos2};
use memscope_core::report::units;

use super::columns::Run;
use super::{Chart, small};
use crate::theme::Theme;
use crate::view::ViewContext;

/// Bytes over the height of a chart.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// At the upper edge.
    pub top: f64,
}

impl Scale {
    /// So that what is seen fills the chart; with the capacity in it, where that is not far above.
    pub fn of(context: &ViewContext<'_>, runs: &[Run]) -> Scale {
        let most = runs.iter().map(|run| run.column.top()).max().unwrap_or(0) as f64;
        let capacity = context.answer.now.capacity.map(|bytes| bytes as f64);
        let top = match capacity {
            Some(capacity) if most * 2.5 >= capacity => capacity.max(most),
            _ => most,
        };
        Scale { top: (top * 1.06).max(1024.0) }
    }

    /// Where so many bytes are.
    pub fn y(&self, chart: &Chart, bytes: f64) -> f32 {
        chart.rect.bottom() - (bytes / self.top * f64::from(chart.rect.height())) as f32
    }
}

/// The distance of lines on the axis of bytes: a power of two, at most `most` lines.
fn byte_stride(top: f64, most: f64) -> f64 {
    let mut stride = 256.0;
    while top / stride > most {
        stride *= 2.0;
    }
    stride
}

/// Draws the axis of bytes.
pub fn bytes(painter: &Painter, chart: &Chart, scale: &Scale, theme: &Theme) {
    byte_lines(painter, chart.rect, 0.0..=scale.top, |value| scale.y(chart, value), theme);
}

/// Draws lines at round numbers of bytes from one number to another, which lie at `y`.
pub fn byte_lines(painter: &Painter, rect: Rect, range: RangeInclusive<f64>, y: impl Fn(f64) -> f32, theme: &Theme) {
    let (low, high) = range.into_inner();
    let stride = byte_stride(high - low, f64::from(rect.height() / 34.0).max(1.0));
    let mut value = (low / stride).ceil() * stride;
    while value <= high {
        let y = y(value);
        painter.hline(rect.x_range(), y, Stroke::new(1.0, theme.grid()));
        let at = pos2(rect.left() - 6.0, y);
        painter.text(at, Align2::RIGHT_CENTER, units::bytes(value as u64), FontId::proportional(11.0), theme.faint());
        value += stride;
    }
}

/// The distance of lines on the axis of time, in nanoseconds: 1, 2 or 5 of a power of ten, or of seconds, minutes and hours.
fn time_stride(length: u64, most: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let wanted = length / most.max(1);
    let mut stride = 1;
    while stride < SECOND {
        for factor in [1, 2, 5] {
            if stride * factor >= wanted {
                return stride * factor;
            }
        }
        stride *= 10;
    }
    let long = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400];
    let days = || wanted.div_ceil(86_400 * SECOND).max(1) * 86_400 * SECOND;
    long.iter().map(|seconds| seconds * SECOND).find(|stride| *stride >= wanted).unwrap_or_else(days)
}

/// A moment, as finely as lines this far apart need.
fn time_label(time: u64, stride: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    let decimals = match stride {
        SECOND.. => 0,
        1_000_000.. => 3,
        1_000.. => 6,
        _ => 9,
    };
    let seconds = time / SECOND;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let fraction = match decimals {
        0 => String::new(),
        decimals => format!(".{:0decimals$}", time % SECOND / 10u64.pow(9 - decimals as u32)),
    };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction} s"),
        (0, minutes) => format!("{minutes}:{:02}{fraction}", seconds % 60),
        (hours, minutes) => format!("{hours}:{minutes:02}:{:02}{fraction}", seconds % 60),
    }
}

/// Least room between labels of time.
const BETWEEN: f32 = 6.0;

/// Draws the axis of time, with lines down through the chart. No label is written where another one is, nor where the cursor's
/// is to be: `taken`.
pub fn time(painter: &Painter, chart: &Chart, top: f32, taken: Option<Rangef>, theme: &Theme) {
    let stride = time_stride(chart.seen.length(), (chart.rect.width() / 110.0).max(1.0) as u64);
    let mut moment = chart.seen.begin.next_multiple_of(stride);
    let mut free = f32::NEG_INFINITY;
    while moment <= chart.seen.end {
        let x = chart.x(moment);
        painter.vline(x, top + 14.0..=chart.rect.bottom(), Stroke::new(1.0, theme.grid()));
        let text = small(painter, time_label(moment, stride), theme.faint());
        // The last one must not be cut.
        let align = if x + text.size().x / 2.0 > chart.rect.right() { Align2::RIGHT_TOP } else { Align2::CENTER_TOP };
        let rect = align.anchor_size(pos2(x, top + 2.0), text.size());
        let meets = taken.is_some_and(|taken| taken.expand(BETWEEN).intersects(rect.x_range()));
        if rect.left() >= free && !meets {
            free = rect.right() + BETWEEN;
            painter.galley(rect.min, text, theme.faint());
        }
        moment = moment.saturating_add(stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_round_times_from_days_to_nanoseconds() {
        for (length, most, stride) in [
            (24 * 3600 * 1_000_000_000, 10, 14_400_000_000_000),
            (90_000_000_000, 10, 10_000_000_000),
            (1_000_000_000, 10, 100_000_000),
            (1_300_000, 10, 200_000),
            (100, 10, 10),
            (5, 10, 1),
        ] {
            assert_eq!(time_stride(length, most), stride, "{length}");
        }
        assert_eq!(time_label(3_723_000_000_000, 1_000_000_000), "1:02:03");
        assert_eq!(time_label(63_500_000_000, 500_000_000), "1:03.500");
        assert_eq!(time_label(1_234_567, 1_000), "0.001234 s");
        assert_eq!(time_label(1_234_567, 10), "0.001234567 s");
    }

    #[test]
    fn lines_of_bytes_are_powers_of_two() {
        assert_eq!(byte_stride(80.0 * 1e9, 8.0), (1u64 << 34) as f64);
        assert_eq!(byte_stride(100.0, 8.0), 256.0);
    }
}
