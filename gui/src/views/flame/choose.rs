//! What is asked: which tree, what it weighs, what is let through, what is looked for, and where one is in it.
//!
//! Owns: the lines above the tree. Refuses: a choice that cannot be drawn without saying why.

use eframe::egui::{Button, Color32, Key, Label, RichText, TextEdit, Ui};
use memscope_core::explorer::{FlameBy, FlameView, Frame};

use super::scene::{Chosen, Scene};
use super::{Flame, Weight, words};
use crate::panels;
use crate::view::ViewContext;

/// Largest width of a field.
const FIELD: f32 = 180.0;
/// Names in the line of parents are cut after so many letters.
const LETTERS: usize = 32;

/// Without stacks.
const NO_STACKS: &str = "No lines of the program were recorded: run it with memscope run --stacks python, or native";

impl Flame {
    /// The choices.
    pub(super) fn choose(&mut self, ui: &mut Ui, context: &ViewContext<'_>, stale: bool) {
        let stacks = context.answer.session.stacks;
        if !stacks && !context.answer.session.reading {
            self.by(FlameBy::Scope);
        }
        ui.horizontal_wrapped(|ui| {
            for (by, name, there) in [(FlameBy::Scope, "Scopes", true), (FlameBy::Stack, "Lines", stacks)] {
                let button = Button::selectable(self.by == by, name);
                if ui.add_enabled(there, button).on_disabled_hover_text(NO_STACKS).clicked() {
                    self.by(by);
                }
            }
            ui.separator();
            for (weight, name, says) in [
                (Weight::Cursor, "At the cursor", "what lives at the moment of the cursor"),
                (Weight::Peak, "At the peak", "what lives where live bytes are largest"),
                (Weight::Range, "Allocated in the range", "all that is made in the chosen range, freed since or not"),
            ] {
                if ui.selectable_label(self.weight == weight, name).on_hover_text(says).clicked() {
                    self.weight = weight;
                }
            }
        });
        ui.horizontal_wrapped(|ui| {
            let mut inverted = self.invert;
            let says = "the innermost first, and in it what it lies in, or what called it";
            if ui.checkbox(&mut inverted, "Invert").on_hover_text(says).changed() {
                (self.invert, self.zoom, self.mark) = (inverted, Vec::new(), None);
            }
            self.fields(ui, context.theme.grid());
            if stale {
                ui.spinner();
            }
        });
    }

    fn fields(&mut self, ui: &mut Ui, ground: Color32) {
        let width = ((ui.available_width() - 130.0) / 2.0).clamp(60.0, FIELD);
        let named = ui.label("Filter").id;
        let field = TextEdit::singleline(&mut self.filter).desired_width(width).hint_text("h.3 category:act >1MiB");
        ui.add(field.background_color(ground)).labelled_by(named);
        let named = ui.label("Search").id;
        let field = TextEdit::singleline(&mut self.search).desired_width(width).hint_text("part of a name  ( / )");
        let field = ui.add(field.background_color(ground)).labelled_by(named);
        if std::mem::take(&mut self.to_search) {
            field.request_focus();
        }
        self.to_found = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    }

    /// Another tree has other nodes.
    fn by(&mut self, by: FlameBy) {
        if self.by != by {
            (self.by, self.zoom, self.mark) = (by, Vec::new(), None);
        }
    }

    /// What is seen, what was found, and what is wrong, each in words.
    pub(super) fn say(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, scene: &Scene) {
        let (view, theme) = (&scene.view, context.theme);
        ui.add(Label::new(RichText::new(words::summary(context, view)).color(theme.faint())).truncate());
        panels::partial::ui(ui, context, panels::partial::LIST, view.partial);
        let wrong =
            view.filter_error.as_ref().map(|error| (format!("{error}; everything is let through"), theme.error()));
        let selected = match scene.chosen {
            Chosen::Among(_) => Some("what is selected is among smaller ones: zoom in, or filter"),
            Chosen::Nowhere => Some("what is selected is not in what is seen here"),
            Chosen::Nothing | Chosen::Nodes(_) => None,
        };
        let selected = selected.map(|text| (text.to_owned(), theme.warning()));
        let found = words::found(view).map(|found| (found, theme.accent()));
        for (text, colour) in wrong.into_iter().chain(found).chain(selected) {
            ui.label(RichText::new(text).color(colour));
        }
    }

    /// The nodes around what is seen, each to be gone back to.
    pub(super) fn parents(&mut self, ui: &mut Ui, view: &FlameView) {
        if view.zoomed == 0 {
            return;
        }
        let path = view.zoom_to(view.zoomed);
        let mut wanted: Option<Vec<Frame>> = None;
        ui.horizontal(|ui| {
            if ui.button("Back").on_hover_text("Backspace or Escape").clicked() {
                wanted = Some(path[..path.len() - 1].to_vec());
            }
            // As many of the innermost as there is room for; the others are in a menu.
            let room = ui.available_width() - 90.0;
            let wide = |position: usize| 8.0 * cut(&words::short(view, position)).chars().count() as f32 + 24.0;
            let mut first = view.zoomed;
            let mut used = wide(view.zoomed);
            while first > 1 && used + wide(first - 1) < room {
                first -= 1;
                used += wide(first);
            }
            let mut step = |ui: &mut Ui, position: usize| {
                let full = words::short(view, position);
                if ui.link(cut(&full)).on_hover_text(&full).clicked() {
                    wanted = Some(path[..position].to_vec());
                }
            };
            step(ui, 0);
            if first > 1 {
                ui.weak("›");
                ui.menu_button("…", |ui| (1..first).for_each(|position| step(ui, position)));
            }
            for position in first..view.zoomed {
                ui.weak("›");
                step(ui, position);
            }
            ui.weak("›");
            let full = words::short(view, view.zoomed);
            ui.strong(cut(&full)).on_hover_text(&full);
        });
        if let Some(wanted) = wanted {
            self.zoom = wanted;
        }
    }
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
