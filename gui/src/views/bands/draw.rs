//! Bands, what is merged, and words on what is large enough.
//!
//! Owns: what is lit and what is dimmed; one mesh a colour. Refuses: where things are (`plot`).

use eframe::egui::text::{LayoutJob, TextWrapping};
use eframe::egui::{Color32, FontId, Mesh, Painter, Rect, Shape, Stroke, StrokeKind, pos2, vec2};
use memscope_core::explorer::{Band, BandOrder, BandsView, Pick, Rest, STACKED};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::units;

use super::colour::{self, Colouring, Scopes};
use super::plot::Plot;
use super::words;
use crate::shared::Shared;
use crate::theme::Theme;

/// A band that is at least so high and wide (points) is parted from its neighbours by a line.
const PARTED: f32 = 6.0;
/// One that is at least so large is named.
const NAMED: [f32; 2] = [54.0, 13.0];
/// At most so many are.
const NAMES: usize = 60;
/// Distance of the stripes over what is merged.
const STRIPES: f32 = 4.0;

/// How bands are coloured.
pub struct Paint<'a> {
    /// By what.
    pub colouring: Colouring,
    /// Colours of scopes.
    pub scopes: &'a Scopes,
    /// All colours.
    pub theme: Theme,
    /// What is lit.
    pub shared: &'a Shared,
}

impl Paint<'_> {
    /// True for a band that the selection is about, or where it is about none that is drawn.
    fn lights(&self, view: &BandsView, band: &Band, selected: Option<Pick>) -> bool {
        match selected {
            Some(pick) => pick == band.pick,
            None => self.shared.lights(band.category, view.scope(band).map_or("", |scope| &scope.path)),
        }
    }

    /// The colour of a number, lit or dimmed.
    fn colour(&self, number: usize, lit: bool) -> Color32 {
        let colour = self.colouring.colour(&self.theme, number);
        if lit { colour } else { self.theme.dimmed(colour) }
    }

    /// The colour of what is merged, of a category: its scope and size are not known.
    fn merged(&self, category: memscope_core::Category) -> Color32 {
        let colour = match self.colouring {
            Colouring::Category => self.theme.category(category),
            Colouring::Scope | Colouring::Size => self.theme.faint(),
        };
        let paler = colour.lerp_to_gamma(self.theme.ground(), 0.4);
        if self.shared.dims(category) { self.theme.dimmed(paler) } else { paler }
    }
}

/// Draws all bands; how many are seen and lower than a pixel.
pub fn bands(painter: &Painter, plot: &Plot<'_>, paint: &Paint<'_>) -> usize {
    let view = plot.view;
    let selected = paint.shared.selection.pick();
    let selected = selected.filter(|pick| view.bands.iter().any(|band| band.pick == *pick));
    let colours = paint.colouring.colours();
    let mut meshes = vec![Mesh::default(); colours * 2];
    let mut names: Vec<(Rect, &Band, usize)> = Vec::new();
    let (mut thin, mut pieces) = (0, Vec::new());
    for band in &view.bands {
        plot.pieces(band, &mut pieces);
        if pieces.is_empty() {
            thin += usize::from(plot.is_thin(band));
            continue;
        }
        let number = colour::number(paint.colouring, paint.scopes, view, band);
        let number = if paint.lights(view, band, selected) { number } else { number + colours };
        let colour = paint.colour(number % colours, number < colours);
        for (position, piece) in pieces.iter().enumerate() {
            let mut shown = *piece;
            if piece.height() >= PARTED {
                shown.min.y += plot.pixel;
            }
            if position == 0 && piece.width() >= PARTED {
                shown.min.x += plot.pixel;
            }
            meshes[number].add_colored_rect(shown, colour);
        }
        if number >= colours {
            continue;
        }
        let large = pieces.iter().filter(|piece| piece.width() >= NAMED[0] && piece.height() >= NAMED[1]);
        let largest = large.max_by(|one, other| one.area().total_cmp(&other.area()));
        names.extend(largest.map(|piece| (*piece, band, number)));
    }
    for mesh in meshes.into_iter().filter(|mesh| !mesh.is_empty()) {
        painter.add(Shape::mesh(mesh));
    }
    names.sort_by(|one, other| other.0.area().total_cmp(&one.0.area()));
    for (piece, band, number) in names.into_iter().take(NAMES) {
        let colour = paint.colour(number, true);
        name(painter, piece, &words::on_band(view, band), paint.theme.on(colour));
    }
    thin
}

/// One line of text in a rectangle, cut where it is too long.
fn name(painter: &Painter, rect: Rect, text: &str, ink: Color32) {
    let mut job = LayoutJob::simple_singleline(text.to_owned(), FontId::proportional(10.5), ink);
    // In steps: while one zooms, not every width is a layout of its own.
    let room = ((rect.width() - 6.0) / 8.0).floor() * 8.0;
    job.wrap = TextWrapping::truncate_at_width(room);
    let galley = painter.layout_job(job);
    let at = pos2(rect.left() + 3.0, rect.center().y - galley.size().y / 2.0);
    painter.with_clip_rect(rect.intersect(painter.clip_rect())).galley(at, galley, ink);
}

/// Draws what is not drawn itself: on top of all bands, paler and striped, by category.
pub fn rest(painter: &Painter, plot: &Plot<'_>, paint: &Paint<'_>) {
    let view = plot.view;
    if view.order != BandOrder::Stacked || !view.has_rest() {
        return;
    }
    let mut meshes = vec![Mesh::default(); STACKED.len()];
    let mut areas = Vec::new();
    let colours = STACKED.map(|category| paint.merged(category));
    for (left, right, rest) in runs(plot) {
        let (mut below, first) = (rest.drawn, plot.y(rest.drawn));
        let mut bottom = first;
        for ((category, colour), mesh) in STACKED.iter().zip(colours).zip(&mut meshes) {
            below = below.saturating_add(rest.live[*category as usize]);
            let top = plot.y(below);
            if top < bottom {
                mesh.add_colored_rect(Rect::from_min_max(pos2(left, top), pos2(right, bottom)), colour);
                bottom = top;
            }
        }
        if bottom < first {
            areas.push(Rect::from_min_max(pos2(left, bottom), pos2(right, first)));
        }
    }
    meshes.push(striped(&areas, plot, paint.theme.ground().gamma_multiply(0.4)));
    for mesh in meshes.into_iter().filter(|mesh| !mesh.is_empty()) {
        painter.add(Shape::mesh(mesh));
    }
}

/// What is merged from one pixel to another. Of several moments within a pixel the one with most bytes.
fn runs<'a>(plot: &Plot<'a>) -> Vec<(f32, f32, &'a Rest)> {
    let view = plot.view;
    let end = view.range.end.min(Nanoseconds(view.as_of.0.saturating_add(1)));
    let until = |next: usize| view.rest.get(next).map_or(end, |rest| rest.time);
    let all = |rest: &Rest| rest.drawn.saturating_add(rest.bytes());
    let mut runs = Vec::new();
    let mut at = 0;
    while at < view.rest.len() {
        let left = plot.left(view.rest[at].time);
        let mut next = at + 1;
        while next < view.rest.len() && plot.left(until(next)) <= left {
            next += 1;
        }
        let right = plot.right(until(next));
        let pixel = (left + plot.pixel).min(right);
        let most = view.rest[at..next].iter().max_by_key(|rest| all(rest)).unwrap_or(&view.rest[at]);
        let last = &view.rest[next - 1];
        runs.extend(
            [(left, pixel, most), (pixel, right, last)].into_iter().filter(|run| run.0 < run.1 && run.2.bytes() > 0),
        );
        at = next;
    }
    runs
}

/// Level stripes over areas that lie side by side: upright ones would look like what comes and goes.
fn striped(areas: &[Rect], plot: &Plot<'_>, colour: Color32) -> Mesh {
    let mut mesh = Mesh::default();
    let chart = plot.chart.rect;
    let mut y = (chart.top() / STRIPES).ceil() * STRIPES;
    while y < chart.bottom() {
        let mut open: Option<Rect> = None;
        for area in areas.iter().filter(|area| area.top() <= y && y < area.bottom()) {
            match &mut open {
                Some(stripe) if stripe.right() >= area.left() => stripe.max.x = area.right(),
                _ => {
                    open.iter().for_each(|stripe| mesh.add_colored_rect(*stripe, colour));
                    open = Some(Rect::from_min_max(pos2(area.left(), y), pos2(area.right(), y + plot.pixel)));
                }
            }
        }
        open.iter().for_each(|stripe| mesh.add_colored_rect(*stripe, colour));
        y += STRIPES;
    }
    mesh
}

/// A line around a band.
pub fn outline(painter: &Painter, plot: &Plot<'_>, band: &Band, stroke: Stroke) {
    let mut pieces = Vec::new();
    plot.pieces(band, &mut pieces);
    match pieces[..] {
        [] => {}
        [piece] => {
            painter.rect_stroke(piece.expand2(vec2(0.5, 0.5)), 0.0, stroke, StrokeKind::Middle);
        }
        _ => {
            let above = pieces.iter().flat_map(|piece| [piece.left_top(), piece.right_top()]);
            let below = pieces.iter().rev().flat_map(|piece| [piece.right_bottom(), piece.left_bottom()]);
            painter.add(Shape::closed_line(above.chain(below).collect(), stroke));
        }
    }
}

/// Bytes of what is merged where most of it is, for those who want it in words.
pub fn most_merged(view: &BandsView) -> String {
    units::bytes(view.rest.iter().map(memscope_core::explorer::Rest::bytes).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::bytes::Part;
    use super::*;
    use crate::shared::Span;
    use crate::views::timeline::Chart;

    #[test]
    fn a_moment_with_most_bytes_is_seen_and_ends_with_its_pixel() {
        let rest = |time, bytes| Rest { time: Nanoseconds(time), live: [bytes, 0, 0, 0, 0, 0, 0], ..Rest::default() };
        let view = BandsView {
            as_of: Nanoseconds(1000),
            range: Nanoseconds(0)..Nanoseconds(1000),
            rest: vec![rest(0, 100), rest(505, 900), rest(506, 200)],
            ..BandsView::default()
        };
        // 100 by 100 pixels for 1000 ns and 1000 bytes.
        let rect = Rect::from_min_max(pos2(0.0, 0.0), pos2(100.0, 100.0));
        let chart = Chart { rect, seen: Span { begin: 0, end: 1000 } };
        let plot = Plot { view: &view, chart, part: Part::all(1000.0), pixel: 1.0 };
        let runs: Vec<(f32, f32, u64)> =
            runs(&plot).into_iter().map(|(left, right, rest)| (left, right, rest.bytes())).collect();
        assert_eq!(runs, [(0.0, 1.0, 100), (1.0, 51.0, 100), (50.0, 51.0, 900), (51.0, 100.0, 200)]);
    }

    #[test]
    fn stripes_go_on_over_areas_that_touch() {
        let view = BandsView::default();
        let rect = Rect::from_min_max(pos2(0.0, 0.0), pos2(100.0, 10.0));
        let chart = Chart { rect, seen: Span { begin: 0, end: 1000 } };
        let plot = Plot { view: &view, chart, part: Part::all(1000.0), pixel: 1.0 };
        let area = |left, right, top| Rect::from_min_max(pos2(left, top), pos2(right, 9.0));
        let mesh = striped(&[area(0.0, 10.0, 3.0), area(10.0, 30.0, 7.0), area(40.0, 50.0, 3.0)], &plot, Color32::RED);
        // At 4 two of them; at 8 the first two together, and the third.
        let corners: Vec<f32> = mesh.vertices.chunks(4).flat_map(|quad| [quad[0].pos.x, quad[3].pos.x]).collect();
        assert_eq!(corners, [0.0, 10.0, 40.0, 50.0, 0.0, 30.0, 40.0, 50.0]);
    }
}
