//! Where bands are on the screen.
//!
//! Owns: whole pixels: edges that meet in bytes meet on the screen, what changes by less than a pixel is no change, and each pixel in
//! which something lives at all is drawn, so that no peak is lost. Refuses: colours.

use std::ops::Range;

use eframe::egui::{Pos2, Rect, pos2};
use memscope_core::explorer::{Band, BandsView, Hit};
use memscope_core::journal::entry::Nanoseconds;

use super::bytes::Part;
use crate::views::timeline::Chart;

/// How far outside of the chart things end that are further outside, points.
const OUTSIDE: f32 = 3.0;

/// What is nearer to a pixel's edge than this share of it is at the edge.
const NEAR: f32 = 1e-3;

/// A view of bands in a chart.
pub struct Plot<'a> {
    /// What is drawn.
    pub view: &'a BandsView,
    /// Where.
    pub chart: Chart,
    /// What is seen of bytes.
    pub part: Part,
    /// A pixel of the screen, in points.
    pub pixel: f32,
}

impl Plot<'_> {
    /// Where so many bytes are; far outside of what is seen it is just outside.
    pub fn y(&self, offset: u64) -> f32 {
        let rect = self.chart.rect;
        let share = (offset as f64 - self.part.low) / self.part.length();
        let y = f64::from(rect.bottom()) - share * f64::from(rect.height());
        self.whole((y as f32).clamp(rect.top() - OUTSIDE, rect.bottom() + OUTSIDE))
    }

    /// True for a band that is lower than a pixel, where it is seen.
    pub fn is_thin(&self, band: &Band) -> bool {
        let height = band.height as f64 / self.part.length() * f64::from(self.chart.rect.height());
        let points = &self.view.points[band.points.start as usize..band.points.end as usize];
        let within = |offset: u64| (self.part.low..self.part.high).contains(&(offset as f64));
        height < f64::from(self.pixel) && self.sees(band.begin..band.end) && points.iter().any(|point| within(point.1))
    }

    /// The left edge of the pixel in which a moment is, within the chart.
    pub fn left(&self, time: Nanoseconds) -> f32 {
        let rect = self.chart.rect;
        ((self.chart.x(time.0) / self.pixel + NEAR).floor() * self.pixel).clamp(rect.left(), rect.right())
    }

    /// The right edge of the last pixel before a moment, within the chart.
    pub fn right(&self, time: Nanoseconds) -> f32 {
        let rect = self.chart.rect;
        ((self.chart.x(time.0) / self.pixel - NEAR).ceil() * self.pixel).clamp(rect.left(), rect.right())
    }

    fn whole(&self, points: f32) -> f32 {
        (points / self.pixel).round() * self.pixel
    }

    /// The bytes at a height.
    pub fn offset(&self, y: f32) -> u64 {
        let rect = self.chart.rect;
        let share = f64::from((rect.bottom() - y) / rect.height().max(1.0));
        (self.part.low + share * self.part.length()).max(0.0) as u64
    }

    /// True when some of it is within what is seen.
    pub fn sees(&self, time: Range<Nanoseconds>) -> bool {
        time.start.0 < self.chart.seen.end && time.end.0 > self.chart.seen.begin
    }

    /// The rectangles of a band, from left to right; none where it is lower than a pixel.
    pub fn pieces(&self, band: &Band, pieces: &mut Vec<Rect>) {
        pieces.clear();
        if !self.sees(band.begin..band.end) {
            return;
        }
        let points = &self.view.points[band.points.start as usize..band.points.end as usize];
        for (number, (time, offset)) in points.iter().enumerate() {
            let until = points.get(number + 1).map_or(band.end, |next| next.0);
            let left = self.left(*time).min(self.chart.rect.right() - self.pixel);
            let right = self.right(until).max(left + self.pixel);
            let (top, bottom) = (self.y(offset.saturating_add(band.height)), self.y(*offset));
            if top >= bottom || !self.sees(*time..until) {
                continue;
            }
            match pieces.last_mut() {
                Some(last) if last.top() == top && last.bottom() == bottom && last.right() >= left => {
                    last.max.x = last.max.x.max(right);
                }
                _ => pieces.push(Rect::from_min_max(pos2(left, top), pos2(right, bottom))),
            }
        }
    }

    /// The largest rectangle of a band; `None` where it is not seen.
    pub fn largest(&self, band: &Band, pieces: &mut Vec<Rect>) -> Option<Rect> {
        self.pieces(band, pieces);
        pieces.iter().copied().max_by(|one, other| one.area().total_cmp(&other.area()))
    }

    /// What lies under the pointer.
    pub fn hit(&self, pointer: Pos2) -> Option<Hit> {
        if !self.chart.rect.contains(pointer) {
            return None;
        }
        let (time, offset) = (Nanoseconds(self.chart.time(pointer.x)), self.offset(pointer.y));
        if let Some(Hit::Band(band)) = self.view.hit(time, offset) {
            return Some(Hit::Band(band));
        }
        // What is drawn a pixel wide may be narrower, and so is what stands beside it.
        let mut pieces = Vec::new();
        let under = |band: &Band, pieces: &mut Vec<Rect>| {
            self.pieces(band, pieces);
            pieces.iter().any(|piece| piece.contains(pointer))
        };
        let drawn = self.view.bands.iter().rposition(|band| under(band, &mut pieces));
        drawn.map(Hit::Band).or_else(|| self.view.hit(time, offset))
    }
}

#[cfg(test)]
mod tests {
    use memscope_core::explorer::Pick;
    use memscope_core::{Category, Origin};

    use super::*;
    use crate::shared::Span;

    fn band(time: Range<u64>, height: u64, points: Range<u32>) -> Band {
        Band {
            pick: Pick::default(),
            begin: Nanoseconds(time.start),
            end: Nanoseconds(time.end),
            death: None,
            bytes: height,
            granted: height,
            height,
            name: String::new(),
            category: Category::Unknown,
            origin: Origin::None,
            scope: 0,
            size_class: 0,
            process: 0,
            device: None,
            address: 0,
            points,
            outlived: 0,
        }
    }

    /// 100 by 100 pixels for 1000 ns and 1000 bytes: two bands from the beginning, on the first of which stands a short one.
    fn view() -> BandsView {
        let points = [(0, 0), (0, 500), (500, 503), (700, 0), (300, 900)];
        BandsView {
            bands: vec![band(0..700, 500, 0..1), band(0..1000, 300, 1..4), band(300..302, 100, 4..5)],
            points: points.map(|(time, offset)| (Nanoseconds(time), offset)).to_vec(),
            ..BandsView::default()
        }
    }

    fn plot(view: &BandsView) -> Plot<'_> {
        let rect = Rect::from_min_max(pos2(0.0, 0.0), pos2(100.0, 100.0));
        Plot { view, chart: Chart { rect, seen: Span { begin: 0, end: 1000 } }, part: Part::all(1000.0), pixel: 1.0 }
    }

    fn rect(left: f32, right: f32, top: f32, bottom: f32) -> Rect {
        Rect::from_min_max(pos2(left, top), pos2(right, bottom))
    }

    #[test]
    fn a_band_is_drawn_on_whole_pixels_and_less_than_one_is_no_change() {
        let view = view();
        let plot = plot(&view);
        let mut pieces = Vec::new();
        let mut of = |band: usize| {
            plot.pieces(&view.bands[band], &mut pieces);
            pieces.clone()
        };
        assert_eq!(of(0), [rect(0.0, 70.0, 50.0, 100.0)]);
        // It moves by 3 bytes, and then by 503.
        assert_eq!(of(1), [rect(0.0, 70.0, 20.0, 50.0), rect(70.0, 100.0, 70.0, 100.0)]);
        assert_eq!(of(2), [rect(30.0, 31.0, 0.0, 10.0)], "a fifth of a pixel is one");
    }

    #[test]
    fn a_part_of_the_bytes_is_drawn_as_high_as_all() {
        let view = view();
        let near = Plot { part: Part { low: 490.0, high: 510.0 }, ..plot(&view) };
        let mut pieces = Vec::new();
        near.pieces(&view.bands[1], &mut pieces);
        // It moves by 3 bytes: 15 pixels now. Above and below it goes on.
        assert_eq!(pieces, [rect(0.0, 50.0, -3.0, 50.0), rect(50.0, 70.0, -3.0, 35.0)]);
        assert_eq!(near.hit(pos2(10.0, 60.0)), Some(Hit::Band(0)));
        assert_eq!(near.hit(pos2(60.0, 40.0)), None);
    }

    #[test]
    fn what_is_seen_under_the_pointer_is_hit() {
        let view = view();
        let plot = plot(&view);
        assert_eq!(plot.hit(pos2(10.0, 60.0)), Some(Hit::Band(0)));
        assert_eq!(plot.hit(pos2(10.0, 30.0)), Some(Hit::Band(1)));
        assert_eq!(plot.hit(pos2(90.0, 90.0)), Some(Hit::Band(1)));
        assert_eq!(plot.hit(pos2(30.7, 5.0)), Some(Hit::Band(2)), "it is drawn here, and ended before");
        assert_eq!(plot.hit(pos2(90.0, 30.0)), None);
        assert_eq!(plot.hit(pos2(110.0, 30.0)), None);
    }
}
