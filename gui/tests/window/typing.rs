//! Keys while something lies over the window, or text is typed: they act there, and never on the window.

use eframe::egui::{Event, Key, Modifiers};
use egui_kittest::kittest::Queryable;
use memscope_core::explorer::At;
use memscope_gui::action::{Action, TABLE};
use memscope_gui::shared::{Selection, Shared};

use crate::sessions::leaking;
use crate::window::{self, Window, click, heard, press, press_with};

fn shared(window: &Window) -> Shared {
    window.state().document().expect("it is open").shared.clone()
}

fn pressed(key: Key, modifiers: Modifiers) -> Event {
    Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers }
}

/// A sign as a keyboard sends it: its key, and its text.
fn sign(key: Key, text: &str) -> [Event; 2] {
    [pressed(key, Modifiers::NONE), Event::Text(text.to_owned())]
}

/// Presses every key of the table that neither closes nor types, and says which of them have changed something.
fn act(window: &mut Window) -> Vec<&'static str> {
    let rows = TABLE.iter().filter(|row| !matches!(row.action, Action::Shortcuts | Action::ClearSelection));
    let mut acted = Vec::new();
    for row in rows {
        let before = (shared(window), window.state().settings().look, heard(window));
        for key in row.keys {
            press_with(window, key.modifiers, key.logical_key);
            // Whatever was typed into a field is no change of the window.
            let after = (shared(window), window.state().settings().look);
            if (&before.0, &before.1) != (&after.0, &after.1) || window.state().pane_name(0).is_none() {
                acted.push(row.name);
            }
        }
    }
    acted
}

/// True while the shortcut sheet lies over the window.
fn is_sheet(window: &Window) -> bool {
    window.query_by_label_contains("In the timeline: a click sets the cursor").is_some()
}

#[test]
fn keys_do_nothing_under_the_shortcut_sheet() {
    let mut window = window::of(&leaking());
    press(&mut window, Key::F1);
    assert_eq!(act(&mut window), Vec::<&str>::new());
    assert!(is_sheet(&window), "it is still there");
    assert!(window.state().document().is_some(), "nothing was closed");
    press(&mut window, Key::F1);
    assert!(!is_sheet(&window), "its key closes it");
    press(&mut window, Key::E);
    assert_eq!(shared(&window).cursor, At::Live, "and then keys act again");
}

#[test]
fn keys_do_nothing_under_a_dialog_that_asks_for_a_path() {
    for (key, title) in [
        ((Modifiers::COMMAND, Key::O), "Open a profile or a session"),
        ((Modifiers::COMMAND, Key::E), "Save the view as SVG"),
        ((Modifiers::COMMAND | Modifiers::SHIFT, Key::E), "Save the view as PNG"),
    ] {
        let mut window = window::of(&leaking());
        press_with(&mut window, key.0, key.1);
        assert!(window.query_by_label(title).is_some(), "{title}: {:#?}", heard(&window));
        assert_eq!(act(&mut window), Vec::<&str>::new(), "{title}");
        // Also where the field has lost the keyboard.
        window.get_by_label("Browse…").focus();
        assert_eq!(act(&mut window), Vec::<&str>::new(), "{title}");
        assert!(window.query_by_label(title).is_some() && window.state().document().is_some(), "{title}");
        press(&mut window, Key::Escape);
        assert!(window.query_by_label(title).is_none(), "{title} is closed");
        assert_eq!(shared(&window).selection, Selection::None);
    }
}

/// Fast typing, or a slow frame: what follows a key that opens something comes in the same frame.
#[test]
fn what_is_typed_while_something_opens_is_for_it() {
    let mut window = window::of(&leaking());
    let cursor = shared(&window).cursor;
    let typed = |window: &mut Window, events: &[&[Event]]| {
        window.input_mut().events.extend(events.concat());
        window.run();
        window.run();
    };
    let open = [pressed(Key::O, Modifiers::COMMAND)];
    typed(&mut window, &[&open, &sign(Key::E, "e"), &sign(Key::P, "p")]);
    assert_eq!(shared(&window).cursor, cursor);
    assert_eq!(window.get_by_label("Path").value().as_deref(), Some("ep"));
    click(&mut window, "Cancel");

    // The search of each view that has one.
    for (pane, field) in [(Key::Num2, "filter"), (Key::Num3, "Search"), (Key::Num5, "Filter")] {
        press(&mut window, pane);
        window.run();
        typed(&mut window, &[&sign(Key::Slash, "/"), &sign(Key::E, "e"), &sign(Key::Num1, "1")]);
        assert_eq!(shared(&window).cursor, cursor, "{field}");
        assert_eq!(window.get_by_label(field).value().as_deref(), Some("e1"), "{field}");
        press(&mut window, Key::Escape);
        press(&mut window, Key::Escape);
    }

    // Where nothing opens, keys are keys.
    press(&mut window, Key::Num1);
    typed(&mut window, &[&sign(Key::Slash, "/"), &sign(Key::E, "e")]);
    assert_eq!(shared(&window).cursor, At::Live);
    // Each press counts, also two in a frame.
    press(&mut window, Key::OpenBracket);
    let At::Step(step) = shared(&window).cursor else { panic!("{:?}", shared(&window).cursor) };
    typed(&mut window, &[&sign(Key::OpenBracket, "["), &sign(Key::OpenBracket, "[")]);
    assert_eq!(shared(&window).cursor, At::Step(step - 2));
}

/// The keys that a view reads itself are none under a sheet either.
#[test]
fn a_views_own_keys_do_nothing_under_the_sheet() {
    let mut window = window::of(&leaking());
    press(&mut window, Key::Num5);
    window.run();
    let first = heard(&window).into_iter().find(|text| text.contains(" MiB, ") && !text.contains('%')).expect("a row");
    click(&mut window, &first);
    window.run();
    let selected = shared(&window).selection;
    assert!(matches!(selected, Selection::Allocation(_)), "{first}: {selected:?}");
    press(&mut window, Key::F1);
    for key in [Key::ArrowDown, Key::ArrowUp, Key::End, Key::Home, Key::PageDown] {
        press(&mut window, key);
        window.run();
        assert_eq!(shared(&window).selection, selected, "{key:?}");
    }
    press(&mut window, Key::Escape);
    assert_eq!(shared(&window).selection, selected, "the sheet is closed, and nothing else");
}
