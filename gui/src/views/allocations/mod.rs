//! What lives at the cursor, a row an allocation or a row a group of them; and steps, a row each.
//!
//! Owns: which of the two tables are shown. Refuses: order, filter and figures; they are core's.
//!
//! | file | what it draws |
//! | --- | --- |
//! | ask | the filter with its help, groups, columns: what is asked for |
//! | list | the table of allocations, and what a click in it does |
//! | rows | its cells |
//! | steps | the table of steps |
//! | bars | small bars in cells |

mod ask;
mod bars;
mod list;
mod rows;
mod steps;

use eframe::egui::{Id, Rect, Ui, UiBuilder, vec2};
use memscope_core::explorer::Query;

use crate::shared::Shared;
use crate::table;
use crate::view::{OwnKey, View, ViewContext};

use list::List;
use steps::Steps;

/// Which tables are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Shown {
    #[default]
    Allocations,
    Steps,
    Both,
}

/// Where there is so much room, both lie side by side.
const WIDE: f32 = 900.0;

/// The view.
#[derive(Default)]
pub struct Allocations {
    shown: Shown,
    list: List,
    steps: Steps,
}

impl Allocations {
    /// With the table of steps alone, at first.
    pub fn of_steps() -> Allocations {
        Allocations { shown: Shown::Steps, ..Allocations::default() }
    }
}

impl View for Allocations {
    fn title(&self) -> &'static str {
        "Allocations"
    }

    fn ask(&self, shared: &Shared, query: &mut Query) {
        if self.shown != Shown::Steps {
            query.rows = Some(self.list.query(shared));
        }
        if self.shown != Shown::Allocations {
            query.steps = self.steps.wanted();
        }
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let rect = Rect::from_min_size(ui.cursor().min, ui.available_size().max(vec2(200.0, 100.0)));
        ui.painter().rect_filled(rect, 0.0, context.theme.ground());
        ui.scope_builder(UiBuilder::new().max_rect(rect.shrink2(vec2(4.0, 2.0))), |ui| {
            ui.horizontal_wrapped(|ui| {
                let choices = [(Shown::Allocations, "List"), (Shown::Steps, "Steps"), (Shown::Both, "Both")];
                for (shown, name) in choices {
                    if ui.selectable_label(self.shown == shown, name).clicked() {
                        self.shown = shown;
                    }
                }
                if self.shown != Shown::Steps {
                    ui.separator();
                    self.list.ask(ui, context);
                }
            });
            let room = ui.available_rect_before_wrap();
            match self.shown {
                Shown::Allocations => self.list.ui(ui, context),
                Shown::Steps => self.steps.ui(ui, context),
                Shown::Both => {
                    let (list, steps) = match room.width() >= WIDE {
                        true => room.split_left_right_at_fraction(0.6),
                        false => room.split_top_bottom_at_fraction(0.6),
                    };
                    let list = UiBuilder::new().max_rect(list.with_max_x(list.right() - 4.0)).id_salt("list");
                    ui.scope_builder(list, |ui| self.list.ui(ui, context));
                    let steps = UiBuilder::new().max_rect(steps).id_salt("steps");
                    ui.scope_builder(steps, |ui| self.steps.ui(ui, context));
                }
            }
        });
        ui.advance_cursor_after_rect(rect);
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        let mut text = String::new();
        if self.shown != Shown::Steps {
            text.push_str(&self.list.text(context));
        }
        if self.shown != Shown::Allocations {
            text.push_str(&self.steps.text(context));
        }
        text
    }

    fn search(&mut self) {
        if self.shown == Shown::Steps {
            self.shown = Shown::Both;
        }
        self.list.type_filter();
    }

    fn keys(&self) -> &'static [OwnKey] {
        table::KEYS
    }

    fn keyboard(&self) -> Option<Id> {
        self.list.table.keyboard().or(self.steps.keyboard())
    }
}
