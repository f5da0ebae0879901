//! What pointer and keys do: explain, select, show the life of a band.
//!
//! Owns: the band that is marked by key, and names for whoever hears the window. Refuses: wheel and drags, which are those of the
//! timeline.

use std::cmp::Reverse;

use eframe::egui::accesskit::Role;
use eframe::egui::{EventFilter, Key, Pos2, Rect, Response, RichText, Sense, Ui, WidgetInfo, vec2};
use memscope_core::explorer::{Band, BandOrder, BandsView, Hit, Pick};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::units;

use super::plot::Plot;
use super::{Bands, address, words};
use crate::panels::{self, selected};
use crate::shared::{Selection, Span};
use crate::view::{OwnKey, ViewContext};
use crate::views::timeline::pointer::written;

/// Bands that have a name for whoever hears the window: the largest.
const NAMED: usize = 20;
/// Room at both sides of a life that is shown, as a share of it.
const ROOM: f64 = 0.08;

/// What keys do.
pub const KEYS: &[OwnKey] = &[
    OwnKey { key: Key::ArrowRight, says: "marks the allocation that was made next" },
    OwnKey { key: Key::ArrowLeft, says: "marks the allocation that was made before" },
    OwnKey { key: Key::ArrowUp, says: "marks the next larger allocation" },
    OwnKey { key: Key::ArrowDown, says: "marks the next smaller allocation" },
    OwnKey { key: Key::Enter, says: "selects the marked allocation everywhere" },
    OwnKey { key: Key::Z, says: "shows the life of the marked or selected allocation" },
];

impl Bands {
    /// Acts on keys.
    pub(super) fn read_keys(&mut self, ui: &Ui, response: &Response, context: &mut ViewContext<'_>, view: &BandsView) {
        let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        let pressed = |key| ui.input(|input| input.modifiers.is_none() && input.key_pressed(key));
        if response.has_focus() {
            for key in [Key::ArrowRight, Key::ArrowLeft, Key::ArrowUp, Key::ArrowDown] {
                if pressed(key) {
                    self.marked = self.beside(context, view, key).map(|band| band.pick);
                }
            }
        }
        if pressed(Key::Z) && !ui.ctx().text_edit_focused() {
            let selected = context.shared.selection.pick();
            if let Some(pick) = self.marked.or(selected) {
                show_life(ui, context, view, pick);
            }
        }
    }

    /// The band that a key leads to from the one that is marked, selected, or largest.
    fn beside<'a>(&self, context: &ViewContext<'_>, view: &'a BandsView, key: Key) -> Option<&'a Band> {
        let selected = context.shared.selection.pick();
        let is = |pick: Option<Pick>| view.bands.iter().position(|band| Some(band.pick) == pick);
        let Some(from) = is(self.marked).or_else(|| is(selected)) else {
            return view.bands.iter().max_by_key(|band| (band.bytes, Reverse(band.pick.birth)));
        };
        let mut order: Vec<usize> = (0..view.bands.len()).collect();
        if matches!(key, Key::ArrowUp | Key::ArrowDown) {
            order.sort_by_key(|at| (view.bands[*at].bytes, Reverse(*at)));
        }
        let at = order.iter().position(|at| *at == from)?;
        let next = match key {
            Key::ArrowRight | Key::ArrowUp => at.saturating_add(1).min(order.len() - 1),
            _ => at.saturating_sub(1),
        };
        view.bands.get(order[next])
    }

    /// Acts on a click.
    pub(super) fn clicked(&mut self, ui: &Ui, response: &Response, context: &mut ViewContext<'_>, plot: &Plot<'_>) {
        if !response.clicked() {
            return;
        }
        response.request_focus();
        let Some(pointer) = response.interact_pointer_pos() else {
            // By key.
            if let Some(pick) = self.marked {
                context.shared.toggle(Selection::Allocation(pick));
            }
            return;
        };
        let puts_cursor = ui.input(|input| input.modifiers.command) || !plot.chart.rect.contains(pointer);
        match plot.hit(pointer) {
            Some(Hit::Band(band)) if !puts_cursor => {
                self.chosen(ui, response, context, plot.view, plot.view.bands[band].pick);
            }
            Some(Hit::Rest(category)) if !puts_cursor => context.shared.toggle(Selection::Category(category)),
            _ => {
                let segment = (plot.view.order == BandOrder::Address && !puts_cursor)
                    .then(|| address::hit(plot, plot.chart.time(pointer.x), plot.offset(pointer.y)))
                    .flatten();
                match (segment, plot.chart.clicked(response)) {
                    (Some(segment), _) => context.shared.toggle(Selection::Allocation(segment.pick)),
                    (None, Some(at)) => context.shared.cursor = at,
                    (None, None) => {}
                }
            }
        }
    }

    /// A band was clicked: selected, and, at the second click, its life is shown.
    fn chosen(&mut self, ui: &Ui, response: &Response, context: &mut ViewContext<'_>, view: &BandsView, pick: Pick) {
        self.marked = None;
        if response.double_clicked() {
            context.shared.selection = Selection::Allocation(pick);
            show_life(ui, context, view, pick);
        } else {
            context.shared.toggle(Selection::Allocation(pick));
        }
    }

    /// Gives names to the largest bands that are seen, to the selected, and to the marked one.
    pub(super) fn name_largest(&mut self, ui: &Ui, canvas: &Response, context: &mut ViewContext<'_>, plot: &Plot<'_>) {
        let view = plot.view;
        let wanted = |band: &Band| {
            Some(band.pick) == self.marked || context.shared.selection == Selection::Allocation(band.pick)
        };
        let mut order: Vec<usize> =
            (0..view.bands.len()).filter(|at| plot.sees(view.bands[*at].begin..view.bands[*at].end)).collect();
        order.sort_by_key(|at| (!wanted(&view.bands[*at]), Reverse(view.bands[*at].bytes), *at));
        let mut pieces = Vec::new();
        for band in order.into_iter().take(NAMED).map(|at| &view.bands[at]) {
            let Some(piece) = plot.largest(band, &mut pieces) else { continue };
            let rect = Rect::from_center_size(piece.center(), piece.size().max(vec2(4.0, 4.0)));
            let response = ui.interact(rect, ui.scope_id().with(("band", band.pick)), Sense::click());
            let selected = context.shared.selection == Selection::Allocation(band.pick);
            response.widget_info(|| WidgetInfo::selected(Role::Button, true, selected, words::line(view, band)));
            if !response.clicked() {
                continue;
            }
            canvas.request_focus();
            match plot.chart.clicked(&response).filter(|_| ui.input(|input| input.modifiers.command)) {
                Some(at) => context.shared.cursor = at,
                None => self.chosen(ui, &response, context, view, band.pick),
            }
        }
    }

    /// Explains what is under the pointer.
    pub(super) fn hover(&mut self, ui: &Ui, response: &Response, context: &ViewContext<'_>, plot: &Plot<'_>) {
        self.pointed = None;
        let pointer = response.hover_pos().filter(|pointer| plot.chart.rect.contains(*pointer));
        let Some(pointer) = pointer.filter(|_| self.drag.is_none()) else { return };
        let stroke = eframe::egui::Stroke::new(1.0, context.theme.faint());
        ui.painter().vline(pointer.x, plot.chart.rect.y_range(), stroke);
        let hit = plot.hit(pointer);
        if let Some(Hit::Band(at)) = hit {
            let band = &plot.view.bands[at];
            self.pointed = Some(band.pick);
            super::draw::outline(ui.painter(), plot, band, eframe::egui::Stroke::new(1.0, context.theme.text()));
        }
        response.clone().on_hover_ui_at_pointer(|ui| explain(ui, context, plot, pointer, hit));
    }
}

/// What is under the pointer, in words.
fn explain(ui: &mut Ui, context: &ViewContext<'_>, plot: &Plot<'_>, pointer: Pos2, hit: Option<Hit>) {
    let (view, theme) = (plot.view, &context.theme);
    let time = plot.chart.time(pointer.x);
    match hit {
        Some(Hit::Band(at)) => {
            let band = &view.bands[at];
            ui.colored_label(theme.category(band.category), RichText::new(words::on_band(view, band)).strong());
            facts(ui, context, view, band);
            ui.weak("click selects it everywhere; double click shows its life");
        }
        Some(Hit::Rest(category)) => {
            let rest = view.rest_at(Nanoseconds(time)).copied().unwrap_or_default();
            ui.colored_label(theme.category(category), RichText::new(format!("merged {}", category.name())).strong());
            ui.label(format!("{} of {}", units::bytes(rest.live[category as usize]), category.name()));
            let count = units::count(rest.allocations, "allocation", "allocations");
            ui.label(format!(
                "{} in {count} of all categories, too small for a band of their own",
                units::bytes(rest.bytes())
            ));
            ui.weak("zoom in, or draw more bands; click lights up the category");
        }
        None if view.order == BandOrder::Address => {
            let offset = plot.offset(pointer.y);
            let segment = address::hit(plot, time, offset);
            if let Some(segment) = segment {
                ui.label(format!("free, or too small to be drawn, in a segment of {}", units::exact(segment.bytes)));
            }
            if let Some(address) = address::at(plot, offset) {
                ui.label(format!("address {address:#x}"));
            }
            ui.label(written(time, plot.chart.seen));
        }
        None => drop(ui.label(written(time, plot.chart.seen))),
    }
}

/// Everything about a band: from the answer, and until it is there, what the band says.
fn facts(ui: &mut Ui, context: &ViewContext<'_>, view: &BandsView, band: &Band) {
    let lines = match selected::detail(context.answer, band.pick) {
        Some(detail) => {
            let site = Some(detail.row.site.clone()).filter(|site| !site.is_empty());
            selected::facts(detail).into_iter().chain(site.map(|site| ("line", site))).collect()
        }
        None => vec![
            ("size", units::exact(band.bytes)),
            ("granted", units::exact(band.granted)),
            ("category", band.category.name().to_owned()),
            ("holder", band.held_by()),
            ("module", view.scope(band).map_or_else(String::new, |scope| scope.path.clone())),
            ("made", panels::time(band.pick.birth.0)),
            ("ended", band.death.map_or_else(|| "not yet".to_owned(), |death| panels::time(death.0))),
        ],
    };
    let life = words::life(band.pick.birth.0, band.death.map(|death| death.0), context.answer);
    for (name, value) in lines.into_iter().chain([("lived", panels::length(life.length()))]) {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 6.0;
            ui.label(RichText::new(name).color(context.theme.faint()));
            ui.label(value);
        });
    }
}

/// Shows the time that an allocation lives, and a little around it.
fn show_life(ui: &Ui, context: &mut ViewContext<'_>, view: &BandsView, pick: Pick) {
    let band = view.bands.iter().find(|band| band.pick == pick).map(|band| band.death);
    let death = band.or_else(|| selected::detail(context.answer, pick).map(|detail| detail.death));
    let Some(death) = death else { return };
    let life = words::life(pick.birth.0, death.map(|death| death.0), context.answer);
    let span = Span::between(life.at(-ROOM), life.at(1.0 + ROOM));
    let (whole, now) = (context.whole(), ui.input(|input| input.time));
    context.shared.zoom.show(span, whole, now);
}
