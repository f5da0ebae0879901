//! The table of allocations: what is asked for, and what a click in it does.
//!
//! Owns: filter, order and groups that were chosen, and which groups were opened. Refuses: cells (`rows`).

use std::fmt::Write as _;

use eframe::egui::{RichText, Ui};
use memscope_core::explorer::{Answer, At, Column, Grouping, Row, RowsQuery, RowsView, and_terms, group_term};
use memscope_core::report::units;

use super::rows::{self, Drawn};
use crate::panels;
use crate::shared::{Selection, Shared};
use crate::table::{Did, Table};
use crate::view::ViewContext;

/// The table's state.
pub struct List {
    pub(super) filter: String,
    pub(super) group: Option<Grouping>,
    sort: Column,
    descending: bool,
    /// Columns of single allocations that are not wished for.
    pub(super) unwanted: Vec<usize>,
    /// Filter and groups before each group that was opened.
    pub(super) opened: Vec<(String, Option<Grouping>)>,
    pub(super) table: Table,
    /// The filter is to take what is typed.
    pub(super) types: bool,
    /// The selection to which the table was scrolled last.
    scrolled: Selection,
    /// Keys came to a row that is not known yet: it is selected as soon as it is.
    awaited: bool,
    /// Why a group could not be opened.
    pub(super) said: Option<&'static str>,
}

impl Default for List {
    fn default() -> List {
        List {
            filter: String::new(),
            group: None,
            sort: Column::Size,
            descending: true,
            unwanted: Vec::new(),
            opened: Vec::new(),
            table: Table::default(),
            types: false,
            scrolled: Selection::None,
            awaited: false,
            said: None,
        }
    }
}

impl List {
    /// What it asks for.
    pub fn query(&self, shared: &Shared) -> RowsQuery {
        RowsQuery {
            sort: self.sort,
            descending: self.descending,
            filter: self.filter.clone(),
            group: self.group,
            window: self.table.wanted(),
            find: shared.selection.pick().filter(|_| self.group.is_none()),
        }
    }

    /// The filter takes what is typed, from the next frame on.
    pub fn type_filter(&mut self) {
        self.types = true;
    }

    /// The list is another one from now on.
    pub(super) fn anew(&mut self) {
        self.table.to_top();
        (self.awaited, self.said) = (false, None);
    }

    /// Only what these terms let through, too.
    pub(super) fn only(&mut self, terms: &str) {
        self.filter = and_terms(&self.filter, terms);
        self.anew();
    }

    /// Draws it.
    pub fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let Some(view) = context.answer.rows.clone() else {
            ui.weak("…");
            return;
        };
        ui.label(totals(context.answer, &view, self.group.is_some()));
        self.remarks(ui, context, &view);
        if view.matching == 0 {
            let text = match (view.total, context.answer.now.partial) {
                (0, None) => {
                    "Nothing is live at this moment: P goes to the peak, a click on the timeline to any other."
                }
                (0, Some(_)) => "No allocation of this moment is kept.",
                _ => "The filter lets nothing through.",
            };
            ui.label(text);
            return;
        }
        self.follow(context.shared, &view);
        let drawn = Drawn::of(&view, context, (self.group, self.sort, self.descending), &self.unwanted);
        let did = self.table.ui(ui, &drawn, &context.theme);
        match did {
            Some(Did::Sort(column)) => self.sort_by(drawn.by(column)),
            Some(Did::Choose(row)) => self.choose(context, &view, row),
            Some(Did::Open(row)) => self.open(context, &view, row),
            None => {}
        }
        if self.awaited
            && let Some(row) = self.table.current()
            && row_at(&view, row).is_some()
        {
            self.choose(context, &view, row);
        }
    }

    fn sort_by(&mut self, by: Option<Column>) {
        match by {
            Some(by) if by == self.sort => self.descending = !self.descending,
            Some(by) => (self.sort, self.descending) = (by, !by.is_words()),
            None => {}
        }
        self.anew();
    }

    /// Scrolls to what was selected elsewhere, once.
    fn follow(&mut self, shared: &Shared, view: &RowsView) {
        if self.scrolled == shared.selection || self.group.is_some() {
            return;
        }
        let Some(pick) = shared.selection.pick() else {
            self.scrolled = shared.selection.clone();
            return;
        };
        // An answer to an earlier question may speak of another one.
        let Some((_, found)) = view.found.filter(|(looked_for, _)| *looked_for == pick) else { return };
        self.scrolled = shared.selection.clone();
        if let Some(row) = found {
            self.table.follow(row);
        }
    }

    /// A row was clicked, or keys came to it: it is selected in all views, as far as these know what it is.
    fn choose(&mut self, context: &mut ViewContext<'_>, view: &RowsView, row: usize) {
        self.awaited = row_at(view, row).is_none();
        let Some(chosen) = row_at(view, row) else { return };
        let selection = rows::selection(chosen, self.group);
        if selection != Selection::None {
            // A click on what is selected takes that back; keys come to it anew.
            match self.table.has_keys() && context.shared.selection != selection {
                true => context.shared.selection = selection,
                false => context.shared.toggle(selection),
            }
        }
        self.scrolled = context.shared.selection.clone();
        self.table.put(row);
    }

    /// A group becomes the filter that shows what it holds; an allocation is selected.
    fn open(&mut self, context: &mut ViewContext<'_>, view: &RowsView, row: usize) {
        match row_at(view, row) {
            Some(Row::Group(group)) => {
                let Some(terms) = self.group.and_then(|grouping| group_term(grouping, group)) else {
                    self.said = Some("No filter says exactly what this group holds: its names differ, or it has none.");
                    return;
                };
                self.opened.push((self.filter.clone(), self.group));
                self.group = None;
                self.only(&terms);
            }
            Some(chosen) => {
                context.shared.selection = rows::selection(chosen, self.group);
                self.scrolled = context.shared.selection.clone();
            }
            None => {}
        }
    }

    /// What is odd about the list, each with what can be done about it.
    fn remarks(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, view: &RowsView) {
        let theme = context.theme;
        if let Some(error) = &view.filter_error {
            ui.label(RichText::new(format!("The filter lets everything through: {error}")).color(theme.error()));
        }
        if let Some(said) = self.said {
            ui.label(RichText::new(said).color(theme.warning()));
        }
        let now = context.answer.now.state.time;
        let partial = context.answer.now.partial;
        panels::partial::ui(ui, context, panels::partial::LIST, partial);
        if view.as_of < now {
            let text = format!("as of {}", panels::time(view.as_of.0));
            ui.label(RichText::new(text).color(theme.faint()));
        }
        let lost =
            context.shared.selection.pick().filter(|pick| view.found == Some((*pick, None)) && self.group.is_none());
        if let Some(pick) = lost {
            ui.horizontal_wrapped(|ui| {
                let detail = panels::selected::of(context.answer, context.shared);
                let lives = detail
                    .is_some_and(|detail| detail.row.birth <= now && detail.death.is_none_or(|death| now < death));
                let text = match lives {
                    true if !self.filter.is_empty() => "The filter does not let the selected allocation through.",
                    true => "The selected allocation is not in this list.",
                    false => "The selected allocation does not live at this moment.",
                };
                ui.label(RichText::new(text).color(theme.faint()));
                if !lives && ui.small_button("Go to when it was made").clicked() {
                    context.shared.cursor = At::Time(pick.birth);
                    self.scrolled = Selection::None;
                }
            });
        }
    }

    /// What is seen of it as text.
    pub fn text(&self, context: &ViewContext<'_>) -> String {
        let Some(view) = &context.answer.rows else { return "Allocations: not known yet\n".to_owned() };
        let mut text = format!("{}\n", totals(context.answer, view, self.group.is_some()));
        let said = |partial| panels::partial::text(context.answer, panels::partial::LIST, partial);
        text.extend(context.answer.now.partial.map(|partial| format!("{}\n", said(partial))));
        if !self.filter.is_empty() {
            let _ = writeln!(text, "filter: {}", self.filter);
        }
        if let Some(error) = &view.filter_error {
            let _ = writeln!(text, "The filter lets everything through: {error}");
        }
        let seen = self.table.seen();
        let rows = seen.clone().filter_map(|row| row_at(view, row));
        text.push_str(&rows::text(context.answer, rows));
        let (above, below) = (seen.start.min(view.matching), view.matching.saturating_sub(seen.end));
        if above + below > 0 {
            let [above, below] = [above, below].map(|rows| units::grouped(rows as u64));
            let _ = writeln!(text, "left out: {above} rows above, {below} rows below");
        }
        text
    }
}

/// A row, if it is among those that are known.
pub(super) fn row_at(view: &RowsView, row: usize) -> Option<&Row> {
    view.rows.get(row.checked_sub(view.first)?)
}

/// All rows in a line: `812 of 3,402 allocations, 1.20 GiB of 4.30 GiB live`.
fn totals(answer: &Answer, view: &RowsView, grouped: bool) -> String {
    let all = units::count(view.total as u64, "allocation", "allocations");
    let whole = answer.now.whole(view.total_bytes);
    let (bytes, whole) = (units::bytes(view.matching_bytes), units::bytes(whole));
    let listed = match view.matching_allocations == view.total {
        true if answer.now.partial.is_some() => format!("{all} kept, {bytes} of {whole} live"),
        true => format!("{all}, {whole} live"),
        false => format!("{} of {all}, {bytes} of {whole} live", units::grouped(view.matching_allocations as u64)),
    };
    // Other views count those of device memory alone.
    let listed = if answer.now.host.reserved > 0 { format!("{listed}, host memory among them") } else { listed };
    match grouped {
        true => format!("{}: {listed}", units::count(view.matching as u64, "group", "groups")),
        false => listed,
    }
}
