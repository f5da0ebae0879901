//! Two documents against each other: the figures of their reports, which moments are compared, and what a click selects.

use eframe::egui::Modifiers;
use egui_kittest::kittest::Queryable;
use memscope_core::Category;
use memscope_core::explorer::At;
use memscope_core::report::{Instant, units};
use memscope_gui::shared::Selection;

use crate::figures::report;
use crate::sessions::{leaking, out_of_memory};
use crate::window::{self, Window, click, heard, press_with};

/// The training with a leak before, the one that ran out of memory after.
fn window() -> Window {
    sized([1100.0, 760.0])
}

fn sized(size: [f32; 2]) -> Window {
    let (first, second) = (leaking(), out_of_memory());
    let mut window = window::sized(&[("a.mscope", &first), ("b.mscope", &second)], size, 1.0);
    click(&mut window, "Diff");
    window.run();
    window.run();
    window
}

/// A row of categories as it is heard.
fn row(window: &Window, name: &str) -> String {
    let start = format!("{name}: before ");
    heard(window)
        .into_iter()
        .find(|text| text.starts_with(&start))
        .unwrap_or_else(|| panic!("no {name}: {:#?}", heard(window)))
}

/// The same as the reports have it.
fn expected(name: &str, instant: Instant) -> String {
    let bytes = |trace: &crate::trace::Trace| {
        let report = report(trace, instant);
        let snapshot = if report["at"].is_null() { report["peak"].clone() } else { report["at"].clone() };
        let live = if name == "live" { &snapshot["bytes"] } else { &snapshot["by_category"][name] };
        live.as_u64().expect("bytes")
    };
    let (before, after) = (bytes(&leaking()), bytes(&out_of_memory()));
    let change = match after as i64 - before as i64 {
        0 => "0".to_owned(),
        change @ 1.. => format!("+{}", units::bytes(change as u64)),
        change => format!("-{}", units::bytes(change.unsigned_abs())),
    };
    format!("{name}: before {}, after {}, difference {change}", units::bytes(before), units::bytes(after))
}

#[test]
fn differences_are_those_of_the_reports_at_the_peak_and_step_by_step() {
    let mut window = window();
    for name in ["live", "weights", "optimizer", "activations", "unknown"] {
        assert_eq!(row(&window, name), expected(name, Instant::Peak));
    }
    // The cursor is where memory ran out, in step 4.
    click(&mut window, "step");
    window.run();
    for name in ["live", "weights", "activations", "inputs"] {
        assert_eq!(row(&window, name), expected(name, Instant::Step(4)));
    }
    click(&mut window, "end of each");
    window.run();
    assert_eq!(row(&window, "live"), expected("live", Instant::End));
    let texts = heard(&window);
    assert!(texts.iter().any(|text| text.ends_with("peaks of 4 steps in both, 36 only before")), "{texts:#?}");
    // The other document is where it was.
    press_with(&mut window, Modifiers::CTRL, eframe::egui::Key::Tab);
    assert_eq!(window.state().document().expect("it is open").shared.cursor, At::Peak);
}

#[test]
fn sides_are_swapped_and_rows_select() {
    let mut window = window();
    let more = row(&window, "weights");
    assert!(more.ends_with("difference +5.06 GiB"), "{more}");
    click(&mut window, &more);
    let selection = |window: &Window| window.state().document().expect("it is open").shared.selection.clone();
    assert_eq!(selection(&window), Selection::Category(Category::Weights));
    click(&mut window, "Swap");
    window.run();
    assert!(row(&window, "weights").ends_with("difference -5.06 GiB"));
    let scope =
        heard(&window).into_iter().find(|text| text.starts_with("optimizer: before 13.50 GiB")).expect("the row");
    assert!(scope.contains("after 3.38 GiB"), "{scope}");
    let context = window.ctx.clone();
    let text = window.state_mut().text(&context).expect("text");
    assert!(text.contains("By scope") && text.contains("-5.06 GiB  "), "{text}");
}

#[test]
fn one_document_alone_has_nothing_to_be_compared_with() {
    let mut window = window::of(&leaking());
    click(&mut window, "Diff");
    assert!(window.query_by_label_contains("A difference needs a second profile").is_some());
}

#[test]
fn the_difference_as_it_looks() {
    sized([900.0, 600.0]).snapshot("diff");
}
