//! The emulated screen as bytes for a real terminal: at the end, and when the program goes on in the real terminal.
//!
//! Owns: the bytes. Refuses: to write them anywhere.

use super::Output;

impl Output {
    /// The last screen as lines for any terminal: colours kept, blank rows at the end left out, nothing left switched on.
    /// Empty when nothing is on the screen.
    pub fn last_screen(&self) -> Vec<u8> {
        let emulator = self.lock();
        let mut screen = emulator.screen().clone();
        drop(emulator);
        screen.set_scrollback(0);
        let columns = screen.size().1.get();
        let filled = screen.rows(0, columns).collect::<Vec<_>>();
        let count = filled.iter().rposition(|row| !row.trim_end().is_empty()).map_or(0, |last| last + 1);
        let mut bytes = Vec::new();
        for row in screen.rows_formatted(0, columns).take(count) {
            bytes.extend_from_slice(row.as_bytes());
            bytes.extend_from_slice(b"\x1b[m\r\n");
        }
        bytes
    }

    /// Bytes that, at the begin of a line of a real terminal, show the screen and leave the cursor, the colours and the modes as
    /// the program has set them: from there on, what the program writes can go to that terminal.
    pub fn hand_over(&self) -> Vec<u8> {
        let emulator = self.lock();
        let mut screen = emulator.screen().clone();
        drop(emulator);
        screen.set_scrollback(0);
        let mut bytes = Vec::new();
        let (row, column) = screen.cursor_position();
        let columns = screen.size().1.get();
        if screen.alternate_screen() {
            bytes.extend_from_slice(b"\x1b[?1049h");
            bytes.extend_from_slice(screen.contents_formatted().as_bytes());
        } else {
            // Rows below the cursor come too, and the cursor goes back up.
            let rows: Vec<String> = screen.rows(0, columns).collect();
            let filled = rows.iter().rposition(|row| !row.trim_end().is_empty()).map_or(0, |last| last + 1);
            let count = filled.max(usize::from(row) + 1);
            for (index, text) in screen.rows_formatted(0, columns).take(count).enumerate() {
                if index > 0 {
                    bytes.extend_from_slice(b"\x1b[m\r\n");
                }
                bytes.extend_from_slice(text.as_bytes());
            }
            let up = count - 1 - usize::from(row);
            if up > 0 {
                bytes.extend_from_slice(format!("\x1b[{up}A").as_bytes());
            }
            bytes.extend_from_slice(format!("\x1b[{}G", column.min(columns - 1) + 1).as_bytes());
        }
        bytes.extend_from_slice(screen.input_mode_formatted().as_bytes());
        bytes.extend_from_slice(screen.attributes_formatted().as_bytes());
        bytes.extend_from_slice(if screen.hide_cursor() { b"\x1b[?25l" } else { b"\x1b[?25h" });
        bytes
    }

    /// Bytes that take back, on the real terminal, what the program has left switched on there.
    pub fn clean_up(&self) -> Vec<u8> {
        let emulator = self.lock();
        let screen = emulator.screen();
        let mut bytes = Vec::new();
        if screen.alternate_screen() {
            bytes.extend_from_slice(b"\x1b[?1049l");
        }
        let fresh = vt100::Parser::default();
        bytes.extend_from_slice(fresh.screen().input_mode_diff(screen).as_bytes());
        bytes.extend_from_slice(b"\x1b[m\x1b[?25h");
        bytes
    }
}
