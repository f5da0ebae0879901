//! The help: the table of keys.
//!
//! Owns: its lines. Refuses: to know keys by itself.

use ratatui::layout::Rect;

use super::TopApp;
use super::keys::{BINDINGS, MOUSE, Place};
use crate::canvas::Canvas;
use crate::words::columns;

/// Columns of the keys' names.
const NAMES: u16 = 28;

/// Lines of the whole help.
fn length() -> u16 {
    (BINDINGS.len() + 2 * Place::ALL.len() + MOUSE.len() + 1) as u16
}

/// How far it can be scrolled on this screen.
pub(super) fn most_scrolled(area: Rect) -> u16 {
    length().saturating_sub(area.height.saturating_sub(2))
}

pub(super) fn draw(app: &TopApp, scrolled: u16, canvas: &mut Canvas<'_>) {
    let area = app.area;
    canvas.clear(area);
    canvas.heading(Rect { height: 1, ..area }, "memscope top: keys", "Esc closes");
    let (palette, ascii) = (canvas.palette, canvas.glyphs.ascii);
    let mut line = 0;
    let mut write = |canvas: &mut Canvas<'_>, names: &str, text: &str| {
        line += 1;
        let y = area.y + line;
        if y < area.y + 1 + scrolled || y - scrolled >= area.bottom().saturating_sub(1) {
            return;
        }
        let y = y - scrolled;
        if text.is_empty() {
            canvas.text(area.x + 1, y, area.width, names, palette.accent());
        } else {
            canvas.text(area.x + 2, y, NAMES, names, palette.strong());
            let x = area.x + 3 + NAMES.max(columns(names) as u16);
            canvas.text(x, y, area.right().saturating_sub(x), text, Default::default());
        }
    };
    for place in Place::ALL {
        write(canvas, place.title(), "");
        for binding in BINDINGS.iter().filter(|binding| binding.place == place) {
            write(canvas, &binding.names(ascii), binding.help);
        }
        write(canvas, "", "");
    }
    write(canvas, "mouse", "");
    for (gesture, what) in MOUSE {
        write(canvas, gesture, what);
    }
}
