//! The program's output.
//!
//! Owns: where it stands on the screen, and what is said when there is none. Refuses: emulation (`crate::output`).

use memscope_core::report::units;
use ratatui::layout::{Position, Rect};

use crate::app::{App, Typing};
use crate::canvas::Canvas;
use crate::output::Dress;
use crate::palette::Depth;

/// Draws the output; returns where the cursor is to be, while one types.
pub(super) fn draw(app: &App, canvas: &mut Canvas, area: Rect) -> Option<Position> {
    let Some(output) = app.shown_output() else {
        let text = "There is no output to show: the program wrote to no terminal that memscope holds.";
        canvas.text(area.x + 2, area.y + area.height / 3, area.width.saturating_sub(4), text, app.palette.faint());
        return None;
    };
    let dress = Dress { colours: app.palette.depth != Depth::None, ascii: app.glyphs.ascii, ..Dress::default() };
    let cursor = output.draw(area, canvas.buffer, &dress);
    let place = output.place();
    let mut notes = Vec::new();
    if place.back > 0 {
        notes.push(format!(
            "{} back of {}",
            units::count(place.back as u64, "row", "rows"),
            units::grouped(place.kept as u64)
        ));
    }
    if let Some((hit, of)) = place.hit {
        notes.push(format!("hit {hit} of {of}"));
    }
    if !notes.is_empty() {
        let text = format!(" {} ", notes.join(", "));
        canvas.right(area.x, area.y, area.width, &text, app.palette.selected());
    }
    cursor.filter(|_| app.typing == Typing::On)
}
