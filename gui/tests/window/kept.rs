//! Sessions of which not everything is kept: figures are of the whole, and no list is taken for whole.

use eframe::egui::Key;
use memscope_core::explorer::At;
use memscope_core::keep::Keep;
use memscope_core::report::units;
use memscope_gui::app::App;
use memscope_gui::document::Document;

use crate::sessions::{MIB, training};
use crate::window::{self, Window, heard, press};

/// Steps 6 and 7 of 16 are kept, and what came last.
fn kept() -> Window {
    let mut app = App::default();
    app.add(Document::of_explorer("kept.mscope", training().kept(Keep::Steps(Some(6), Some(7)), 50)));
    window::with(app, [1280.0, 800.0], 1.0)
}

fn put(window: &mut Window, at: At) {
    window.state_mut().document_mut().expect("a document").shared.cursor = at;
    for _ in 0..3 {
        window.run();
    }
}

fn says(window: &Window, part: &str) -> bool {
    heard(window).iter().any(|text| text.contains(part))
}

#[test]
fn every_list_of_a_moment_that_is_summed_says_how_much_it_covers() {
    let mut window = kept();
    // What lives from the beginning to the end: weights and optimizer states of six layers.
    let listed = 6 * (96 + 192 + 576) * MIB;
    // And at the largest moment of a step the batch, and what six layers and the loss hold.
    let live = listed + (48 + 6 * (320 + 640) + 700) * MIB;
    let covers = format!("{} of {}", units::bytes(listed), units::bytes(live));
    for view in ["Allocations", "Flame"] {
        window.state_mut().show_view(view);
        put(&mut window, At::Step(3));
        let said = format!("This covers {covers} live; the rest is summed only (--keep steps:6..7)");
        assert!(says(&window, &said), "{view}: {:?}", heard(&window));
        put(&mut window, At::Step(6));
        assert!(!says(&window, "This covers"), "{view}");
    }
    window.state_mut().show_view("Segments");
    put(&mut window, At::Step(3));
    assert!(says(&window, "Which parts of a segment were free at this moment is not kept."));
    window.state_mut().show_view("Memory over time");
    put(&mut window, At::Step(3));
    assert!(says(&window, &format!("Where least is kept, bands cover {covers} live")));
    assert!(says(&window, "Lists are kept: steps 6 to 7, and from step"));
    assert!(says(&window, "not kept"), "which module holds most");
    press(&mut window, Key::K);
    window.run();
    let document = window.state().document().expect("a document");
    let listed = document.answer().session.listed.as_ref().expect("not all");
    assert_eq!(document.shared.cursor, At::Time(listed.times[0].span.begin));
    assert_eq!(document.answer().now.state.step, Some(6));
}
