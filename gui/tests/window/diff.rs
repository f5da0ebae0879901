//! Two documents against each other: the figures of their reports, which moments are compared, and what a click selects.

use eframe::egui::Modifiers;
use egui_kittest::kittest::Queryable;
use memscope_core::Category;
use memscope_core::explorer::At;
use memscope_core::report::{Instant, units};
use memscope_gui::shared::Selection;

use crate::figures::report;
use crate::sessions::{GIB, leaking, out_of_memory};
use crate::trace::Trace;
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
fn expected(name: &str, (first, second): (Instant, Instant)) -> String {
    let bytes = |trace: &crate::trace::Trace, instant| {
        let report = report(trace, instant);
        let snapshot = if report["at"].is_null() { report["peak"].clone() } else { report["at"].clone() };
        let live = if name == "live" { &snapshot["bytes"] } else { &snapshot["by_category"][name] };
        live.as_u64().expect("bytes")
    };
    let (before, after) = (bytes(&leaking(), first), bytes(&out_of_memory(), second));
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
    click(&mut window, "peak of each");
    window.run();
    for name in ["live", "weights", "optimizer", "activations", "unknown"] {
        assert_eq!(row(&window, name), expected(name, (Instant::Peak, Instant::Peak)));
    }
    // The cursor is where memory ran out, in step 4.
    click(&mut window, "step");
    window.run();
    for name in ["live", "weights", "activations", "inputs"] {
        assert_eq!(row(&window, name), expected(name, (Instant::Step(4), Instant::Step(4))));
    }
    click(&mut window, "end of each");
    window.run();
    assert_eq!(row(&window, "live"), expected("live", (Instant::End, Instant::End)));
    let texts = heard(&window);
    assert!(texts.iter().any(|text| text.ends_with("peaks of 4 steps in both, 36 only before")), "{texts:#?}");
    // The other document is where it was.
    press_with(&mut window, Modifiers::CTRL, eframe::egui::Key::Tab);
    assert_eq!(window.state().document().expect("it is open").shared.cursor, At::Peak);
}

/// 40 GiB that were freed at 2 s, 20 GiB that live, and, at 3 s, a refusal of what is more than the rest.
fn too_much_at_once() -> Trace {
    let mut trace = Trace::new(Trace::session(&["./train"], None));
    trace.add_process(77, None);
    trace.add_device(0, 80 * GIB);
    trace.now = 1_000_000_000;
    trace.tagged(0x10_0000_0000, 20 * GIB, Category::Weights, "weight");
    trace.tagged(0x20_0000_0000, 40 * GIB, Category::Activations, "out");
    trace.now = 2_000_000_000;
    trace.free(0x20_0000_0000);
    trace.now = 3_000_000_000;
    trace.refuse(70 * GIB, 60 * GIB, 80 * GIB);
    trace.now = 4_000_000_000;
    trace.end(1);
    trace
}

/// Two that fitted are compared at their peaks; of one that did not, what held memory when it ran out is what is looked for.
#[test]
fn what_ran_out_of_memory_is_compared_where_it_did_and_the_other_at_its_peak() {
    let opens = |second: &Trace| {
        let mut window = window::sized(&[("a.mscope", &leaking()), ("b.mscope", second)], [1100.0, 760.0], 1.0);
        click(&mut window, "Diff");
        window.run();
        window.run();
        window
    };
    let mut window = opens(&too_much_at_once());
    let live = |window: &Window| row(window, "live").split(", ").nth(1).map(str::to_owned);
    assert_eq!(live(&window).as_deref(), Some("after 20.00 GiB"));
    let told = |window: &Window, text: &str| assert!(heard(window).iter().any(|heard| heard.contains(text)), "{text}");
    told(&window, "before: a.mscope, peak, at ");
    told(&window, "after: b.mscope, where memory ran out, at 3.000 s");
    told(&window, "where memory ran out, else peak");
    click(&mut window, "peak of each");
    window.run();
    assert_eq!(live(&window).as_deref(), Some("after 60.00 GiB"));
    told(&window, "after: b.mscope, peak, at 1.000 s");
    let window = opens(&leaking());
    told(&window, "after: b.mscope, peak, at ");
    assert!(heard(&window).iter().all(|text| !text.contains("ran out")), "{:#?}", heard(&window));
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
