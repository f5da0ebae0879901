//! The rows: live bytes, categories, the ledger, scopes, lines of the program.
//!
//! Owns: columns and bars. Refuses: to draw rows that are not seen, and to round a row away: all are there, the largest first.

use std::borrow::Cow;

use eframe::egui::accesskit::Role;
use eframe::egui::{Align2, Color32, FontId, Rect, ScrollArea, Sense, Ui, WidgetInfo, pos2, vec2};
use memscope_core::Category;
use memscope_core::diff::{Change, Diff, difference};
use memscope_core::report::units;

use crate::shared::Selection;
use crate::view::ViewContext;

const ROW: f32 = 19.0;
/// Width of a column of figures, of the bars at least and at most, and of names.
const FIGURES: f32 = 84.0;
const BARS: (f32, f32) = (110.0, 480.0);
const NAMES: f32 = 170.0;

/// A row on the screen.
enum Row<'a> {
    Title(Cow<'static, str>),
    Change { change: &'a Change, name: String, leads: Option<Selection>, colour: Option<Category> },
}

fn rows(diff: &Diff) -> Vec<Row<'_>> {
    let plain = |change| Row::Change { change, name: change.name.clone(), leads: None, colour: None };
    let mut rows = vec![plain(&diff.live)];
    rows.extend(diff.by_category.iter().map(|change| {
        let category = Category::ALL.into_iter().find(|category| category.name() == change.name);
        let leads = category.map(Selection::Category);
        Row::Change { change, name: change.name.clone(), leads, colour: category }
    }));
    rows.extend(diff.ledger.iter().map(plain));
    if let Some(remark) = diff.without_lists() {
        rows.push(Row::Title(remark.into()));
        return rows;
    }
    rows.push(Row::Title("By scope, of those scopes alone".into()));
    rows.extend(diff.by_scope.iter().map(|change| {
        let outside = change.name.is_empty();
        let name = if outside { "outside all scopes".to_owned() } else { change.name.clone() };
        let leads = (!outside).then(|| Selection::Scope(change.name.clone()));
        Row::Change { change, name, leads, colour: None }
    }));
    match &diff.by_line {
        None => {
            rows.push(Row::Title(
                "No lines of the program were recorded (memscope run --stacks python, native)".into(),
            ));
        }
        Some(lines) => {
            rows.push(Row::Title("By line of the program".into()));
            rows.extend(lines.iter().map(|change| {
                let name = if change.name.is_empty() { "no line recorded".to_owned() } else { change.name.clone() };
                Row::Change { change, name, leads: None, colour: None }
            }));
        }
    }
    rows
}

fn side(bytes: Option<u64>) -> String {
    bytes.map_or("–".to_owned(), units::bytes)
}

fn only(change: &Change) -> &'static str {
    match (change.before, change.after) {
        (Some(_), None) => ", only before",
        (None, Some(_)) => ", only after",
        _ => "",
    }
}

/// Draws them; a click on a category or scope selects it everywhere.
pub fn ui(ui: &mut Ui, context: &mut ViewContext<'_>, diff: &Diff) {
    let theme = context.theme;
    let rows = rows(diff);
    let scale = Scale::of(&rows, ui.available_width() - 3.0 * FIGURES - NAMES);
    let font = FontId::proportional(12.0);
    let (head, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW), Sense::hover());
    for (column, title) in ["before", "after", "difference"].into_iter().enumerate() {
        let at = pos2(head.left() + (column + 1) as f32 * FIGURES, head.center().y);
        ui.painter().text(at, Align2::RIGHT_CENTER, title, font.clone(), theme.faint());
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    ScrollArea::vertical().id_salt("difference").auto_shrink(false).show_rows(ui, ROW, rows.len(), |ui, seen| {
        for row in &rows[seen] {
            let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW), Sense::click());
            let painter = ui.painter_at(rect);
            let (change, name, leads, colour) = match row {
                Row::Title(title) => {
                    painter.text(rect.left_center(), Align2::LEFT_CENTER, title, font.clone(), theme.accent());
                    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, title.as_ref()));
                    continue;
                }
                Row::Change { change, name, leads, colour } => (change, name, leads, colour),
            };
            let figures = [side(change.before), side(change.after), difference(change.difference)];
            let [before, after, changed] = &figures;
            let label = format!("{name}: before {before}, after {after}, difference {changed}{}", only(change));
            response.widget_info(|| WidgetInfo::labeled(Role::Button, leads.is_some(), label.as_str()));
            if leads.as_ref().is_some_and(|leads| context.shared.selection == *leads) {
                painter.rect_filled(rect, 2.0, theme.selected());
            } else if response.hovered() && leads.is_some() {
                painter.rect_filled(rect, 2.0, theme.grid());
            }
            for (column, text) in figures.iter().enumerate() {
                let at = pos2(rect.left() + (column + 1) as f32 * FIGURES, rect.center().y);
                painter.text(at, Align2::RIGHT_CENTER, text, font.clone(), theme.text());
            }
            let left = rect.left() + 3.0 * FIGURES + 10.0;
            let bars = Rect::from_min_size(pos2(left, rect.top()), vec2(scale.width, ROW));
            bar(&painter, bars, change.difference, &scale, (theme.warning(), theme.good()));
            let colour = colour.map_or(theme.text(), |category| theme.category(category));
            let text = format!("{name}{}", only(change));
            painter.text(
                pos2(left + scale.width + 10.0, rect.center().y),
                Align2::LEFT_CENTER,
                text,
                font.clone(),
                colour,
            );
            if response.clicked()
                && let Some(leads) = leads
            {
                context.shared.toggle(leads.clone());
            }
            response.on_hover_text(explained(change, name));
        }
    });
}

/// How bars are drawn: all of the width is for what there is, so that zero is at the left where nothing shrank.
struct Scale {
    width: f32,
    /// Where zero is, from the left.
    zero: f32,
    /// Points a byte.
    byte: f64,
}

impl Scale {
    fn of(rows: &[Row<'_>], room: f32) -> Scale {
        let differences = || {
            rows.iter().map(|row| match row {
                Row::Change { change, .. } => change.difference,
                Row::Title(_) => 0,
            })
        };
        let less = differences().min().unwrap_or(0).min(0).unsigned_abs() as f64;
        let more = differences().max().unwrap_or(0).max(0) as f64;
        let width = room.clamp(BARS.0, BARS.1);
        let byte = f64::from(width) / (less + more).max(1.0);
        Scale { width, zero: (less * byte) as f32, byte }
    }
}

/// To the right what grew, to the left what shrank; what is there is seen.
fn bar(painter: &eframe::egui::Painter, rect: Rect, difference: i64, scale: &Scale, (more, less): (Color32, Color32)) {
    if difference == 0 {
        return;
    }
    let zero = rect.left() + scale.zero;
    let long = ((difference.unsigned_abs() as f64 * scale.byte) as f32).max(1.0);
    let (colour, sides) = if difference > 0 { (more, zero..=zero + long) } else { (less, zero - long..=zero) };
    painter.rect_filled(Rect::from_x_y_ranges(sides, rect.top() + 3.0..=rect.bottom() - 3.0), 0.0, colour);
}

/// To the byte.
fn explained(change: &Change, name: &str) -> String {
    let side = |which: &str, bytes: Option<u64>, allocations: Option<u64>| {
        let count = allocations
            .map_or_else(String::new, |count| format!(" in {}", units::count(count, "allocation", "allocations")));
        format!("{which}: {}{count}", bytes.map_or("not there".to_owned(), units::exact))
    };
    format!(
        "{name}\n{}\n{}\ndifference: {} B",
        side("before", change.before, change.allocations_before),
        side("after", change.after, change.allocations_after),
        change.difference,
    )
}
