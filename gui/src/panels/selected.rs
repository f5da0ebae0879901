//! Everything about the allocation that is selected.
//!
//! Owns: the words for it. Refuses: to look it up; it comes with the answer.

use std::fmt::Write as _;

use eframe::egui::{CollapsingHeader, Color32, Grid, Label, RichText, Ui};
use memscope_core::MemoryKind;
use memscope_core::explorer::{AllocationDetail, AllocationRow, Answer, Pick, StackLine, Told};
use memscope_core::report::units;

use super::time;
use crate::shared::{Selection, Shared};
use crate::theme::Theme;

/// Up to so many lines of libraries are told at once.
const MOST_UNFOLDED: usize = 3;

/// The selected allocation, once the answer has it.
pub fn of<'a>(answer: &'a Answer, shared: &Shared) -> Option<&'a AllocationDetail> {
    detail(answer, shared.selection.pick()?)
}

/// Everything about an allocation, once it is known.
pub fn detail(answer: &Answer, pick: Pick) -> Option<&AllocationDetail> {
    answer.picks.iter().find(|detail| (detail.row.id, detail.row.birth) == (pick.id, pick.birth))
}

/// What is known of it, line by line.
pub fn facts(detail: &AllocationDetail) -> Vec<(&'static str, String)> {
    let row = &detail.row;
    let name = if row.name.is_empty() { &row.function } else { &row.name };
    let mut facts = vec![
        ("name", if name.is_empty() { "without a name".to_owned() } else { name.clone() }),
        ("size", units::exact(row.bytes)),
        ("category", row.category.name().to_owned()),
        ("holder", row.held_by()),
        ("module", if row.scope.is_empty() { "outside all scopes".to_owned() } else { row.scope.clone() }),
        ("made", time(row.birth.0)),
        ("ended", detail.death.map_or_else(|| "not yet".to_owned(), |death| time(death.0))),
    ];
    if row.granted != row.bytes {
        facts.insert(2, ("granted", units::exact(row.granted)));
    }
    let step = row.step.map(|step| format!("step {step}"));
    let phase = Some(detail.phase.clone()).filter(|phase| !phase.is_empty());
    let place: Vec<String> = step.into_iter().chain(phase).collect();
    if !place.is_empty() {
        facts.push(("in", place.join(", ")));
    }
    if detail.at_exit {
        facts.push(("end", "given back when its process ended".to_owned()));
    }
    if detail.with_context {
        facts.push(("end", "freed when its context was destroyed".to_owned()));
    }
    let kind = match row.memory {
        MemoryKind::Device => "device memory",
        MemoryKind::Pool => "device memory of a pool",
        MemoryKind::Managed => "managed memory",
        MemoryKind::Host => "pinned host memory",
        MemoryKind::Pageable => "host memory",
    };
    facts.push(("lies", format!("{kind}, address {:#x}, stream {}, process {}", row.address, row.stream, row.pid)));
    facts
}

/// Draws it; nothing where no allocation is selected.
pub fn ui(ui: &mut Ui, answer: &Answer, shared: &Shared, theme: &Theme) {
    if !matches!(shared.selection, Selection::Allocation(_)) {
        return;
    }
    ui.label(RichText::new("Selected allocation").strong());
    match of(answer, shared) {
        Some(detail) => facts_and_stack(ui, detail, theme),
        None => drop(ui.label(RichText::new("…").color(theme.faint()))),
    }
    ui.separator();
}

fn facts_and_stack(ui: &mut Ui, detail: &AllocationDetail, theme: &Theme) {
    Grid::new("selected allocation").num_columns(2).show(ui, |ui| {
        for (name, value) in facts(detail) {
            ui.label(RichText::new(name).color(theme.faint()));
            ui.add(Label::new(value).wrap());
            ui.end_row();
        }
    });
    stack(ui, &detail.row, theme);
}

/// The lines that led to it: the program's own, and, paler, those of libraries; folded where there are many.
fn stack(ui: &mut Ui, row: &AllocationRow, theme: &Theme) {
    let Told { leading, others } = row.told();
    if leading.is_empty() {
        return;
    }
    ui.add_space(4.0);
    ui.label(RichText::new("made by, the innermost line of the program first").color(theme.faint()));
    leading.into_iter().for_each(|told| line(ui, told, theme.text()));
    let pale = |ui: &mut Ui| others.iter().for_each(|told| line(ui, told, theme.faint()));
    if others.len() <= MOST_UNFOLDED {
        pale(ui);
        return;
    }
    let title = RichText::new(format!("{} of libraries", units::count(others.len() as u64, "line", "lines")))
        .color(theme.faint());
    CollapsingHeader::new(title).id_salt("lines of libraries").show(ui, pale);
}

fn line(ui: &mut Ui, line: &StackLine, colour: Color32) {
    let shown = ui.add(Label::new(RichText::new(&line.text).size(12.0).color(colour)).wrap());
    if !line.file.is_empty() {
        shown.on_hover_text(format!("{}:{}", line.file, line.line));
    }
}

/// The same as text; empty where no allocation is selected.
pub fn text(answer: &Answer, shared: &Shared) -> String {
    let mut text = String::new();
    for (name, value) in of(answer, shared).map(facts).unwrap_or_default() {
        let _ = writeln!(text, "{name:<10} {value}");
    }
    let Told { leading, others } = of(answer, shared).map(|detail| detail.row.told()).unwrap_or_default();
    let lines = leading.into_iter().map(|line| ("by", line)).chain(others.into_iter().map(|line| ("through", line)));
    for (how, line) in lines {
        let _ = writeln!(text, "{how:<10} {}", line.text);
    }
    text
}
