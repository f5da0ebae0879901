//! The chart by hand: scales, columns and marks.

use memscope_core::explorer::{Answer, At};
use memscope_core::journal::entry::Nanoseconds;

use super::*;

const GIB: u64 = 1 << 30;

#[test]
fn axes_end_at_numbers_that_read_well() {
    for (value, top) in [
        (3 * GIB, "3 GiB"),
        (3 * GIB + 1, "3.5 GiB"),
        (9 * GIB, "10 GiB"),
        (17 * GIB, "20 GiB"),
        (1100 << 20, "1.25 GiB"),
    ] {
        assert_eq!(short(round(value)), top);
    }
    assert_eq!(round(0), 1);
    assert_eq!(round(u64::MAX), u64::MAX);
}

#[test]
fn the_capacity_is_drawn_when_it_is_near() {
    assert_eq!(scale(10 * GIB, Some(80 * GIB)), (10 * GIB, None));
    assert_eq!(scale(40 * GIB, Some(80 * GIB)), (80 * GIB, Some(80 * GIB)));
    assert_eq!(scale(90 * GIB, Some(80 * GIB)), (96 * GIB, Some(80 * GIB)));
    assert_eq!(scale(10 * GIB, None), (10 * GIB, None));
}

#[test]
fn a_column_shows_the_largest_of_what_it_covers() {
    let bucket_of = |live: u64, reserved: u64| Bucket { live: [live, 0, 0, 0, 0, 0, 0], reserved };
    let buckets = vec![bucket_of(1, 9), bucket_of(5, 6), bucket_of(2, 2), bucket_of(3, 4)];
    let series = Series { width_ns: 10, buckets };
    let shown = |span, column, columns| bucket(&series, &span, column, columns).map(|b| (b.live[0], b.reserved));
    assert_eq!(shown(0..40, 0, 2), Some((5, 9)), "and the most reserved of them");
    assert_eq!(shown(0..40, 1, 2), Some((3, 4)));
    assert_eq!(shown(0..40, 7, 8), Some((3, 4)), "columns narrower than a bucket");
    assert_eq!(shown(0..80, 1, 2), Some((3, 4)), "after the last change all stays as it was");
    assert_eq!(bucket(&Series::default(), &(0..1), 0, 1), None);
}

/// A chart of an answer, cell by cell.
fn drawn(answer: Answer, at: At, size: (u16, u16)) -> Vec<String> {
    use crate::glyphs::UNICODE;
    use crate::palette::{Depth, Palette, Scheme};
    let palette = Palette::new(Scheme::Default, Depth::True);
    let area = Rect::new(0, 0, size.0, size.1);
    let mut app = App::new(palette, &UNICODE, area, None, false);
    app.at = at;
    app.receive(std::sync::Arc::new(Answer { at, ..answer }));
    let mut buffer = ratatui::buffer::Buffer::empty(area);
    draw(&app, &mut Canvas { buffer: &mut buffer, glyphs: &UNICODE, palette }, area);
    let lines = buffer.content.chunks(size.0.into());
    lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}

/// Eight buckets of 10 ns: weights grow by 2 bytes each, all of it reserved; what else there is comes from `with`.
fn growing(with: impl FnOnce(&mut Answer)) -> Answer {
    let bucket = |index: u64| {
        let mut live = [0; CATEGORIES];
        live[1] = 2 * (index + 1);
        Bucket { live, reserved: 2 * (index + 1) }
    };
    let series = Series { width_ns: 10, buckets: (0..8).map(bucket).collect() };
    let mut answer = Answer { series: std::sync::Arc::new(series), ..Answer::default() };
    answer.session.last_time = Nanoseconds(80);
    with(&mut answer);
    answer
}

#[test]
fn columns_are_as_high_as_their_bytes() {
    // One line, and the axis below it: 16 bytes are 8 eighths, so that each bucket has one more than the one before.
    let lines = drawn(growing(|_| {}), At::Live, (8, 2));
    assert_eq!(lines[0], "▁▂▃▄▅▆▇█");
    // Two lines: an eighth a byte.
    let lines = drawn(growing(|_| {}), At::Live, (16, 3));
    assert_eq!(lines[..2], ["        ▂▂▄▄▆▆██", "▂▂▄▄▆▆██████████"]);
}

#[test]
fn marks_stand_at_their_times() {
    let with = |answer: &mut Answer| {
        answer.refusals = std::sync::Arc::new(vec![Nanoseconds(35)]);
        answer.step_marks = std::sync::Arc::new(vec![(Nanoseconds(0), 7), (Nanoseconds(40), 8)]);
        answer.now.state.time = Nanoseconds(65);
        let mut peak = memscope_core::explorer::MomentView::default();
        peak.state.time = Nanoseconds(75);
        answer.peak = Some(peak);
    };
    // Four lines of chart, steps, times; four columns for 10 ns.
    let lines = drawn(growing(with), At::Time(Nanoseconds(65)), (32, 6));
    assert_eq!(lines[0].chars().position(|char| char == '✖'), Some(14), "35 ns: column 14\n{}", lines.join("\n"));
    assert!(lines[..4].iter().all(|line| line.chars().nth(26) == Some('│')), "65 ns: column 26");
    assert_eq!(lines[4], "╵7              ╵8        peak▲", "0, 40 and 75 ns");
}

#[test]
fn the_capacity_stands_where_nothing_reaches_it() {
    let lines = drawn(growing(|answer| answer.now.capacity = Some(16)), At::Live, (64, 5));
    assert!(lines[0].starts_with("    16 B ╌╌╌"), "{lines:?}");
    assert!(lines[0].ends_with("████"), "{lines:?}");
}
