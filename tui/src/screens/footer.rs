//! The line at the bottom: keys that help here, or the filter or search that is being typed.
//!
//! Owns: which hints fit. Refuses: keys of its own; they come from the table.

use ratatui::layout::Rect;

use crate::app::{App, Screen};
use crate::canvas::Canvas;
use crate::keys::{BINDINGS, Command};
use crate::words::columns;

/// Draws the line.
pub(super) fn draw(app: &App, canvas: &mut Canvas, line: Rect) {
    let palette = canvas.palette;
    if app.entry {
        let end = canvas.text(line.x, line.y, line.width, " /", palette.accent());
        let room = line.right().saturating_sub(end + 1);
        // The end of a long text is where one types.
        let text = app.entry_text();
        let skipped = columns(text).saturating_sub(usize::from(room));
        let shown: String = text.chars().skip(skipped).collect();
        let end = canvas.text(end, line.y, room, &shown, palette.strong());
        canvas.text(end, line.y, 1, " ", palette.selected());
        if let Some(error) = app.answer.rows.as_ref().and_then(|rows| rows.filter_error.as_ref()) {
            canvas.text(end + 2, line.y, line.right().saturating_sub(end + 2), error, palette.error());
        }
        return;
    }
    if let Some(said) = &app.said {
        canvas.fitted(line.x + 1, line.y, line.width.saturating_sub(2), said, palette.warning());
        return;
    }
    let mut x = line.x + 1;
    // A key that has nowhere to go needs no room.
    let useful = |command| match command {
        Command::Refusal => app.screen == Screen::Overview && !app.answer.refusals.is_empty(),
        // On a narrow terminal only where what is typed is seen.
        Command::Type => {
            app.program_runs() && app.output.is_some() && (app.screen == Screen::Output || app.area.width >= 100)
        }
        _ => true,
    };
    for place in app.places() {
        let rows: Vec<_> =
            BINDINGS.iter().filter(|row| row.place == *place && !row.hint.is_empty() && useful(row.command)).collect();
        // Rows that follow one another with one hint belong together: there and back.
        for both in rows.chunk_by(|first, second| first.hint == second.hint) {
            let names: Vec<String> = both.iter().map(|row| row.keys[0].name(app.glyphs.ascii)).collect();
            let short = names.iter().all(|name| columns(name) == 1);
            let key = names.join(if short { "" } else { "/" });
            let long = (columns(&key) + 1 + both[0].hint.len()) as u16;
            if x + long > line.right() {
                return;
            }
            let end = canvas.text(x, line.y, long, &key, palette.accent());
            canvas.text(end + 1, line.y, long, both[0].hint, palette.faint());
            x += long + 2;
        }
    }
}
