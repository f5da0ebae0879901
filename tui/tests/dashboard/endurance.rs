//! Random events in random sizes: nothing panics, and nothing is drawn outside.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use memscope_tui::glyphs::ASCII;
use memscope_tui::keys::BINDINGS;
use memscope_tui::output::Output;
use memscope_tui::palette::{Depth, Palette, Scheme};
use proptest::prelude::*;

use crate::sessions;
use crate::trace::Trace;
use crate::view::{COLOURED, Look, View};

fn event() -> impl Strategy<Value = Event> {
    let bound = (0..BINDINGS.len(), any::<prop::sample::Index>())
        .prop_map(|(row, key)| Event::Key(BINDINGS[row].keys[key.index(BINDINGS[row].keys.len())].event()));
    let char = any::<char>().prop_map(|char| Event::Key(KeyEvent::new(KeyCode::Char(char), KeyModifiers::NONE)));
    let kind = prop::sample::select(vec![
        MouseEventKind::ScrollUp,
        MouseEventKind::ScrollDown,
        MouseEventKind::Down(MouseButton::Left),
        MouseEventKind::Drag(MouseButton::Left),
    ]);
    let mouse = (kind, 0u16..260, 0u16..80)
        .prop_map(|(kind, column, row)| Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    let resize = (0u16..260, 0u16..80).prop_map(|(width, height)| Event::Resize(width, height));
    let paste = ".{0,12}".prop_map(Event::Paste);
    prop_oneof![12 => bound, 1 => char, 4 => mouse, 2 => resize, 1 => paste]
}

fn trace(which: usize) -> Trace {
    match which {
        0 => sessions::training(),
        1 => sessions::eight_gpus(),
        2 => sessions::nothing_yet(),
        3 => sessions::one_allocation(),
        4 => sessions::leaking(),
        _ => sessions::out_of_memory(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(
        which in 0usize..6,
        size in (1u16..260, 1u16..80),
        program: bool,
        ascii: bool,
        events in proptest::collection::vec(event(), 0..40),
    ) {
        let ascii_look = Look { palette: Palette::new(Scheme::Default, Depth::None), glyphs: &ASCII };
        let look = if ascii { ascii_look } else { COLOURED };
        let output = Output::new(10, 40);
        let _ = output.feed(b"some output\r\n\x1b[31mred");
        let mut view = View::of(trace(which).explorer(), size, look, Some(output), program);
        view.buffer();
        for event in &events {
            view.event(event);
            view.buffer();
        }
    }
}
