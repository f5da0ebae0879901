//! What a view says of a list that is not whole, in place, and the way to one that is.
//!
//! Owns: where the words stand, and the button. Refuses: the words; they are core's.

use eframe::egui::{RichText, Ui};
use memscope_core::explorer::{Answer, At, Partial};

use crate::action::{Action, row_of, written};
use crate::view::ViewContext;

/// What a list of one moment says.
pub const LIST: &str = "This covers";
/// What a picture of a span of time says.
pub const SPAN: &str = "Where least is kept, bands cover";

/// The sentence.
pub fn text(answer: &Answer, what: &str, partial: Partial) -> String {
    format!("{what} {}.", answer.covers(&partial))
}

/// Draws it, with a button that goes to the nearest moment whose lists are whole.
pub fn ui(ui: &mut Ui, context: &mut ViewContext<'_>, what: &str, partial: Option<Partial>) {
    let Some(partial) = partial else { return };
    let nearest = context.answer.nearest_listed();
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(text(context.answer, what, partial)).color(context.theme.warning()));
        let row = row_of(Action::GoListed);
        if let Some(time) = nearest
            && ui.small_button(row.name).on_hover_text(format!("{}: {}", written(&row.keys[0]), row.says)).clicked()
        {
            context.shared.cursor = At::Time(time);
        }
    });
}
