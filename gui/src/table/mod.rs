//! A long table: columns that fit, rows that are seen, and the row that keys move from.
//!
//! Owns: which rows are seen, in rows and shares of one: egui's own lists count pixels in 32 bits, and tremble from a million rows
//! on. Refuses: what rows say, and to draw any that is not seen.
//!
//! | file | what it does |
//! | --- | --- |
//! | columns | which columns fit, and where they stand |
//! | words | text that fits a cell |
//! | scroll | which rows are seen |

mod columns;
mod scroll;
mod words;

use std::ops::Range;

use eframe::egui::accesskit::Role;
use eframe::egui::{
    Align2, Color32, CursorIcon, EventFilter, FontId, Id, Key, Painter, Pos2, Rect, Sense, Shape, Stroke, StrokeKind,
    Ui, WidgetInfo, pos2, vec2,
};

use memscope_core::report::units;

use crate::theme::Theme;
use crate::view::OwnKey;

use columns::Placed;
pub use columns::{Column, place};
use scroll::Scroll;

/// Height of a row, and of the titles.
pub const ROW: f32 = 18.0;
/// Width of the bar by which one scrolls.
const BAR: f32 = 10.0;
/// Width of the mark of what is sorted by.
const MARK: f32 = 10.0;
const FONT: FontId = FontId::proportional(12.0);

/// Keys of a table that has the keyboard.
pub const KEYS: &[OwnKey] = &[
    OwnKey { key: Key::ArrowUp, says: "the row above" },
    OwnKey { key: Key::ArrowDown, says: "the row below" },
    OwnKey { key: Key::PageUp, says: "a screen back" },
    OwnKey { key: Key::PageDown, says: "a screen on" },
    OwnKey { key: Key::Home, says: "the first row" },
    OwnKey { key: Key::End, says: "the last row" },
    OwnKey { key: Key::Enter, says: "opens a group, goes to the peak of a step" },
];

/// The rows of a table.
pub trait Rows {
    /// What it is a list of, for whoever hears the window.
    fn name(&self) -> &str;

    /// The columns that are wished for.
    fn columns(&self) -> &[Column];

    /// How many rows there are.
    fn count(&self) -> usize;

    /// The column by which they are sorted, and whether the largest is first.
    fn sorted(&self) -> Option<(usize, bool)>;

    /// True where a click on the title of a column sorts by it.
    fn sorts(&self, column: usize) -> bool;

    /// A row as it is heard; `None` for one that is not known yet.
    fn label(&self, row: usize) -> Option<String>;

    /// True for a row that is lit.
    fn is_lit(&self, row: usize) -> bool;

    /// Draws a cell of a row that is known.
    fn cell(&self, row: usize, column: usize, cell: &Cell<'_>);

    /// What is told where the pointer rests on a row.
    fn told(&self, row: usize, ui: &mut Ui);
}

/// What the user did to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// Clicked on the title of a column.
    Sort(usize),
    /// Clicked on a row, or came to it by keys.
    Choose(usize),
    /// Clicked twice on a row, or pressed Enter.
    Open(usize),
}

/// A cell to be drawn into.
pub struct Cell<'a> {
    /// To draw with.
    pub painter: &'a Painter,
    /// Where.
    pub rect: Rect,
    /// Colours.
    pub theme: &'a Theme,
    figures: bool,
}

impl Cell<'_> {
    /// Text, figures at the right; the end is left out where there is no room.
    pub fn text(&self, text: &str, ink: Color32) {
        self.write(text, ink, words::Kept::Begin);
    }

    /// Text whose end says most, as that of a path: the beginning is left out where there is no room.
    pub fn end_of(&self, text: &str, ink: Color32) {
        self.write(text, ink, words::Kept::End);
    }

    fn write(&self, text: &str, ink: Color32, kept: words::Kept) {
        let galley = words::fitted(self.painter, text, (FONT, ink), self.rect.width(), kept);
        let (align, at) = match self.figures {
            true => (Align2::RIGHT_CENTER, self.rect.right_center()),
            false => (Align2::LEFT_CENTER, self.rect.left_center()),
        };
        let rect = align.anchor_size(at, galley.size());
        self.painter.galley(rect.min, galley, ink);
    }

    /// The same behind a square of a colour.
    pub fn swatch(&self, text: &str, (square, ink): (Color32, Color32)) {
        let at = pos2(self.rect.left() + 4.0, self.rect.center().y);
        self.painter.rect_filled(Rect::from_center_size(at, vec2(9.0, 9.0)), 2.0, square);
        let rect = self.rect.with_min_x(self.rect.left() + 13.0);
        Cell { rect, ..*self }.text(text, ink);
    }
}

/// A triangle that points to where the larger ones are.
fn mark(painter: &Painter, at: Pos2, descending: bool, ink: Color32) {
    let (base, tip) = if descending { (-2.5, 2.5) } else { (2.5, -2.5) };
    let corners = vec![at + vec2(-3.5, base), at + vec2(3.5, base), at + vec2(0.0, tip)];
    painter.add(Shape::convex_polygon(corners, ink, Stroke::NONE));
}

/// The state of a table.
#[derive(Default)]
pub struct Table {
    scroll: Scroll,
    /// The row that keys move from.
    current: Option<usize>,
    /// A row that is to be brought into sight.
    followed: Option<usize>,
    /// What has the keyboard while [`KEYS`] are read, and that it has.
    keyboard: Option<Id>,
    has_keys: bool,
    /// Columns for which there is no room.
    hidden: usize,
}

impl Table {
    /// Rows that are seen.
    pub fn seen(&self) -> Range<usize> {
        self.scroll.seen()
    }

    /// Rows to be asked for: those that are seen, and more before and after them, so that scrolling does not wait.
    pub fn wanted(&self) -> Range<usize> {
        let (seen, more) = (self.seen(), self.seen().len().max(48));
        seen.start.saturating_sub(more)..seen.end + more
    }

    /// True while it reads [`KEYS`].
    pub fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// What has the keyboard while it reads [`KEYS`].
    pub fn keyboard(&self) -> Option<Id> {
        self.keyboard.filter(|_| self.has_keys)
    }

    /// Columns for which there was no room.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// The row that keys move from.
    pub fn current(&self) -> Option<usize> {
        self.current
    }

    /// Goes back to the first row: the list is another one.
    pub fn to_top(&mut self) {
        self.scroll.first = 0.0;
        (self.current, self.followed) = (None, None);
    }

    /// Keys move from this row from now on; it is brought into sight, unless it is there.
    pub fn follow(&mut self, row: usize) {
        self.current = Some(row);
        self.followed = Some(row);
    }

    /// Keys move from this row from now on.
    pub fn put(&mut self, row: usize) {
        self.current = Some(row);
    }

    /// Draws it into all that is left of `ui`.
    pub fn ui(&mut self, ui: &mut Ui, rows: &dyn Rows, theme: &Theme) -> Option<Did> {
        let rect = Rect::from_min_size(ui.cursor().min, ui.available_size().max(vec2(60.0, 3.0 * ROW)));
        let (titles, list) = rect.split_top_bottom_at_y(rect.top() + ROW + 1.0);
        let (list, bar) = list.split_left_right_at_x(list.right() - BAR);
        let (placed, hidden) = place(rows.columns(), list.left() + 4.0, list.width() - 10.0);
        self.hidden = hidden;
        let id = ui.scope_id().with(rows.name());
        let response = ui.interact(list, id, Sense::click());
        let said = format!("{}: {}", rows.name(), units::count(rows.count() as u64, "row", "rows"));
        response.widget_info(|| WidgetInfo { value: None, ..WidgetInfo::labeled(Role::Table, true, said.as_str()) });
        if response.clicked() {
            response.request_focus();
        }
        (self.keyboard, self.has_keys) = (Some(id), response.has_focus());
        self.scroll.fit(rows.count(), f64::from(list.height() / ROW));
        self.followed.take().into_iter().for_each(|row| self.scroll.centre(row));
        self.scroll.wheel(ui, list);
        self.scroll.bar(ui, bar, (id.with("bar"), rows.name()), theme);
        let mut did = self.titles(ui, titles, &placed, rows, theme);
        did = did.or(self.keys(ui, &response, rows.count()));
        let clicked = self.rows(ui, (list, id), &placed, rows, theme);
        if clicked.is_some() {
            ui.memory_mut(|memory| memory.request_focus(id));
        }
        ui.advance_cursor_after_rect(rect);
        did.or(clicked)
    }

    fn titles(&self, ui: &Ui, rect: Rect, placed: &[Placed], rows: &dyn Rows, theme: &Theme) -> Option<Did> {
        let (painter, mut did) = (ui.painter_at(rect), None);
        painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, theme.grid()));
        for column in placed {
            let wished = &rows.columns()[column.index];
            let place = Rect::from_x_y_ranges(column.left..=column.left + column.width, rect.y_range());
            let sorted = rows.sorted().filter(|(by, _)| *by == column.index).map(|(_, descending)| descending);
            let mut ink = if sorted.is_some() { theme.accent() } else { theme.faint() };
            if rows.sorts(column.index) {
                let response = ui.interact(place, ui.scope_id().with((rows.name(), wished.title)), Sense::CLICK);
                let label = format!("Sort by {}", wished.title);
                response
                    .widget_info(|| WidgetInfo::selected(Role::ColumnHeader, true, sorted.is_some(), label.as_str()));
                if response.hovered() {
                    ink = theme.text();
                }
                if response.clicked() {
                    did = Some(Did::Sort(column.index));
                }
                let order = match sorted {
                    None => "a click sorts by it",
                    Some(true) => "the largest first; a click: the smallest first",
                    Some(false) => "the smallest first; a click: the largest first",
                };
                let response = response.on_hover_cursor(CursorIcon::PointingHand);
                response.on_hover_text(format!("{}\n{order}", wished.says));
            } else {
                let response = ui.interact(place, ui.scope_id().with((rows.name(), wished.title)), Sense::hover());
                response.on_hover_text(wished.says);
            }
            let mut cell = Cell { painter: &painter, rect: place, theme, figures: wished.figures };
            if let Some(descending) = sorted {
                cell.rect = place.with_max_x(place.right() - MARK);
                mark(&painter, pos2(place.right() - MARK / 2.0 + 1.0, place.center().y), descending, ink);
            }
            cell.text(wished.title, ink);
        }
        did
    }

    /// Moves from row to row by keys.
    fn keys(&mut self, ui: &Ui, list: &eframe::egui::Response, total: usize) -> Option<Did> {
        if !self.has_keys {
            return None;
        }
        let filter = EventFilter { vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(list.id, filter));
        let mut did = None;
        for OwnKey { key, .. } in KEYS {
            let times = ui.input(|input| if input.modifiers.is_none() { input.num_presses(*key) } else { 0 });
            if times == 0 || total == 0 {
                continue;
            }
            let page = self.scroll.page();
            let here = self.current.map(|row| row.min(total - 1));
            let from = here.unwrap_or(self.seen().start);
            let to = match key {
                // The first press shows where one is.
                Key::ArrowUp | Key::ArrowDown if here.is_none() => from,
                Key::ArrowUp => from.saturating_sub(times),
                Key::ArrowDown => from + times,
                Key::PageUp => from.saturating_sub(page * times),
                Key::PageDown => from + page * times,
                Key::Home => 0,
                Key::End => total - 1,
                _ => {
                    did = here.map(Did::Open);
                    continue;
                }
            };
            let to = to.min(total - 1);
            self.current = Some(to);
            self.scroll.bring(to);
            did = Some(Did::Choose(to));
        }
        did
    }

    fn rows(
        &mut self,
        ui: &Ui,
        (list, id): (Rect, Id),
        placed: &[Placed],
        rows: &dyn Rows,
        theme: &Theme,
    ) -> Option<Did> {
        let (painter, mut did) = (ui.painter_at(list), None);
        for row in self.seen() {
            let top = list.top() + self.scroll.above(row) as f32 * ROW;
            let rect = Rect::from_min_size(pos2(list.left(), top), vec2(list.width(), ROW));
            let Some(label) = rows.label(row) else {
                // It has been asked for.
                painter.text(rect.left_center() + vec2(4.0, 0.0), Align2::LEFT_CENTER, "…", FONT, theme.faint());
                continue;
            };
            let lit = rows.is_lit(row);
            let response = ui.interact(rect.intersect(list), id.with(row), Sense::CLICK);
            response.widget_info(|| WidgetInfo::selected(Role::Row, true, lit, label.as_str()));
            if lit {
                painter.rect_filled(rect, 2.0, theme.selected());
            } else if response.hovered() {
                painter.rect_filled(rect, 2.0, theme.grid());
            }
            if self.has_keys && self.current == Some(row) {
                painter.rect_stroke(rect.shrink(0.5), 2.0, Stroke::new(1.0, theme.accent()), StrokeKind::Inside);
            }
            for column in placed {
                let place = Rect::from_x_y_ranges(column.left..=column.left + column.width, rect.y_range());
                let figures = rows.columns()[column.index].figures;
                rows.cell(row, column.index, &Cell { painter: &painter, rect: place, theme, figures });
            }
            if response.double_clicked() {
                did = Some(Did::Open(row));
            } else if response.clicked() {
                self.current = Some(row);
                did = Some(Did::Choose(row));
            }
            response.on_hover_ui_at_pointer(|ui| rows.told(row, ui));
        }
        did
    }
}
