//! The keys: one table, from which handling, the `?` help, the footer and the documentation's table are made.
//!
//! Owns: which key means which command, and where. Refuses: what a command does (`app`).

use std::fmt::Write as _;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::app::Screen;

/// A key with what is held down with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// Ctrl, Alt, Shift. Of a character, Shift is part of the character.
    pub modifiers: KeyModifiers,
}

/// Where a binding holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// On every screen.
    Everywhere,
    /// Where there is a list.
    Lists,
    /// On the screen of allocations.
    Allocations,
    /// On the screen of scopes.
    Scopes,
    /// On the screen of steps.
    Steps,
    /// On the screen of the program's output.
    Output,
    /// In a text to read: help, findings.
    Reading,
    /// In the question how to leave.
    Leaving,
    /// In a line that is being typed: filter, search.
    Entry,
    /// While keys go to the program.
    Typing,
}

/// What a key does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is explained by its line of help in the table")]
pub enum Command {
    Show(Screen),
    NextTarget,
    PreviousTarget,
    Total,
    Device,
    Earlier,
    Later,
    MuchEarlier,
    MuchLater,
    PreviousStep,
    NextStep,
    Peak,
    Refusal,
    Live,
    Whole,
    Pause,
    ZoomIn,
    ZoomOut,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    SortLeft,
    SortRight,
    Reverse,
    Group,
    Open,
    OpenAll,
    Search,
    NextHit,
    PreviousHit,
    Clear,
    Icicle,
    GoToStep,
    Findings,
    Type,
    Palette,
    Help,
    Leave,
    Suspend,
    Close,
    GoOn,
    EndProgram,
    Back,
    Keep,
    Discard,
    Erase,
    EraseWord,
    StopTyping,
}

/// One line of a table of keys: the dashboard's, or one with places and commands of its own (`top`).
#[derive(Clone, Copy, Debug)]
pub struct Binding<P: 'static = Place, C: 'static = Command> {
    /// Any of these.
    pub keys: &'static [Key],
    /// Holds here.
    pub place: P,
    /// What it does.
    pub command: C,
    /// What it does, in words.
    pub help: &'static str,
    /// The same in a word or two, for the footer; empty for what is not shown there.
    pub hint: &'static str,
}

pub(crate) const fn char(char: char) -> Key {
    Key { code: KeyCode::Char(char), modifiers: KeyModifiers::NONE }
}

pub(crate) const fn ctrl(char: char) -> Key {
    Key { code: KeyCode::Char(char), modifiers: KeyModifiers::CONTROL }
}

pub(crate) const fn key(code: KeyCode) -> Key {
    Key { code, modifiers: KeyModifiers::NONE }
}

const fn with(modifiers: KeyModifiers, code: KeyCode) -> Key {
    Key { code, modifiers }
}

pub(crate) const fn row<P: Copy, C: Copy>(
    keys: &'static [Key],
    place: P,
    command: C,
    help: &'static str,
    hint: &'static str,
) -> Binding<P, C> {
    Binding { keys, place, command, help, hint }
}

use Command as Do;
use KeyCode::{BackTab, Backspace, Enter, Esc, F, Left, PageDown, PageUp, Right, Tab};
use KeyModifiers as Held;
use Place::{Allocations, Entry, Everywhere, Leaving, Lists, Output, Reading, Scopes, Steps, Typing};

/// The table. Where two rows have the same key, the more special place wins; see [`find`].
pub static BINDINGS: &[Binding] = &[
    row(&[char('o'), key(F(1))], Everywhere, Do::Show(Screen::Overview), "overview", ""),
    row(&[char('a'), key(F(2))], Everywhere, Do::Show(Screen::Allocations), "live allocations", ""),
    row(&[char('s'), key(F(3))], Everywhere, Do::Show(Screen::Scopes), "scopes", ""),
    row(&[char('m'), key(F(4))], Everywhere, Do::Show(Screen::Segments), "memory map of the segments", ""),
    row(&[char('t'), key(F(5))], Everywhere, Do::Show(Screen::Steps), "steps", ""),
    row(&[char('u'), key(F(6))], Everywhere, Do::Show(Screen::Output), "the program's output", ""),
    row(&[char('?')], Everywhere, Do::Help, "this help", "help"),
    row(&[char('q'), ctrl('c')], Everywhere, Do::Leave, "leave; asks while the program runs", "leave"),
    row(&[char('/')], Allocations, Do::Search, "filter: Enter keeps it, Esc clears it", "filter"),
    row(&[char('<')], Allocations, Do::SortLeft, "sort by the column to the left", "sort"),
    row(&[char('>')], Allocations, Do::SortRight, "sort by the column to the right", "sort"),
    row(&[char('r')], Allocations, Do::Reverse, "reverse the order", "reverse"),
    row(
        &[char('b')],
        Allocations,
        Do::Group,
        "group by name (alike names as one), scope, line, size, category, or not",
        "group",
    ),
    row(&[key(Enter)], Allocations, Do::Open, "show what the selected group holds", ""),
    row(&[key(Esc)], Allocations, Do::Clear, "clear the filter", ""),
    row(&[char('/')], Scopes, Do::Search, "search: Enter keeps it, Esc clears it", "search"),
    row(&[char('n')], Scopes, Do::NextHit, "next hit", ""),
    row(&[char('N')], Scopes, Do::PreviousHit, "previous hit", ""),
    row(&[key(Enter)], Scopes, Do::Open, "expand or collapse", "fold"),
    row(&[char('e')], Scopes, Do::OpenAll, "expand all, or collapse all", "all"),
    row(&[char('v')], Scopes, Do::Icicle, "tree or icicle", "icicle"),
    row(&[key(Esc)], Scopes, Do::Clear, "clear the search", ""),
    row(&[key(Enter)], Steps, Do::GoToStep, "put the time cursor on the step's peak", "go to its peak"),
    row(&[char('i')], Everywhere, Do::Type, "type into the program", "type"),
    row(&[char('/')], Output, Do::Search, "search: Enter keeps it, Esc clears it", "search"),
    row(&[char('n')], Output, Do::NextHit, "next hit", ""),
    row(&[char('N')], Output, Do::PreviousHit, "previous hit", ""),
    row(&[key(Esc)], Output, Do::Clear, "clear the search, and back to the last line", ""),
    row(&[key(Left)], Everywhere, Do::Earlier, "time cursor back by one column of the chart", "time"),
    row(&[key(Right)], Everywhere, Do::Later, "time cursor on by one column", "time"),
    row(
        &[with(Held::SHIFT, Left), with(Held::CONTROL, Left)],
        Everywhere,
        Do::MuchEarlier,
        "time cursor back by ten columns",
        "",
    ),
    row(
        &[with(Held::SHIFT, Right), with(Held::CONTROL, Right)],
        Everywhere,
        Do::MuchLater,
        "time cursor on by ten columns",
        "",
    ),
    row(&[char('[')], Everywhere, Do::PreviousStep, "to the peak of the step before", "step"),
    row(&[char(']')], Everywhere, Do::NextStep, "to the peak of the next step", "step"),
    row(&[char('x')], Everywhere, Do::Refusal, "to the next refused allocation: out of memory", "refused"),
    row(&[char('p')], Everywhere, Do::Peak, "to the peak of live bytes", "peak"),
    row(&[char('l')], Everywhere, Do::Live, "to what is live now", "live"),
    row(&[char('w')], Everywhere, Do::Whole, "to the nearest moment whose lists are whole", ""),
    row(&[char(' ')], Everywhere, Do::Pause, "pause the view, never the program; again: go on", "pause"),
    row(&[char('+'), char('=')], Everywhere, Do::ZoomIn, "less time in the chart", "zoom"),
    row(&[char('-')], Everywhere, Do::ZoomOut, "more time in the chart", "zoom"),
    row(&[key(Tab)], Everywhere, Do::NextTarget, "next target: total, each device, each process", "target"),
    row(&[key(BackTab)], Everywhere, Do::PreviousTarget, "target before", ""),
    row(
        &[char('1'), char('2'), char('3'), char('4'), char('5'), char('6'), char('7'), char('8'), char('9')],
        Everywhere,
        Do::Device,
        "the first device, the second, …",
        "",
    ),
    row(&[char('0')], Everywhere, Do::Total, "all devices and processes", ""),
    row(&[char('f')], Everywhere, Do::Findings, "all findings, with what to do", "findings"),
    row(&[char('c')], Everywhere, Do::Palette, "next palette: default, colour-blind, mono", ""),
    row(&[ctrl('z')], Everywhere, Do::Suspend, "suspend memscope, where it started no program", ""),
    row(&[key(KeyCode::Up), char('k')], Lists, Do::Up, "up", ""),
    row(&[key(KeyCode::Down), char('j')], Lists, Do::Down, "down", ""),
    row(&[key(PageUp)], Lists, Do::PageUp, "up by a screen", ""),
    row(&[key(PageDown)], Lists, Do::PageDown, "down by a screen", ""),
    row(&[key(KeyCode::Home)], Lists, Do::Home, "to the first", ""),
    row(&[key(KeyCode::End)], Lists, Do::End, "to the last", ""),
    row(&[key(KeyCode::Up), char('k')], Reading, Do::Up, "up", "scroll"),
    row(&[key(KeyCode::Down), char('j')], Reading, Do::Down, "down", "scroll"),
    row(&[key(PageUp)], Reading, Do::PageUp, "up by a screen", ""),
    row(&[key(PageDown), char(' ')], Reading, Do::PageDown, "down by a screen", ""),
    row(&[key(KeyCode::Home)], Reading, Do::Home, "to its begin", ""),
    row(&[key(KeyCode::End)], Reading, Do::End, "to its end", ""),
    row(&[key(Esc), char('q'), char('?'), char('f'), key(Enter), ctrl('c')], Reading, Do::Close, "close", "close"),
    row(&[char('g')], Leaving, Do::GoOn, "leave the dashboard; the program goes on in plain form", "go on plain"),
    row(
        &[char('e'), ctrl('c')],
        Leaving,
        Do::EndProgram,
        "end the program: SIGINT, again SIGTERM, again SIGKILL",
        "end it",
    ),
    row(&[key(Esc), char('b'), char('q')], Leaving, Do::Back, "back to the dashboard", "back"),
    row(&[key(Enter)], Entry, Do::Keep, "keep what was typed", "keep"),
    row(&[key(Esc), ctrl('c')], Entry, Do::Discard, "clear it", "clear"),
    row(&[key(Backspace), ctrl('h')], Entry, Do::Erase, "erase a character", ""),
    row(&[ctrl('w'), ctrl('u')], Entry, Do::EraseWord, "erase a word; all", ""),
    // A terminal sends Ctrl-] as byte 29, which crossterm names Ctrl-5.
    row(
        &[key(Esc), ctrl(']'), ctrl('5')],
        Typing,
        Do::StopTyping,
        "back to the dashboard; Esc twice sends the program an Esc",
        "back",
    ),
];

/// What the mouse does, for the help.
pub static MOUSE: &[(&str, &str)] = &[
    ("wheel", "scroll a list; zoom the chart"),
    ("click on a tab", "show that screen"),
    ("click on a row", "select it; again: open it"),
    ("click on a column's title", "sort by it; again: reverse"),
    ("click or drag on the chart", "put the time cursor there"),
    ("Shift and drag", "select text, in most terminals"),
];

/// The binding of a key; the places are searched one after the other.
pub fn find(event: &KeyEvent, places: &[Place]) -> Option<&'static Binding> {
    places
        .iter()
        .find_map(|place| BINDINGS.iter().find(|row| row.place == *place && row.keys.iter().any(|key| key.is(event))))
}

/// The letter of a screen.
pub fn screen_letter(screen: Screen) -> char {
    let row = BINDINGS.iter().find(|row| row.command == Command::Show(screen));
    match row.and_then(|row| row.keys.first()).map(|key| key.code) {
        Some(KeyCode::Char(letter)) => letter,
        _ => ' ',
    }
}

impl Key {
    /// True when this key was pressed.
    pub fn is(&self, event: &KeyEvent) -> bool {
        let held = event.modifiers & (Held::CONTROL | Held::ALT | Held::SHIFT);
        match self.code {
            // Terminals differ in whether they tell Shift of a character.
            KeyCode::Char(_) | BackTab => self.code == event.code && self.modifiers == held - Held::SHIFT,
            _ => self.code == event.code && self.modifiers == held,
        }
    }

    /// The event of this key.
    pub fn event(&self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// Its name; arrows as arrows unless that must be ASCII.
    pub fn name(&self, ascii: bool) -> String {
        let mut name = String::new();
        for (held, text) in [(Held::CONTROL, "Ctrl-"), (Held::ALT, "Alt-"), (Held::SHIFT, "Shift-")] {
            if self.modifiers.contains(held) {
                name.push_str(text);
            }
        }
        match (self.code, ascii) {
            (KeyCode::Char(' '), _) => name.push_str("Space"),
            (KeyCode::Char(char), _) => name.push(char),
            (F(number), _) => drop(write!(name, "F{number}")),
            (BackTab, _) => name.push_str("Shift-Tab"),
            (PageUp, _) => name.push_str("PgUp"),
            (PageDown, _) => name.push_str("PgDn"),
            (Left, false) => name.push('←'),
            (Right, false) => name.push('→'),
            (KeyCode::Up, false) => name.push('↑'),
            (KeyCode::Down, false) => name.push('↓'),
            (code, _) => drop(write!(name, "{code:?}")),
        }
        name
    }
}

impl Binding {
    /// The names of its keys; digits that follow one another as a range.
    pub fn names(&self, ascii: bool) -> String {
        if let (Command::Device, [first, .., last]) = (self.command, self.keys) {
            return format!("{}..{}", first.name(ascii), last.name(ascii));
        }
        // Ctrl-5 is Ctrl-] by another name.
        let keys = self.keys.iter().filter(|key| **key != ctrl('5'));
        keys.map(|key| key.name(ascii)).collect::<Vec<_>>().join(", ")
    }
}

impl Place {
    /// All places in the order of the help.
    pub const ALL: [Place; 10] =
        [Everywhere, Lists, Allocations, Scopes, Steps, Output, Reading, Entry, Typing, Leaving];

    /// Its heading in the help.
    pub const fn title(self) -> &'static str {
        match self {
            Everywhere => "everywhere",
            Lists => "lists",
            Allocations => "allocations",
            Scopes => "scopes",
            Steps => "steps",
            Output => "output",
            Reading => "help and findings",
            Entry => "filter and search",
            Typing => "typing into the program",
            Leaving => "the question how to leave",
        }
    }
}

/// The table for the documentation, as Markdown.
pub fn markdown() -> String {
    table(BINDINGS, &Place::ALL.map(|place| (place, place.title())), |binding| binding.names(false), MOUSE)
}

/// A table of keys as Markdown: places in their order with their titles, then the mouse.
pub(crate) fn table<P: PartialEq, C>(
    bindings: &[Binding<P, C>],
    places: &[(P, &str)],
    names: fn(&Binding<P, C>) -> String,
    mouse: &[(&str, &str)],
) -> String {
    let mut text = String::from("| where | keys | what they do |\n| --- | --- | --- |\n");
    for (place, title) in places {
        for binding in bindings.iter().filter(|binding| binding.place == *place) {
            let keys = names(binding);
            let keys: Vec<String> = keys.split(", ").map(|key| format!("`{key}`")).collect();
            let _ = writeln!(text, "| {title} | {} | {} |", keys.join(" "), binding.help);
        }
    }
    for (gesture, what) in mouse {
        let _ = writeln!(text, "| mouse | {gesture} | {what} |");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every row has keys and help, and in one place no key stands twice.
    pub(crate) fn each_key_once<P: PartialEq + std::fmt::Debug, C>(bindings: &[Binding<P, C>]) {
        for (position, row) in bindings.iter().enumerate() {
            assert!(!row.keys.is_empty() && !row.help.is_empty());
            for other in &bindings[..position] {
                let both = row.keys.iter().find(|key| row.place == other.place && other.keys.contains(key));
                assert!(both.is_none(), "{both:?} stands twice in {:?}", row.place);
            }
        }
    }

    #[test]
    fn a_key_means_one_thing_in_a_place() {
        each_key_once(BINDINGS);
    }

    #[test]
    fn the_special_place_wins() {
        let enter = KeyEvent::new(Enter, Held::NONE);
        let command = |places: &[Place]| find(&enter, places).map(|binding| binding.command);
        assert_eq!(command(&[Steps, Lists, Everywhere]), Some(Command::GoToStep));
        assert_eq!(command(&[Everywhere]), None);
        // Shift comes with the character or does not.
        for held in [Held::NONE, Held::SHIFT] {
            let event = KeyEvent::new(KeyCode::Char('?'), held);
            assert_eq!(find(&event, &[Everywhere]).map(|row| row.command), Some(Command::Help));
        }
        let event = KeyEvent::new(KeyCode::Char('q'), Held::ALT);
        assert!(find(&event, &[Everywhere]).is_none(), "Alt-q is another key");
    }

    #[test]
    fn names_are_what_is_printed_on_keys() {
        let names = |command| BINDINGS.iter().find(|row| row.command == command).expect("is in the table").names(false);
        assert_eq!(names(Command::MuchEarlier), "Shift-←, Ctrl-←");
        assert_eq!(names(Command::PreviousTarget), "Shift-Tab");
        assert_eq!(names(Command::Device), "1..9");
        assert_eq!(names(Command::Leave), "q, Ctrl-c");
        assert_eq!(names(Command::StopTyping), "Esc, Ctrl-]");
        assert!(BINDINGS.iter().all(|row| row.names(true).is_ascii()));
    }
}
