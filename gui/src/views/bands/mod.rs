//! Memory over time: each allocation as a band, stacked or where its address is.
//!
//! Owns: what is asked, the controls, and the order in which things are drawn. Refuses: to choose what is drawn itself and what is
//! merged (core does), and to hide how much that is.
//!
//! | file | what it does |
//! | --- | --- |
//! | address | in the order of addresses: containers, gaps |
//! | bytes | what is seen of bytes |
//! | colour | which colour a band has |
//! | draw | bands, what is merged, words on them |
//! | plot | where bands are on the screen |
//! | pointer | hover, clicks, keys, names |
//! | words | the same in words |

mod address;
mod bytes;
mod colour;
mod draw;
mod plot;
mod pointer;
mod words;

use eframe::egui::accesskit::Role;
use eframe::egui::{
    ComboBox, DragValue, FontId, Id, PointerButton, Rect, Response, RichText, Sense, Stroke, TextEdit, Ui, WidgetInfo,
    pos2, vec2,
};
use memscope_core::explorer::filter::TERMS;
use memscope_core::explorer::{BandOrder, BandsQuery, BandsView, Pick, Query, Target};

use crate::panels;
use crate::shared::{Selection, Shared, Span};
use crate::view::{OwnKey, View, ViewContext};
use crate::views::timeline::{self, Chart, MARGIN, RULER};
use bytes::Part;
use colour::{Colouring, Scopes};
use draw::Paint;
use plot::Plot;

/// Space above the highest band, as a share.
const ABOVE: f64 = 0.03;

/// The view.
pub struct Bands {
    order: BandOrder,
    colouring: Colouring,
    filter: String,
    /// At most so many bands.
    limit: usize,
    /// What is asked: a span, and its columns.
    wanted: Option<(Span, usize)>,
    /// What is seen of bytes; all of them where there is none.
    part: Option<Part>,
    scopes: Scopes,
    /// The band that keys have led to.
    marked: Option<Pick>,
    /// The band under the pointer.
    pointed: Option<Pick>,
    drag: Option<timeline::pointer::Drag>,
    keyboard: Option<Id>,
    /// The filter is to take what is typed.
    types: bool,
}

impl Default for Bands {
    fn default() -> Bands {
        Bands {
            order: BandOrder::Stacked,
            colouring: Colouring::Category,
            filter: String::new(),
            limit: BandsQuery::default().limit,
            wanted: None,
            part: None,
            scopes: Scopes::default(),
            marked: None,
            pointed: None,
            drag: None,
            keyboard: None,
            types: false,
        }
    }
}

impl View for Bands {
    fn title(&self) -> &'static str {
        "Memory over time"
    }

    fn ask(&self, _shared: &Shared, query: &mut Query) {
        let Some((span, columns)) = self.wanted else { return };
        let (order, limit, filter) = (self.order, self.limit, self.filter.trim().to_owned());
        let range = span.from()..span.until();
        query.bands = Some(BandsQuery { range, order, limit, filter, columns, ..BandsQuery::default() });
        for pick in [self.pointed, self.marked].into_iter().flatten() {
            if !query.picks.contains(&pick) {
                query.picks.push(pick);
            }
        }
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        ui.set_width(ui.available_width());
        let columns = self.wanted.map_or(1024, |(_, columns)| columns);
        self.wanted = Some((timeline::wanted(context), columns));
        self.controls(ui, context);
        let line = self.filter(ui, context);
        let Some(view) = context.answer.bands.clone() else {
            let reading = if context.answer.session.reading { "… the allocations are being read" } else { "…" };
            ui.weak(reading);
            return;
        };
        self.scopes.follow(&view);
        self.legend(ui, context, &view);
        panels::partial::ui(ui, context, panels::partial::SPAN, view.partial);
        self.chart(ui, context, &view, line);
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        match &context.answer.bands {
            Some(view) => words::table(context.answer, view, &self.filter),
            None => "Memory over time: not known yet\n".to_owned(),
        }
    }

    fn search(&mut self) {
        self.types = true;
    }

    fn keys(&self) -> &'static [OwnKey] {
        pointer::KEYS
    }

    fn keyboard(&self) -> Option<Id> {
        self.keyboard
    }
}

impl Bands {
    /// What is drawn how, to be chosen.
    fn controls(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        ui.horizontal_wrapped(|ui| {
            for (order, name) in [(BandOrder::Stacked, "Stacked"), (BandOrder::Address, "By address")] {
                if ui.selectable_label(self.order == order, name).clicked() {
                    (self.order, self.part) = (order, None);
                }
            }
            ui.separator();
            for (colouring, name) in Colouring::ALL {
                let says = "what colours tell";
                ui.selectable_value(&mut self.colouring, colouring, name).on_hover_text(says);
            }
            ui.separator();
            let label = ui.label(RichText::new("bands").color(context.theme.faint()));
            let most = DragValue::new(&mut self.limit).range(1..=BandsQuery::MOST).speed(20.0);
            ui.add(most).labelled_by(label.id).on_hover_text("at most so many allocations are drawn one by one");
            devices(ui, context);
            if self.part.is_some() && ui.button("All bytes").clicked() {
                self.part = None;
            }
        });
    }

    /// The filter, and beside it room for a line of text.
    fn filter(&mut self, ui: &mut Ui, context: &ViewContext<'_>) -> Rect {
        let error = context.answer.bands.as_ref().and_then(|view| view.filter_error.clone());
        let line = ui.horizontal(|ui| {
            let label = ui.label(RichText::new("filter").color(context.theme.faint()));
            let width = (ui.available_width() * 0.35).clamp(100.0, 260.0);
            let field = TextEdit::singleline(&mut self.filter).desired_width(width).hint_text("attn >4MiB step:12");
            let field = ui.add(field).labelled_by(label.id).on_hover_ui(terms);
            if std::mem::take(&mut self.types) {
                field.request_focus();
            }
            let room = vec2(ui.available_width().max(40.0), ui.spacing().interact_size.y);
            ui.allocate_exact_size(room, Sense::hover()).0
        });
        if let Some(error) = error {
            ui.label(RichText::new(format!("{error}; all are drawn")).color(context.theme.error()));
        }
        line.inner
    }

    /// What colours mean; a click on one selects what has it.
    fn legend(&self, ui: &mut Ui, context: &mut ViewContext<'_>, view: &BandsView) {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = 10.0;
            for colour::Entry { number, name, leads } in colour::legend(self.colouring, &self.scopes, view) {
                let font = FontId::proportional(11.0);
                let galley = ui.painter().layout_no_wrap(name.clone(), font, context.theme.text());
                let (rect, response) = ui.allocate_exact_size(galley.size() + vec2(14.0, 0.0), Sense::click());
                let swatch = Rect::from_center_size(rect.left_center() + vec2(5.0, 0.0), vec2(9.0, 9.0));
                ui.painter().rect_filled(swatch, 2.0, self.colouring.colour(&context.theme, number));
                let selected = leads.as_ref().is_some_and(|leads| *leads == context.shared.selection);
                if selected {
                    ui.painter().rect_stroke(
                        rect.expand(2.0),
                        2.0,
                        Stroke::new(1.0, context.theme.text()),
                        eframe::egui::StrokeKind::Outside,
                    );
                }
                ui.painter().galley(pos2(rect.left() + 14.0, rect.top()), galley, context.theme.text());
                let role = if leads.is_some() { Role::Button } else { Role::Label };
                response.widget_info(|| WidgetInfo::selected(role, true, selected, format!("Colour of {name}")));
                if response.clicked()
                    && let Some(leads) = leads
                {
                    context.shared.toggle(leads);
                }
            }
        });
    }

    fn chart(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, view: &BandsView, line: Rect) {
        let rect = Rect::from_min_size(ui.cursor().min, ui.available_size().max(vec2(160.0, 80.0)));
        let rect = Rect::from_x_y_ranges(timeline::sides(ui, rect), rect.y_range());
        let response = ui.interact(rect, ui.scope_id().with("bands"), Sense::click_and_drag());
        self.keyboard = Some(response.id);
        ui.advance_cursor_after_rect(rect);
        let theme = context.theme;
        let painter = ui.painter_at(rect);
        painter.rect_filled(rect, 0.0, theme.ground());
        let top = rect.top() + RULER + timeline::bands::HEIGHT;
        let inner = Rect::from_min_max(pos2(rect.left() + MARGIN, top), pos2(rect.right() - 8.0, rect.bottom() - 6.0));
        if inner.width() < 20.0 || inner.height() < 20.0 {
            return;
        }
        let pixel = 1.0 / ui.ctx().pixels_per_point();
        self.wanted = self.wanted.map(|(span, _)| (span, (inner.width() / pixel).ceil() as usize));
        let above = if view.order == BandOrder::Stacked { ABOVE } else { 0.0 };
        let top = (view.height as f64 * (1.0 + above)).max(1024.0);
        self.part = self.part.and_then(|part| part.within(top));
        let part = self.part.unwrap_or(Part::all(top));
        let plot = Plot { view, chart: Chart { rect: inner, seen: context.seen() }, part, pixel };
        let label = timeline::pointer::label(&painter, context, &plot.chart, rect);
        timeline::axis::time(&painter, &plot.chart, rect.top(), label.map(|(place, _)| place.x_range()), &theme);
        self.steps(ui, context, &plot, rect.top() + RULER);
        if view.order == BandOrder::Stacked {
            bytes::axis(&painter, &plot, &theme);
        }
        let thin = self.draw(&painter.with_clip_rect(inner), context, &plot);
        timeline::bands::unlisted(&painter, context, &plot.chart);
        if view.order == BandOrder::Address {
            address::over(&painter, &plot, &theme, context.shared);
        }
        timeline::pointer::draw(&painter, context, &plot.chart, rect);
        self.summary(ui, context, view, (line, thin));
        self.read_keys(ui, &response, context, view);
        self.hover(ui, &response, context, &plot);
        self.name_largest(ui, &response, context, &plot);
        self.clicked(ui, &response, context, &plot);
        self.look_closer(ui, &response, &plot, top);
        self.drag = timeline::pointer::navigate(ui, &response, context, &plot.chart, self.drag.take());
        let marked = view.bands.iter().find(|band| Some(band.pick) == self.marked);
        let marked = marked.map(|band| words::line(view, band));
        response.widget_info(|| {
            let label = "Memory over time: allocations as bands";
            let info = WidgetInfo::labeled(Role::Canvas, true, label);
            WidgetInfo { value: None, current_text_value: marked.clone(), ..info }
        });
    }

    /// Zooms and moves in bytes: with Alt and wheel, and while one moves in time.
    fn look_closer(&mut self, ui: &Ui, response: &Response, plot: &Plot<'_>, top: f64) {
        let (alt, shift, scroll) =
            ui.input(|input| (input.modifiers.alt, input.modifiers.shift, input.smooth_scroll_delta()));
        let rect = plot.chart.rect;
        if let Some(pointer) = response.hover_pos().filter(|_| alt && scroll.y != 0.0) {
            let share = f64::from((rect.bottom() - pointer.y) / rect.height()).clamp(0.0, 1.0);
            self.part = plot.part.scaled(share, (-f64::from(scroll.y) * timeline::pointer::NOTCH).exp(), top);
        }
        let moves = response.dragged() && (shift || !response.dragged_by(PointerButton::Primary));
        if let Some(part) = self.part.filter(|_| moves) {
            self.part = part.moved(f64::from(response.drag_delta().y / rect.height()), top);
        }
    }

    /// Where steps are.
    fn steps(&self, ui: &Ui, context: &mut ViewContext<'_>, plot: &Plot<'_>, top: f32) {
        let Some(window) = context.answer.window.clone() else { return };
        let rect = plot.chart.rect;
        let line = Rect::from_x_y_ranges(rect.x_range(), top..=top + timeline::bands::HEIGHT - 2.0);
        timeline::bands::steps(ui, context, &plot.chart, line, &window);
    }

    /// Draws all that is in the chart; how many bands are seen and lower than a pixel.
    fn draw(&self, painter: &eframe::egui::Painter, context: &ViewContext<'_>, plot: &Plot<'_>) -> usize {
        let (theme, shared) = (context.theme, &*context.shared);
        if plot.view.order == BandOrder::Address {
            address::behind(painter, plot, &theme);
        }
        let paint = Paint { colouring: self.colouring, scopes: &self.scopes, theme, shared };
        draw::rest(painter, plot, &paint);
        let thin = draw::bands(painter, plot, &paint);
        for band in &plot.view.bands {
            if shared.selection == Selection::Allocation(band.pick) {
                draw::outline(painter, plot, band, Stroke::new(2.0, theme.text()));
            } else if self.marked == Some(band.pick) {
                draw::outline(painter, plot, band, Stroke::new(2.0, theme.accent()));
            }
        }
        thin
    }

    /// How many are drawn, and what is not.
    fn summary(&self, ui: &Ui, context: &ViewContext<'_>, view: &BandsView, (line, thin): (Rect, usize)) {
        let mut text = match words::without(view) {
            Some(why) => why.to_owned(),
            None => words::summary(view, &self.filter, thin),
        };
        let lost = words::lost(context.answer, view, &context.shared.selection, context.seen());
        let marked = view.bands.iter().find(|band| Some(band.pick) == self.marked);
        if let Some(more) = lost.or_else(|| marked.map(|band| format!("marked: {}", words::line(view, band)))) {
            text = format!("{more} · {text}");
        }
        let colour = context.theme.faint();
        let painter = ui.painter_at(line);
        painter.text(line.left_center(), eframe::egui::Align2::LEFT_CENTER, &text, FontId::proportional(11.0), colour);
        let response = ui.interact(line, ui.scope_id().with("summary"), Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &text));
        response.on_hover_text(text);
    }
}

/// What the filter understands.
fn terms(ui: &mut Ui) {
    let terms: Vec<&str> = TERMS.iter().map(|(term, _)| *term).collect();
    ui.label(format!("{}; separated by blanks: all must hold", terms.join(", ")));
}

/// The device that is looked at, where there are several.
fn devices(ui: &mut Ui, context: &mut ViewContext<'_>) {
    if context.answer.devices.len() < 2 {
        return;
    }
    let name = |target: Target| match target {
        Target::All => "all devices".to_owned(),
        Target::Device(position) => format!("GPU {}", context.answer.gpu(position.into())),
        Target::Process(_) => "one process".to_owned(),
        Target::Host => "host memory".to_owned(),
    };
    let label = ui.label(RichText::new("device").color(context.theme.faint()));
    let all = [Target::All].into_iter().chain((0..context.answer.devices.len()).map(|at| Target::Device(at as u16)));
    let shown = ComboBox::from_id_salt("device").selected_text(name(context.shared.target)).show_ui(ui, |ui| {
        for target in all {
            ui.selectable_value(&mut context.shared.target, target, name(target));
        }
    });
    shown.response.labelled_by(label.id);
}
