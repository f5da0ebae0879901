//! What is asked for: the filter with its help, groups, columns, and what is selected elsewhere as a filter.
//!
//! Owns: those fields and buttons. Refuses: to read a filter: core says what is wrong with one.

use eframe::egui::{ComboBox, Grid, Key, RichText, TextEdit, Ui};
use memscope_core::explorer::filter::TERMS;
use memscope_core::explorer::{Grouping, and_terms, exact_term};

use super::list::List;
use super::rows::COLUMNS;
use crate::shared::Selection;
use crate::view::ViewContext;

/// Groups, by their names.
const GROUPS: [(Option<Grouping>, &str); 6] = [
    (None, "not grouped"),
    (Some(Grouping::Name), "by name"),
    (Some(Grouping::Scope), "by scope"),
    (Some(Grouping::Line), "by line"),
    (Some(Grouping::Size), "by size"),
    (Some(Grouping::Category), "by category"),
];

impl List {
    /// Draws the fields, in a row that is begun.
    pub(super) fn ask(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        self.filter_field(ui, context);
        self.offer(ui, context);
        self.groups(ui, context);
        self.columns(ui, context);
    }

    fn filter_field(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let label = ui.label("Filter");
        let field = TextEdit::singleline(&mut self.filter).desired_width(170.0).hint_text("name, >4MiB, scope:h.3 …");
        let field = ui.add(field.background_color(context.theme.grid())).labelled_by(label.id);
        if field.changed() {
            self.anew();
        }
        // What pressed `/` is not typed: the field takes what follows.
        if std::mem::take(&mut self.types) {
            field.request_focus();
        }
        if field.has_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
            field.surrender_focus();
        }
        ui.menu_button("?", |ui| {
            ui.label("Terms, separated by blanks, must all hold. What is listed …");
            Grid::new("terms").num_columns(2).show(ui, |ui| {
                for (term, says) in TERMS {
                    if ui.link(RichText::new(*term).monospace()).clicked() {
                        let begin = term.find([':', '=']).map_or(0, |at| at + 1);
                        let begin = if term.starts_with(['>', '<']) { 1 } else { begin };
                        self.filter = format!("{} {}", self.filter.trim(), &term[..begin]).trim_start().to_owned();
                        self.types = true;
                        ui.close();
                    }
                    ui.label(*says);
                    ui.end_row();
                }
            });
        })
        .response
        .on_hover_text("terms of a filter")
        .accessible_name("Terms of a filter");
        if !self.filter.is_empty() && ui.small_button("×").accessible_name("Clear the filter").clicked() {
            self.filter.clear();
            self.opened.clear();
            self.anew();
        }
        if let Some((filter, group)) = self.opened.last().cloned()
            && ui.small_button("Back to groups").clicked()
        {
            self.opened.pop();
            (self.filter, self.group) = (filter, group);
            self.anew();
        }
    }

    /// What is selected in another view, as a filter.
    fn offer(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let (name, term) = match &context.shared.selection {
            Selection::Scope(path) if path.is_empty() => ("outside all scopes".to_owned(), exact_term("scope", "")),
            Selection::Scope(path) => (format!("in {path}"), exact_term("inside", path)),
            Selection::Category(category) => (category.name().to_owned(), exact_term("category", category.name())),
            Selection::Group(category, path) => {
                let terms = format!("{} {}", exact_term("category", category.name()), exact_term("inside", path));
                (format!("{} in {path}", category.name()), terms)
            }
            Selection::Allocation(_) | Selection::None => return,
        };
        if and_terms(&self.filter, &term) == self.filter {
            return;
        }
        let button = ui.small_button(RichText::new(format!("Only {name}")).color(context.theme.accent()));
        if button.on_hover_text("what is selected, as a filter").clicked() {
            self.only(&term);
        }
    }

    fn groups(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let before = self.group;
        let named = GROUPS.iter().find(|(group, _)| *group == self.group).map_or("", |(_, name)| name);
        let chosen = ComboBox::from_id_salt("groups").width(90.0).selected_text(named).show_ui(ui, |ui| {
            for (group, name) in GROUPS {
                if group != Some(Grouping::Line) || context.answer.session.stacks {
                    ui.selectable_value(&mut self.group, group, name);
                }
            }
        });
        chosen.response.accessible_name("Groups").on_hover_text("rows that are alike as one");
        if self.group != before {
            self.opened.clear();
            self.anew();
        }
    }

    fn columns(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if self.group.is_some() {
            return;
        }
        let hidden = self.table.hidden();
        let name = if hidden > 0 { format!("Columns ({hidden} hidden)") } else { "Columns".to_owned() };
        ui.menu_button(name, |ui| {
            for (position, (column, _)) in COLUMNS.iter().enumerate().skip(1) {
                if column.title == "line" && !context.answer.session.stacks {
                    continue;
                }
                let mut wanted = !self.unwanted.contains(&position);
                if ui.checkbox(&mut wanted, format!("{}: {}", column.title, column.says)).changed() {
                    self.unwanted.retain(|unwanted| *unwanted != position);
                    self.unwanted.extend((!wanted).then_some(position));
                }
            }
        })
        .response
        .on_hover_text("where there is no room for all, some are hidden: take others away to see them");
    }
}
