//! The shown document against another open one: what the one holds less what the other holds.
//!
//! Owns: which two moments are compared. Refuses: figures; they are core's, and those of `memscope diff`.
//!
//! | file | what it draws |
//! | --- | --- |
//! | steps | peaks of steps of both |
//! | list | the rows |

mod list;
mod steps;

use std::sync::Arc;

use eframe::egui::{ComboBox, DragValue, Id, RichText, Ui};
use memscope_core::diff::{self, Side, SideReport};
use memscope_core::explorer::{At, Query, SideAt};

use crate::shared::Shared;
use crate::view::{View, ViewContext};

/// Which moments are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Align {
    /// Where memory of each ran out; where it did not, its peak.
    #[default]
    Fullest,
    /// Where live bytes of each were largest.
    Peak,
    /// The peak within the same step.
    Step,
    /// Where the cursor of each is.
    Cursor,
    /// The end of each.
    End,
}

/// The view.
#[derive(Default)]
pub struct Diff {
    align: Align,
    step: u64,
    /// The other document: its position among the others.
    other: usize,
    /// True when the other one is what comes after.
    swapped: bool,
    made: Option<Made>,
}

/// The last difference, and what it was made of.
struct Made {
    names: (String, String),
    sides: (Arc<Side>, Arc<Side>),
    diff: diff::Diff,
}

impl Diff {
    fn at(&self, cursor: At) -> SideAt {
        SideAt::At(match self.align {
            Align::Fullest => return SideAt::Fullest,
            Align::Peak => At::Peak,
            Align::Step => At::Step(self.step),
            Align::Cursor => cursor,
            Align::End => At::Live,
        })
    }

    /// What there is to choose, and what it is called. Where memory of neither ran out, the fullest moment is the peak.
    fn aligned(&self, context: &ViewContext<'_>) -> Vec<(Align, &'static str)> {
        let other = context.others.get(self.other).is_some_and(|(_, answer)| answer.gravest.is_some());
        let peaks: &[_] = match other || context.answer.gravest.is_some() {
            true => &[(Align::Fullest, "where memory ran out, else peak"), (Align::Peak, "peak of each")],
            false => &[(Align::Fullest, "peak of each")],
        };
        let others = [(Align::End, "end of each"), (Align::Cursor, "cursor of each"), (Align::Step, "step")];
        peaks.iter().copied().chain(others).collect()
    }

    /// The difference, made anew where something has changed; `None` until both sides are known.
    fn make(&mut self, context: &ViewContext<'_>) -> Option<&diff::Diff> {
        let (name, answer) = context.others.get(self.other)?;
        let (this, other) = (context.answer.side.clone()?, answer.side.clone()?);
        let mut names = (name.clone(), context.name.to_owned());
        let mut sides = (other, this);
        if self.swapped {
            (names, sides) = ((names.1, names.0), (sides.1, sides.0));
        }
        let same = |made: &Made| {
            made.names == names && Arc::ptr_eq(&made.sides.0, &sides.0) && Arc::ptr_eq(&made.sides.1, &sides.1)
        };
        if !self.made.as_ref().is_some_and(same) {
            let diff = diff::Diff::of((&names.0, &sides.0), (&names.1, &sides.1));
            self.made = Some(Made { names, sides, diff });
        }
        self.made.as_ref().map(|made| &made.diff)
    }

    /// What is compared, to be chosen.
    fn choose(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        self.other = self.other.min(context.others.len() - 1);
        ui.horizontal_wrapped(|ui| {
            for (which, is_other) in [("Before:", !self.swapped), ("After:", self.swapped)] {
                let which = ui.label(which).id;
                match is_other {
                    true => self.choose_other(ui, context, which),
                    false => drop(ui.strong(context.name).on_hover_text("the document that is shown")),
                }
            }
            if ui.button("Swap").clicked() {
                self.swapped = !self.swapped;
            }
            ui.separator();
            ui.label("at");
            let mut last = None;
            for (align, name) in self.aligned(context) {
                let response = ui.selectable_label(self.align == align, name);
                last = Some(response.id);
                if response.clicked() {
                    if align == Align::Step && self.align != Align::Step {
                        self.step = context.answer.now.state.step.unwrap_or(self.step);
                    }
                    self.align = align;
                }
            }
            if let Some(name) = last.filter(|_| self.align == Align::Step) {
                ui.add(DragValue::new(&mut self.step).speed(0.2)).labelled_by(name);
            }
        });
    }

    fn choose_other(&mut self, ui: &mut Ui, context: &ViewContext<'_>, named: Id) {
        let name = |position: usize| context.others.get(position).map_or("", |(name, _)| name.as_str());
        if context.others.len() == 1 {
            ui.strong(name(0));
            return;
        }
        let chosen = ComboBox::from_id_salt("other").selected_text(name(self.other)).show_ui(ui, |ui| {
            for position in 0..context.others.len() {
                ui.selectable_value(&mut self.other, position, name(position));
            }
        });
        chosen.response.labelled_by(named);
    }
}

impl View for Diff {
    fn title(&self) -> &'static str {
        "Diff"
    }

    fn ask(&self, _shared: &Shared, query: &mut Query) {
        query.side = Some(self.at(query.at));
    }

    fn ask_other(&self, _shared: &Shared, other: usize, query: &mut Query) {
        if other == self.other {
            query.side = Some(self.at(query.at));
        }
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        ui.set_width(ui.available_width());
        if context.others.is_empty() {
            ui.label("A difference needs a second profile: open it with Ctrl+O, or drop it on the window. It becomes a tab, and this view compares the two.");
            return;
        }
        self.choose(ui, context);
        let Some(diff) = self.make(context) else {
            ui.weak("… the other profile is being read");
            return;
        };
        for (which, side) in [("before", &diff.before), ("after", &diff.after)] {
            let text = side_text(which, side);
            let colour = if side.exists { context.theme.faint() } else { context.theme.warning() };
            ui.label(RichText::new(text).color(colour));
        }
        let chosen = steps::ui(ui, context, diff);
        list::ui(ui, context, diff);
        if let Some(step) = chosen {
            (self.align, self.step) = (Align::Step, step);
        }
    }

    fn text(&self, _context: &ViewContext<'_>) -> String {
        self.made.as_ref().map_or("There is nothing to compare yet.\n".to_owned(), |made| diff::text(&made.diff))
    }
}

/// The moment of a side, in words.
fn side_text(which: &str, side: &SideReport) -> String {
    if !side.exists {
        return format!("{which}: {} has no such moment ({})", side.name, side.asked);
    }
    let lines = if side.lines { "" } else { "; no lines of the program recorded" };
    format!("{which}: {}, {}, {}{lines}", side.name, side.moment(), side.place())
}
