//! What a refused allocation met: when and where, what was live, and what held most of it.
//!
//! Owns: those lines, in full for the findings and in short for the Overview. Refuses: figures; they come with the finding.

use memscope_core::Category;
use memscope_core::findings::Oom;
use memscope_core::report::{self, Group, units};
use ratatui::style::Style;

use crate::app::App;
use crate::canvas::ink;
use crate::words::{columns, fit, wrap};

/// A line of a text: its parts, one after the other.
pub(crate) type Line = Vec<(String, Style)>;

/// Groups on the Overview.
const FEW: usize = 3;

/// When and where it was refused: moment, step, phase, scope.
fn place(oom: &Oom) -> Vec<String> {
    let mut place = vec![format!("at {}", units::time(oom.time_s))];
    place.push(oom.step.map_or("before the first step".to_owned(), |step| format!("in step {step}")));
    place.extend(oom.phase.as_ref().map(|phase| format!("phase {phase}")));
    place.push(oom.scope.as_ref().map_or("outside all scopes".to_owned(), |scope| format!("scope {scope}")));
    if oom.refusals > 1 {
        place.push(format!("the fullest moment of {} refusals", units::grouped(oom.refusals)));
    }
    place
}

/// For the Overview: where, and the first of what held most.
pub(crate) fn short(app: &App, oom: &Oom, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut scope = place(oom).join(", ");
    scope.insert_str(0, "Refused ");
    lines.push(vec![(fit(&scope, width, app.glyphs), Style::new())]);
    lines.extend(oom.largest_groups.iter().take(FEW).map(|group| held(app, group, width)));
    lines
}

/// For the findings: everything.
pub(crate) fn full(app: &App, oom: &Oom, width: usize) -> Vec<Line> {
    let (plain, strong) = (Style::new(), app.palette.strong());
    let text = |text: &str, style| wrap(text, width).into_iter().map(move |line| vec![(line, style)]);
    let mut lines: Vec<Line> = text(&format!("Refused {}.", place(oom).join(", ")), plain).collect();
    lines.extend(oom.line.iter().flat_map(|line| text(&format!("Asked for by the line {line}."), strong)));
    let mut exactly = format!("Asked for {}", units::exact(oom.requested));
    if let Some(free) = oom.free {
        exactly.push_str(&format!(", free {}", units::exact(free)));
    }
    lines.extend(text(&format!("{exactly}, cached {}.", units::exact(oom.cached)), plain));
    for sentence in report::circumstances(oom) {
        lines.extend(text(&sentence, plain));
    }
    lines.extend(text(&format!("Live then, {}:", units::exact(oom.live)), strong));
    for (name, bytes) in oom.by_category.named().into_iter().filter(|(_, bytes)| *bytes > 0) {
        let share = units::share(bytes, oom.live);
        let (glyph, style) = category_ink(app, name);
        let figures = format!(" {name:<12} {:>11} {share:>5.1} %", units::bytes(bytes));
        lines.push(vec![("  ".to_owned(), plain), (glyph.to_owned(), style), (figures, plain)]);
    }
    lines.extend(oom.largest.iter().flat_map(|largest| text(&largest.sentence(), plain)));
    if !oom.largest_groups.is_empty() {
        lines.push(vec![("Held most by:".to_owned(), strong)]);
    }
    lines.extend(oom.largest_groups.iter().map(|group| held(app, group, width)));
    lines
}

/// One group: its bytes, category, how many, its name.
fn held(app: &App, group: &Group, width: usize) -> Line {
    let (glyph, style) = category_ink(app, &group.category);
    let count = match width {
        // Where there is little room, the name has it.
        0..90 => format!("{:>6}{} ", units::grouped(group.allocations), if app.glyphs.ascii { "x" } else { "×" }),
        _ => format!("{:<18} ", units::count(group.allocations, "allocation", "allocations")),
    };
    let figures = format!(" {:>11}  {:<12} {count} ", units::bytes(group.bytes), group.category);
    let room = width.saturating_sub(3 + columns(&figures));
    let name = fit(&group.name, room, app.glyphs);
    vec![
        ("  ".to_owned(), Style::new()),
        (glyph.to_owned(), style),
        (figures, Style::new()),
        (name, app.palette.strong()),
    ]
}

fn category_ink(app: &App, name: &str) -> (&'static str, Style) {
    let category = Category::ALL.into_iter().find(|category| category.name() == name).unwrap_or_default();
    ink(&app.palette, app.glyphs, category)
}
