//! The tree of scopes: bytes now and at the peak, as a list that folds or as an icicle.
//!
//! Owns: its columns. Refuses: the tree (`app`), and the icicle's shape (`icicle`).

use memscope_core::explorer::{STACKED, ScopeNode};
use memscope_core::report::units;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};

use super::allocations::shares;
use crate::app::App;
use crate::canvas::Canvas;
use crate::icicle;
use crate::table::{self, Column};

const COLUMNS: [Column; 7] = [
    Column::words("scope", 22, 4, 0),
    Column::figures("now", 10, 0),
    Column::figures("share", 7, 3),
    Column::words("by category", 12, 2, 4),
    Column::figures("at live peak", 12, 1),
    Column::figures("itself", 10, 2),
    Column::figures("count", 9, 5),
];

/// Where its parts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    heading: Rect,
    titles: Rect,
    /// The list, or the icicle.
    pub rows: Rect,
    detail: Rect,
}

/// Divides the screen.
pub(crate) fn layout(body: Rect) -> Layout {
    let detail = if body.height >= 10 { 2 } else { 0 };
    let rows = body.height.saturating_sub(2 + detail);
    let row = |offset, height| super::band(body, offset, height);
    Layout { heading: row(0, 1), titles: row(1, 1), rows: row(2, rows), detail: row(2 + rows, detail) }
}

/// The node of the icicle that is there.
pub(crate) fn node_at(app: &App, at: Position) -> Option<usize> {
    let nodes = app.answer.scopes.as_ref()?;
    icicle::node_at(nodes, icicle_area(layout(super::parts(app).body)), at)
}

fn icicle_area(parts: Layout) -> Rect {
    Rect {
        x: parts.titles.x + 1,
        y: parts.titles.y,
        width: parts.titles.width.saturating_sub(2),
        height: parts.rows.height + 1,
    }
}

fn bytes(live: &[u64; 7]) -> u64 {
    live.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Draws the screen.
pub(super) fn draw(app: &App, canvas: &mut Canvas, body: Rect) {
    let parts = layout(body);
    let nodes: &[ScopeNode] = app.answer.scopes.as_deref().map_or(&[], |nodes| nodes);
    let mut title = "Scopes".to_owned();
    if !app.scopes.search.is_empty() {
        let hits = nodes.iter().filter(|node| app.scopes.hit(node)).count();
        title = format!("Scopes / {} ({})", app.scopes.search, units::count(hits as u64, "hit", "hits"));
    }
    let mut facts = units::count(nodes.len().saturating_sub(1) as u64, "scope", "scopes");
    if let Some(partial) = app.answer.now.partial {
        facts.push_str(&format!(", {}", partial.covers()));
    }
    canvas.heading(parts.heading, &title, &facts);
    let selected = app.scopes.selected().filter(|position| *position < nodes.len());
    if nodes.len() == 1 && bytes(&nodes[0].now) == 0 {
        canvas.text(
            body.x + 1,
            parts.titles.y,
            body.width - 1,
            if app.answer.now.partial.is_some() {
                "Nothing of this moment is kept."
            } else {
                "Nothing is live at this moment."
            },
            canvas.palette.faint(),
        );
    } else if app.scopes.icicle {
        icicle::draw(canvas, nodes, icicle_area(parts), selected, |node| app.scopes.hit(node));
    } else {
        list(app, canvas, parts, nodes);
    }
    if let (Some(position), true) = (selected, parts.detail.height > 0) {
        detail(canvas, parts.detail, nodes, position);
    }
}

fn list(app: &App, canvas: &mut Canvas, parts: Layout, nodes: &[ScopeNode]) {
    let placed = table::place(&COLUMNS, parts.titles.x + 1, parts.titles.width.saturating_sub(3));
    table::titles(canvas, &COLUMNS, &placed, parts.titles.y, None);
    let visible = app.scopes.visible();
    let list = &app.scopes.list;
    let whole = app.answer.now.whole(nodes.first().map_or(0, |root| bytes(&root.now)));
    for (line, position) in visible.iter().skip(list.first).take(parts.rows.height.into()).enumerate() {
        let Some(node) = nodes.get(*position) else { continue };
        let y = parts.rows.y + line as u16;
        row(app, canvas, &placed, y, node, whole);
        if list.first + line == list.selected {
            canvas.select(Rect::new(parts.rows.x, y, parts.rows.width - 1, 1));
        }
    }
    table::thumb(canvas, parts.rows, list.first, visible.len());
}

fn row(app: &App, canvas: &mut Canvas, placed: &[table::Placed], y: u16, node: &ScopeNode, whole: u64) {
    let faint = canvas.palette.faint();
    let quiet = |bytes: u64| if bytes == 0 { faint } else { Style::new() };
    let now = bytes(&node.now);
    for column in placed {
        let (text, style) = match column.index {
            0 => {
                name(app, canvas, column, y, node);
                continue;
            }
            1 => (units::bytes(now), quiet(now)),
            2 => (format!("{:.1} %", units::share(now, whole)), quiet(now)),
            3 => {
                shares(canvas, (column.x, y, column.width), &node.now, whole);
                continue;
            }
            4 => (units::bytes(bytes(&node.peak)), quiet(bytes(&node.peak))),
            5 => (units::bytes(node.own), quiet(node.own)),
            _ => (units::grouped(node.allocations), quiet(node.allocations)),
        };
        table::cell(canvas, &COLUMNS, column, y, &text, style);
    }
}

fn name(app: &App, canvas: &mut Canvas, column: &table::Placed, y: u16, node: &ScopeNode) {
    // Deep trees keep some room for names.
    let indent = (2 * node.depth as u16).min(column.width / 2);
    let (x, width) = (column.x + indent, column.width - indent);
    if node.inside > 0 {
        let glyph = if app.scopes.unfolded(node) { canvas.glyphs.unfolded } else { canvas.glyphs.folded };
        canvas.text(x, y, 1, glyph, canvas.palette.accent());
    }
    let most = STACKED.into_iter().max_by_key(|category| node.now[*category as usize]).unwrap_or_default();
    let mut style = if bytes(&node.now) == 0 { canvas.palette.faint() } else { canvas.palette.category_text(most) };
    if app.scopes.hit(node) {
        style = style.add_modifier(Modifier::REVERSED);
    }
    let text = if node.depth == 0 { "total" } else { &node.name };
    canvas.fitted(x + 2, y, width.saturating_sub(2), text, style);
}

/// The selected node's whole path and figures.
fn detail(canvas: &mut Canvas, area: Rect, nodes: &[ScopeNode], position: usize) {
    let mut path: Vec<&str> = Vec::new();
    let mut above = 0;
    while above <= position {
        let node = &nodes[above];
        if above + node.inside < position {
            above += node.inside + 1;
            continue;
        }
        if node.depth > 0 {
            path.push(&node.name);
        }
        above += 1;
    }
    let node = &nodes[position];
    let title = if path.is_empty() { "total".to_owned() } else { path.join("/") };
    canvas.heading(area, &title, "");
    let mut facts = vec![
        format!("{} now", units::bytes(bytes(&node.now))),
        format!("{} at the peak of live bytes", units::bytes(bytes(&node.peak))),
        units::count(node.allocations, "allocation", "allocations"),
    ];
    let mut by: Vec<_> = STACKED.iter().map(|category| (*category, node.now[*category as usize])).collect();
    by.retain(|(_, bytes)| *bytes > 0);
    by.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    facts.extend(by.iter().map(|(category, bytes)| format!("{} {}", category.name(), units::bytes(*bytes))));
    canvas.facts(area.x + 1, area.y + 1, area.width - 2, &facts, canvas.palette.faint());
}
