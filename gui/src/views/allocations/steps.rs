//! A row a step; a click goes to its largest moment.
//!
//! Owns: its columns; steps in which memory leaks stand out. Refuses: to call growth a leak: a finding does.

use std::fmt::Write as _;
use std::ops::Range;

use eframe::egui::{Color32, Id, Ui};
use memscope_core::Category;
use memscope_core::explorer::{Answer, At, STACKED, StepView};
use memscope_core::report::units;

use super::bars;
use crate::panels;
use crate::table::{Cell, Column, Did, Rows, Table};
use crate::theme::Theme;
use crate::view::ViewContext;

/// The columns; from [`CATEGORIES`] on those of categories, in the order of [`STACKED`].
const COLUMNS: [Column; 17] = [
    Column::figures("step", 46.0, 0, "its number"),
    Column::figures("live peak", 74.0, 0, "the largest live bytes within it"),
    Column::words("at its peak", 80.0, 3.0, 4, "categories at that moment; all bars are to one scale"),
    Column::figures("at its end", 74.0, 3, "live bytes when it ended"),
    Column::figures("growth", 80.0, 1, "live bytes at its end less those at the end of the step before"),
    Column::words("within", 70.0, 1.0, 5, "live bytes from its begin to its end; all to one scale"),
    Column::figures("duration", 66.0, 6, "from its begin to its end"),
    Column::figures("begin", 84.0, 8, "when it began"),
    Column::figures("count", 58.0, 7, "allocations that were made in it"),
    Column::figures("weights", 70.0, 14, "at its peak"),
    Column::figures("optimizer", 70.0, 13, "at its peak"),
    Column::figures("gradients", 70.0, 10, "at its peak"),
    Column::figures("activations", 74.0, 9, "at its peak"),
    Column::figures("inputs", 70.0, 15, "at its peak"),
    Column::figures("workspace", 70.0, 12, "at its peak"),
    Column::figures("unknown", 70.0, 11, "at its peak"),
    Column::words("", 38.0, 0.0, 2, "LEAK: one of the steps of which a finding says that memory grows"),
];
const CATEGORIES: usize = 9;
const MARK: usize = 16;

/// The table's state.
#[derive(Default)]
pub struct Steps {
    table: Table,
    /// The step to which it was scrolled last.
    followed: Option<usize>,
}

/// The steps of an answer.
struct Drawn<'a> {
    answer: &'a Answer,
    theme: Theme,
    cursor: At,
    most: u64,
}

impl Steps {
    /// Steps that are asked for.
    pub fn wanted(&self) -> Range<usize> {
        self.table.wanted()
    }

    pub fn keyboard(&self) -> Option<Id> {
        self.table.keyboard()
    }

    /// Draws it; a click puts the cursor at the peak of a step.
    pub fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let answer = context.answer;
        if answer.steps_total == 0 {
            ui.label("The program has not said where its steps begin (memscope_step, or the PyTorch hook).");
            return;
        }
        if self.followed != answer.steps_now {
            self.followed = answer.steps_now;
            answer.steps_now.into_iter().for_each(|row| self.table.follow(row));
        }
        let largest = answer.steps.iter().map(|step| step.peak).max().unwrap_or(0);
        let peak = answer.peak.as_ref().map_or(0, |peak| peak.state.rows.live_bytes());
        let drawn = Drawn { answer, theme: context.theme, cursor: context.shared.cursor, most: largest.max(peak) };
        match self.table.ui(ui, &drawn, &context.theme) {
            Some(Did::Choose(row) | Did::Open(row)) => {
                if let Some(step) = step_at(answer, row) {
                    context.shared.cursor = answer.step(step.number, step.begin);
                }
            }
            Some(Did::Sort(_)) | None => {}
        }
    }

    /// What is seen of it as text.
    pub fn text(&self, context: &ViewContext<'_>) -> String {
        let answer = context.answer;
        let mut text = format!("{}\n", units::count(answer.steps_total as u64, "step", "steps"));
        let categories: Vec<&str> = STACKED.iter().map(|category| category.name()).collect();
        let _ = writeln!(
            text,
            "step\tbegin_s\tduration_s\tlive_peak\tlive_at_end\tgrowth\tallocations\tleak\t{}",
            categories.join("\t")
        );
        let seen = self.table.seen();
        for step in seen.clone().filter_map(|row| step_at(answer, row)) {
            let known = |figure: Option<String>| figure.unwrap_or_default();
            let at_peak: Vec<String> = STACKED.iter().map(|name| step.at_peak[*name as usize].to_string()).collect();
            let _ = writeln!(
                text,
                "{}\t{:.9}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                step.name(),
                step.begin.0 as f64 / 1e9,
                known(step.end.map(|end| format!("{:.9}", end.0.saturating_sub(step.begin.0) as f64 / 1e9))),
                step.peak,
                known(step.at_end.map(|bytes| bytes.to_string())),
                known(step.growth.map(|bytes| bytes.to_string())),
                step.allocations,
                if step.leaks { "LEAK" } else { "" },
                at_peak.join("\t")
            );
        }
        let (above, below) = (seen.start.min(answer.steps_total), answer.steps_total.saturating_sub(seen.end));
        if above + below > 0 {
            let _ = writeln!(text, "left out: {above} steps before, {below} steps after");
        }
        text
    }
}

/// A step, if it is among those that are known.
fn step_at(answer: &Answer, row: usize) -> Option<&StepView> {
    answer.steps.get(row.checked_sub(answer.steps_first)?)
}

impl Drawn<'_> {
    fn growth(&self, step: &StepView) -> (String, Color32) {
        match step.growth {
            None => (String::new(), self.theme.text()),
            Some(0) => (units::bytes(0), self.theme.faint()),
            Some(growth) => {
                let sign = if growth > 0 { "+" } else { "" };
                let ink = match (growth > 0, step.leaks) {
                    (true, true) => self.theme.error(),
                    (true, false) => self.theme.warning(),
                    (false, _) => self.theme.good(),
                };
                (format!("{sign}{}", units::signed_bytes(growth)), ink)
            }
        }
    }
}

fn seconds(nanoseconds: u64) -> String {
    units::time(nanoseconds as f64 / 1e9)
}

impl Rows for Drawn<'_> {
    fn name(&self) -> &str {
        "Steps"
    }

    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn count(&self) -> usize {
        self.answer.steps_total
    }

    fn sorted(&self) -> Option<(usize, bool)> {
        None
    }

    fn sorts(&self, _column: usize) -> bool {
        false
    }

    fn label(&self, row: usize) -> Option<String> {
        let step = step_at(self.answer, row)?;
        let leaks = if step.leaks { ", leak" } else { "" };
        Some(format!("Step {}: live peak {}{leaks}", step.name(), units::bytes(step.peak)))
    }

    fn is_lit(&self, row: usize) -> bool {
        let here = |step: &StepView| self.answer.is_step_now(self.cursor, step.number, step.begin, step.end);
        step_at(self.answer, row).is_some_and(here)
    }

    fn cell(&self, row: usize, column: usize, cell: &Cell<'_>) {
        let Some(step) = step_at(self.answer, row) else { return };
        let (plain, faint) = (self.theme.text(), self.theme.faint());
        let (text, ink) = match column {
            0 => (step.name(), plain),
            1 => (units::bytes(step.peak), plain),
            2 => return bars::shares(cell, &step.at_peak, self.most),
            3 => (step.at_end.map_or_else(String::new, units::bytes), plain),
            4 => self.growth(step),
            5 => return bars::shape(cell, &step.shape, self.most),
            6 => match step.end {
                Some(end) => (seconds(end.0.saturating_sub(step.begin.0)), plain),
                None => ("open".to_owned(), faint),
            },
            7 => (panels::time(step.begin.0), faint),
            8 => (units::grouped(step.allocations), plain),
            MARK if step.leaks => ("LEAK".to_owned(), self.theme.error()),
            MARK => return,
            column => {
                let category: Category = STACKED[column - CATEGORIES];
                let bytes = step.at_peak[category as usize];
                (units::bytes(bytes), if bytes == 0 { faint } else { self.theme.category(category) })
            }
        };
        cell.text(&text, ink);
    }

    fn told(&self, row: usize, ui: &mut Ui) {
        let Some(step) = step_at(self.answer, row) else { return };
        ui.strong(format!("step {}", step.name()));
        ui.label(format!("live peak {}", units::exact(step.peak)));
        if let Some(bytes) = step.at_end {
            ui.label(format!("at its end {}", units::exact(bytes)));
        }
        if let Some(growth) = step.growth {
            ui.label(format!("growth {growth} B"));
        }
        ui.label(format!("from {}", panels::time(step.begin.0)));
        if step.leaks {
            ui.colored_label(self.theme.error(), "LEAK: a finding says that memory grows from step to step");
        }
        ui.weak("a click goes to its largest moment");
    }
}
