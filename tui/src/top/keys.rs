//! The keys of `top`: one table for handling, help, footer and documentation, as the dashboard's.
//!
//! Owns: which key means which command, and where. Refuses: what a command does (`handle`).

use crossterm::event::{KeyCode, KeyEvent};

use crate::keys::{char, ctrl, key, row, table};

/// Where a binding holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the screen itself.
    Screen,
    /// In the filter that is being typed.
    Filter,
    /// In the question which signal to send.
    Kill,
    /// In the help.
    Help,
}

/// What a key does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    Leave,
    Suspend,
    Help,
    Filter,
    ClearFilter,
    SortLeft,
    SortRight,
    Reverse,
    Kill,
    Panel,
    Pause,
    Palette,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    DevicesUp,
    DevicesDown,
    Keep,
    Discard,
    Erase,
    EraseAll,
    Send,
    Term,
    Int,
    Sigkill,
    Close,
}

/// One line of the table.
pub type Binding = crate::keys::Binding<Place, Command>;

use Command as Do;
use KeyCode::{Backspace, Enter, Esc, F};
use Place::{Filter, Help, Kill, Screen};

/// The table. The function keys are those of nvtop and htop. The footer names the last key of a line.
pub static BINDINGS: &[Binding] = &[
    row(&[char('?'), char('h'), key(F(1))], Screen, Do::Help, "this help", "help"),
    row(&[char('g'), key(F(2))], Screen, Do::Panel, "GPUs: as many as fit, with charts, or only the GPUs", "GPUs"),
    row(&[char('/'), key(F(3)), key(F(4))], Screen, Do::Filter, "filter: Enter keeps it, Esc clears it", "filter"),
    row(&[char('>'), key(F(6))], Screen, Do::SortRight, "sort by the column to the right", "sort"),
    row(&[char('<')], Screen, Do::SortLeft, "sort by the column to the left", ""),
    row(&[char('r'), key(F(7))], Screen, Do::Reverse, "reverse the order", "reverse"),
    row(&[char('k'), key(F(9))], Screen, Do::Kill, "send the selected process a signal; asks first", "kill"),
    row(&[char('q'), ctrl('c'), key(F(10))], Screen, Do::Leave, "leave", "quit"),
    row(&[char(' ')], Screen, Do::Pause, "pause the view, never a process; again: go on", ""),
    row(&[char('c')], Screen, Do::Palette, "next palette: default, colour-blind, mono", ""),
    row(&[key(KeyCode::Up)], Screen, Do::Up, "up", ""),
    row(&[key(KeyCode::Down)], Screen, Do::Down, "down", ""),
    row(&[key(KeyCode::PageUp)], Screen, Do::PageUp, "up by a screen", ""),
    row(&[key(KeyCode::PageDown)], Screen, Do::PageDown, "down by a screen", ""),
    row(&[key(KeyCode::Home)], Screen, Do::Home, "to the first", ""),
    row(&[key(KeyCode::End)], Screen, Do::End, "to the last", ""),
    row(&[char('[')], Screen, Do::DevicesUp, "GPUs that do not fit: up", ""),
    row(&[char(']')], Screen, Do::DevicesDown, "GPUs that do not fit: down", ""),
    row(&[key(Esc)], Screen, Do::ClearFilter, "clear the filter", ""),
    row(&[ctrl('z')], Screen, Do::Suspend, "suspend memscope", ""),
    row(&[key(Enter)], Filter, Do::Keep, "keep what was typed", "keep"),
    row(&[ctrl('c'), key(Esc)], Filter, Do::Discard, "clear it", "clear"),
    row(&[ctrl('h'), key(Backspace)], Filter, Do::Erase, "erase a character", ""),
    row(&[ctrl('w'), ctrl('u')], Filter, Do::EraseAll, "erase all", ""),
    row(&[key(Enter)], Kill, Do::Send, "send the signal", "send"),
    row(&[key(KeyCode::Up)], Kill, Do::Up, "signal before", ""),
    row(&[key(KeyCode::Down)], Kill, Do::Down, "next signal", "choose"),
    row(&[char('t')], Kill, Do::Term, "SIGTERM: it is asked to end", ""),
    row(&[char('i')], Kill, Do::Int, "SIGINT: as Ctrl-C", ""),
    row(&[char('k')], Kill, Do::Sigkill, "SIGKILL: it ends at once, and saves nothing", ""),
    row(&[char('n'), char('q'), ctrl('c'), key(Esc)], Kill, Do::Close, "send nothing", "back"),
    row(&[key(KeyCode::Up)], Help, Do::Up, "up", ""),
    row(&[key(KeyCode::Down)], Help, Do::Down, "down", "scroll"),
    row(&[char('q'), char('?'), key(F(1)), key(Enter), ctrl('c'), key(Esc)], Help, Do::Close, "close", "close"),
];

/// What the mouse does, for the help.
pub static MOUSE: &[(&str, &str)] = &[
    ("wheel", "scroll the processes"),
    ("click on a process", "select it"),
    ("click on a column's title", "sort by it; again: reverse"),
    ("click on the footer", "as its key"),
    ("Shift and drag", "select text, in most terminals"),
];

/// The command of a key.
pub fn find(event: &KeyEvent, place: Place) -> Option<Command> {
    let held = |row: &&Binding| row.place == place && row.keys.iter().any(|key| key.is(event));
    BINDINGS.iter().find(held).map(|row| row.command)
}

impl Binding {
    /// The names of its keys.
    pub fn names(&self, ascii: bool) -> String {
        self.keys.iter().map(|key| key.name(ascii)).collect::<Vec<_>>().join(", ")
    }
}

impl Place {
    /// All places in the order of the help.
    pub const ALL: [Place; 4] = [Screen, Filter, Kill, Help];

    /// Its heading in the help.
    pub const fn title(self) -> &'static str {
        match self {
            Screen => "top",
            Filter => "filter",
            Kill => "which signal",
            Help => "help",
        }
    }
}

/// The table for the documentation, as Markdown.
pub fn markdown() -> String {
    table(BINDINGS, &Place::ALL.map(|place| (place, place.title())), |binding| binding.names(false), MOUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_one_thing_in_a_place() {
        crate::keys::tests::each_key_once(BINDINGS);
    }

    #[test]
    fn every_key_is_found_where_it_holds() {
        for row in BINDINGS {
            for key in row.keys {
                assert_eq!(find(&key.event(), row.place), Some(row.command));
            }
        }
    }

    #[test]
    fn function_keys_are_those_of_nvtop_and_htop() {
        let command = |number| find(&key(F(number)).event(), Screen);
        let expected = [Do::Help, Do::Filter, Do::Filter, Do::SortRight, Do::Kill, Do::Leave];
        assert_eq!([1, 3, 4, 6, 9, 10].map(command), expected.map(Some));
    }
}
