//! Everything that can be done by key and menu, as one table: the menu, the shortcut sheet and accessible names are made from it.
//!
//! Owns: names, shortcuts, and what each does, in words. Refuses: to do it (`app`). Keys are read only while no text is typed.

use eframe::egui::{Key, KeyboardShortcut, Modifiers};

/// Something that can be done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the table says what each does")]
pub enum Action {
    Open,
    Close,
    NextTab,
    PreviousTab,
    CopyText,
    SaveSvg,
    SavePng,
    Quit,
    GoPeak,
    GoOom,
    GoEnd,
    GoListed,
    StepBack,
    StepForward,
    CursorBack,
    CursorForward,
    ZoomIn,
    ZoomOut,
    ZoomAll,
    ZoomRange,
    PanBack,
    PanForward,
    UndoZoom,
    RedoZoom,
    ClearRange,
    ClearSelection,
    NextTarget,
    /// The pane below the timeline: 0 for none, else the number of the view.
    Pane(u8),
    Search,
    Theme,
    Palette,
    Larger,
    Smaller,
    Shortcuts,
}

/// Where an action stands in the menu.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "named as in the menu")]
pub enum Menu {
    File,
    Go,
    Time,
    View,
    Help,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which action.
    pub action: Action,
    /// Its menu.
    pub menu: Menu,
    /// Its name, in the menu and for whoever hears the window.
    pub name: &'static str,
    /// What it does.
    pub says: &'static str,
    /// The keys for it; the first is shown in the menu.
    pub keys: &'static [KeyboardShortcut],
}

const NONE: Modifiers = Modifiers::NONE;
const COMMAND: Modifiers = Modifiers::COMMAND;
const COMMAND_SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);

const fn key(modifiers: Modifiers, key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(modifiers, key)
}

const fn row(
    action: Action,
    menu: Menu,
    name: &'static str,
    keys: &'static [KeyboardShortcut],
    says: &'static str,
) -> Row {
    Row { action, menu, name, says, keys }
}

/// All actions, in the order of the menus.
pub const TABLE: &[Row] = &[
    row(Action::Open, Menu::File, "Open…", &[key(COMMAND, Key::O)], "opens a profile or a session folder as a new tab"),
    row(Action::Close, Menu::File, "Close tab", &[key(COMMAND, Key::W)], "closes this profile"),
    row(Action::NextTab, Menu::File, "Next tab", &[key(Modifiers::CTRL, Key::Tab)], "shows the next open profile"),
    row(
        Action::PreviousTab,
        Menu::File,
        "Previous tab",
        &[key(Modifiers::CTRL.plus(Modifiers::SHIFT), Key::Tab)],
        "shows the open profile before this one",
    ),
    row(
        Action::CopyText,
        Menu::File,
        "Copy as text",
        &[key(COMMAND_SHIFT, Key::C)],
        "copies what the view shows, as text",
    ),
    row(Action::SaveSvg, Menu::File, "Save view as SVG…", &[key(COMMAND, Key::E)], "writes the view as an SVG picture"),
    row(
        Action::SavePng,
        Menu::File,
        "Save view as PNG…",
        &[key(COMMAND_SHIFT, Key::E)],
        "writes the view as a PNG picture",
    ),
    row(Action::Quit, Menu::File, "Quit", &[key(COMMAND, Key::Q)], "closes the window"),
    row(Action::GoPeak, Menu::Go, "Peak", &[key(NONE, Key::P)], "puts the cursor where most was live"),
    row(Action::GoOom, Menu::Go, "Out of memory", &[key(NONE, Key::O)], "puts the cursor where memory ran out"),
    row(
        Action::GoEnd,
        Menu::Go,
        "End",
        &[key(NONE, Key::E), key(NONE, Key::End)],
        "puts the cursor at the end, and follows a running session",
    ),
    row(
        Action::GoListed,
        Menu::Go,
        "Nearest kept moment",
        &[key(NONE, Key::K)],
        "puts the cursor at the nearest moment whose lists are whole, of a session recorded with --keep",
    ),
    row(
        Action::StepBack,
        Menu::Go,
        "Step before",
        &[key(NONE, Key::OpenBracket)],
        "puts the cursor at the largest moment of the step before",
    ),
    row(
        Action::StepForward,
        Menu::Go,
        "Next step",
        &[key(NONE, Key::CloseBracket)],
        "puts the cursor at the largest moment of the next step",
    ),
    row(
        Action::CursorBack,
        Menu::Go,
        "Cursor back",
        &[key(NONE, Key::Comma)],
        "moves the cursor a little towards the beginning",
    ),
    row(
        Action::CursorForward,
        Menu::Go,
        "Cursor forward",
        &[key(NONE, Key::Period)],
        "moves the cursor a little towards the end",
    ),
    row(
        Action::NextTarget,
        Menu::Go,
        "Next device or process",
        &[key(NONE, Key::D)],
        "shows all, then each device, then each process",
    ),
    row(
        Action::ZoomIn,
        Menu::Time,
        "Zoom in",
        &[key(NONE, Key::W), key(NONE, Key::ArrowUp)],
        "shows a shorter time around the cursor",
    ),
    row(
        Action::ZoomOut,
        Menu::Time,
        "Zoom out",
        &[key(NONE, Key::S), key(NONE, Key::ArrowDown)],
        "shows a longer time",
    ),
    row(Action::ZoomAll, Menu::Time, "Show all", &[key(NONE, Key::Num0), key(NONE, Key::Home)], "shows all of time"),
    row(Action::ZoomRange, Menu::Time, "Zoom to range", &[key(NONE, Key::R)], "shows the chosen range alone"),
    row(
        Action::PanBack,
        Menu::Time,
        "Earlier",
        &[key(NONE, Key::A), key(NONE, Key::ArrowLeft)],
        "moves what is seen towards the beginning",
    ),
    row(
        Action::PanForward,
        Menu::Time,
        "Later",
        &[key(NONE, Key::F), key(NONE, Key::ArrowRight)],
        "moves what is seen towards the end",
    ),
    row(Action::UndoZoom, Menu::Time, "Undo zoom", &[key(COMMAND, Key::Z)], "shows the time that was shown before"),
    row(
        Action::RedoZoom,
        Menu::Time,
        "Redo zoom",
        &[key(COMMAND_SHIFT, Key::Z), key(COMMAND, Key::Y)],
        "shows again what was undone",
    ),
    row(Action::ClearRange, Menu::Time, "Clear range", &[key(NONE, Key::X)], "chooses no range"),
    row(
        Action::ClearSelection,
        Menu::View,
        "Clear selection",
        &[key(NONE, Key::Escape)],
        "selects nothing, and closes what lies over the window",
    ),
    row(Action::Pane(0), Menu::View, "Timeline alone", &[key(NONE, Key::Num1)], "gives the timeline all the room"),
    row(Action::Pane(1), Menu::View, "Second view", &[key(NONE, Key::Num2)], "shows that view below the timeline"),
    row(Action::Pane(2), Menu::View, "Third view", &[key(NONE, Key::Num3)], "shows that view below the timeline"),
    row(Action::Pane(3), Menu::View, "Fourth view", &[key(NONE, Key::Num4)], "shows that view below the timeline"),
    row(Action::Pane(4), Menu::View, "Fifth view", &[key(NONE, Key::Num5)], "shows that view below the timeline"),
    row(Action::Pane(5), Menu::View, "Sixth view", &[key(NONE, Key::Num6)], "shows that view below the timeline"),
    row(
        Action::Search,
        Menu::View,
        "Filter or search",
        &[key(NONE, Key::Slash)],
        "types into the field of the view below by which one filters or searches",
    ),
    row(Action::Theme, Menu::View, "Dark or light", &[key(NONE, Key::T)], "light, dark, or as the system has it"),
    row(
        Action::Palette,
        Menu::View,
        "Other palette",
        &[key(NONE, Key::C)],
        "memscope's own colours, or colours that are told apart with any colour vision",
    ),
    row(
        Action::Larger,
        Menu::View,
        "Larger",
        &[key(COMMAND, Key::Plus), key(COMMAND, Key::Equals)],
        "makes everything larger",
    ),
    row(Action::Smaller, Menu::View, "Smaller", &[key(COMMAND, Key::Minus)], "makes everything smaller"),
    row(
        Action::Shortcuts,
        Menu::Help,
        "Shortcuts",
        &[key(NONE, Key::Questionmark), key(NONE, Key::F1)],
        "shows this table",
    ),
];

/// A shortcut as it stands on the keys: `Ctrl+Shift+E`, `[`.
pub fn written(shortcut: &KeyboardShortcut) -> String {
    let modifiers = shortcut.modifiers;
    let named = [(modifiers.command || modifiers.ctrl, "Ctrl"), (modifiers.shift, "Shift"), (modifiers.alt, "Alt")];
    let names = named.into_iter().filter(|(pressed, _)| *pressed).map(|(_, name)| name);
    let key = match shortcut.logical_key {
        Key::OpenBracket => "[",
        Key::CloseBracket => "]",
        Key::Comma => ",",
        Key::Period => ".",
        Key::Questionmark => "?",
        Key::Slash => "/",
        Key::ArrowUp => "Up",
        Key::ArrowDown => "Down",
        Key::ArrowLeft => "Left",
        Key::ArrowRight => "Right",
        Key::Minus => "-",
        Key::Plus => "+",
        Key::Equals => "=",
        key => key.name(),
    };
    names.chain([key]).collect::<Vec<_>>().join("+")
}

/// The row of an action.
pub fn row_of(action: Action) -> &'static Row {
    TABLE.iter().find(|row| row.action == action).unwrap_or(&TABLE[0])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_written_as_they_stand_on_the_keyboard() {
        let first = |action| written(&row_of(action).keys[0]);
        let keys = [Action::SavePng, Action::StepBack, Action::Shortcuts, Action::Larger, Action::NextTab].map(first);
        assert_eq!(keys, ["Ctrl+Shift+E", "[", "?", "Ctrl++", "Ctrl+Tab"]);
    }

    #[test]
    fn no_two_actions_share_a_name_or_a_key() {
        let names: HashSet<_> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        let actions: HashSet<_> = TABLE.iter().map(|row| row.action).collect();
        assert_eq!(actions.len(), TABLE.len());
        let keys: Vec<_> = TABLE.iter().flat_map(|row| row.keys).map(|key| (key.modifiers, key.logical_key)).collect();
        let different: HashSet<_> = keys.iter().copied().collect();
        assert_eq!(different.len(), keys.len());
        assert!(TABLE.iter().all(|row| !row.keys.is_empty()), "a key for everything");
    }
}
