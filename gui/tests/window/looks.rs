//! How things lie: no figure under a scroll bar, no label over another one, no bar that is too small to be seen.

use eframe::egui::Rect;
use memscope_core::colours::{Background, Palette};
use memscope_gui::theme::colour;

use crate::sessions::{leaking, out_of_memory};
use crate::window::{self, Window, click, filled, texts};

/// Where a text is drawn at the right side.
fn figure(window: &Window, text: &str) -> Rect {
    let found = texts(window).into_iter().filter(|(drawn, rect)| drawn == text && rect.left() > 640.0);
    found.map(|(_, rect)| rect).next().unwrap_or_else(|| panic!("{text} is not among {:?}", texts(window)))
}

/// In a high window there is nothing to scroll.
#[test]
fn no_figure_lies_under_a_scroll_bar() {
    let trace = out_of_memory();
    let [small, high] = [640.0, 1600.0].map(|height| {
        let window = window::sized(&[("train.mscope", &trace)], [960.0, height], 1.0);
        figure(&window, "6.75 GiB").right()
    });
    assert!(small + 8.0 <= high, "weights end at {small}, without a scroll bar at {high}");
}

#[test]
fn labels_of_time_never_meet() {
    let trace = out_of_memory();
    let meets = |window: &Window| {
        let is_time = |text: &str| text.ends_with(" s") && text[..1].parse::<u8>().is_ok();
        let ruler = |rect: &Rect| rect.top() < 100.0 && rect.left() < 640.0;
        let labels: Vec<(String, Rect)> =
            texts(window).into_iter().filter(|(text, rect)| is_time(text) && ruler(rect)).collect();
        assert!(labels.len() >= 2, "{labels:?}");
        let pairs =
            labels.iter().enumerate().flat_map(|(at, one)| labels[at + 1..].iter().map(move |other| (one, other)));
        pairs
            .filter(|((_, one), (_, other))| one.intersects(*other))
            .map(|(one, other)| format!("{one:?} {other:?}"))
            .next()
    };
    // The cursor stands on round times, and beside them.
    for step in 0..40 {
        let mut window = window::of(&trace);
        let shared = &mut window.state_mut().document_mut().expect("it is open").shared;
        let time = 500_000_000 + step * 70_000_000;
        shared.cursor = memscope_core::explorer::At::Time(memscope_core::journal::entry::Nanoseconds(time));
        if step % 2 == 0 {
            shared.zoom = Default::default();
        }
        window.run();
        assert_eq!(meets(&window), None, "cursor at {time}");
    }
}

#[test]
fn bars_of_a_difference_use_the_room_that_there_is() {
    let (first, second) = (leaking(), out_of_memory());
    let warning = colour(Palette::Default.on(Background::Dark).warning);
    for (size, least) in [([960.0, 640.0], 80.0), ([1600.0, 1000.0], 350.0)] {
        let mut window = window::sized(&[("a.mscope", &first), ("b.mscope", &second)], size, 1.0);
        click(&mut window, "Diff");
        window.run();
        let widest = filled(&window, warning).iter().map(Rect::width).fold(0.0, f32::max);
        assert!(widest > least, "{widest} at {size:?}");
    }
}
