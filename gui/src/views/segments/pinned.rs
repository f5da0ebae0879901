//! Mostly empty containers, with the small survivors that keep each.
//!
//! Owns: the words. Refuses: to choose; which blocks are named is core's.

use std::fmt::Write as _;

use eframe::egui::{Button, RichText, ScrollArea, Ui};
use memscope_core::explorer::{Pinned, SegmentsView, Survivor};
use memscope_core::report::units;

use crate::panels;
use crate::shared::Selection;
use crate::view::ViewContext;

/// What would come free, in a line.
fn heading(view: &SegmentsView) -> String {
    match view.pinned_total {
        0 => "Pinned: none. No segment is mostly empty and kept by a block.".to_owned(),
        total => format!(
            "Pinned: {} mostly empty; {} would come free without what survives in them",
            units::count(total as u64, "segment or piece", "segments or pieces"),
            units::bytes(view.pinned_bytes),
        ),
    }
}

fn title(pinned: &Pinned) -> String {
    let what = if pinned.piece { "piece" } else { "segment" };
    format!(
        "{} of {} free in the {what} at {:#x}, kept by {}",
        units::bytes(pinned.free()),
        units::bytes(pinned.bytes),
        pinned.address,
        units::count(pinned.blocks, "block", "blocks"),
    )
}

/// A survivor: its name, else its scope; bytes, holder, and when it was made.
fn survivor_text(survivor: &Survivor) -> String {
    let block = &survivor.block;
    let name = match (&*block.name, &*block.scope) {
        ("", "") => "without a name, outside all scopes".to_owned(),
        ("", scope) => format!("in {scope}"),
        (name, "") => name.to_owned(),
        (name, scope) => format!("{name} in {scope}"),
    };
    let step = survivor.step.map_or_else(String::new, |step| format!(", step {step}"));
    let holder = block.held_by();
    format!("{}: {name}; {holder}; made at {}{step}", units::bytes(block.bytes), panels::time(survivor.birth.0))
}

fn empty(view: &SegmentsView) -> Option<String> {
    let (count, bytes) = view.empty;
    let segments = units::count(count as u64, "segment has", "segments have");
    (count > 0).then(|| format!("{segments} no block at all ({}): cache that nothing keeps.", units::bytes(bytes)))
}

/// Draws the list; a click selects the survivor everywhere.
pub fn ui(ui: &mut Ui, context: &mut ViewContext<'_>, view: &SegmentsView) {
    ScrollArea::vertical().id_salt("pinned").auto_shrink(false).show(ui, |ui| {
        ui.label(RichText::new(heading(view)).strong());
        if let Some(empty) = empty(view) {
            ui.label(RichText::new(empty).color(context.theme.faint()));
        }
        for pinned in &view.pinned {
            ui.add_space(4.0);
            ui.label(title(pinned));
            for survivor in &pinned.survivors {
                let selection = Selection::Allocation(survivor.block.pick);
                let text =
                    RichText::new(survivor_text(survivor)).color(context.theme.category(survivor.block.category));
                let button = Button::new(text).wrap().frame(false).selected(context.shared.selection == selection);
                if ui.add(button).clicked() {
                    context.shared.toggle(selection);
                }
            }
            let more = pinned.blocks.saturating_sub(pinned.survivors.len() as u64);
            if more > 0 {
                ui.weak(format!("and {}", units::count(more, "smaller one", "smaller ones")));
            }
        }
        let more = view.pinned_total.saturating_sub(view.pinned.len());
        if more > 0 {
            ui.weak(format!("and {}", units::count(more as u64, "more of less", "more of less")));
        }
    });
}

/// The same as text.
pub fn text(view: &SegmentsView) -> String {
    let mut text = format!("\n{}\n", heading(view));
    for pinned in &view.pinned {
        let _ = writeln!(text, "{}", title(pinned));
        for survivor in &pinned.survivors {
            let _ = writeln!(text, "\t{}", survivor_text(survivor));
        }
    }
    text
}
