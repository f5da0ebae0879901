//! What findings say, and where "Show me" leads: to a moment that is then in sight, and to what is lit there.

use egui_kittest::kittest::Queryable;
use memscope_core::explorer::At;
use memscope_core::findings::Detail;
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::{Category, MemoryKind};
use memscope_gui::shared::{Selection, Shared, Span};
use memscope_gui::view::whole;
use memscope_wire::Event;

use crate::sessions::{leaking, out_of_memory, simulated_libraries};
use crate::trace::Trace;
use crate::window::{self, Window, heard};

const MIB: u64 = 1 << 20;

/// As high as all findings.
fn tall(trace: &Trace) -> Window {
    window::sized(&[("train.mscope", trace)], [900.0, 1400.0], 1.0)
}

fn shared(window: &mut Window) -> &mut Shared {
    &mut window.state_mut().document_mut().expect("it is open").shared
}

/// Looks at the first hundredth of the session alone, then asks for the finding of a kind.
fn show(window: &mut Window, kind: &str) -> Span {
    let document = window.state().document().expect("it is open");
    let whole = whole(document.answer());
    let with_place = |finding: &&memscope_core::findings::Finding| {
        memscope_gui::panels::findings::place(document.answer(), finding).is_some()
    };
    let mut placed = document.answer().findings.iter().filter(with_place);
    let button = placed.position(|finding| finding.detail.kind() == kind).expect("there is one");
    shared(window).zoom.show(Span::between(0, whole.end / 100), whole, 0.0);
    shared(window).cursor = At::Time(Nanoseconds(1));
    // The second has the answer, and all in its place.
    window.run();
    window.run();
    let buttons: Vec<_> = window.query_all_by_label("Show me").collect();
    buttons[button].click();
    window.run();
    window.run();
    shared(window).zoom.seen(whole)
}

#[test]
fn an_out_of_memory_error_is_gone_to_with_what_filled_memory_lit() {
    let mut window = tall(&out_of_memory());
    let seen = show(&mut window, "oom");
    let At::Refused(time) = shared(&mut window).cursor else { panic!("{:?}", shared(&mut window).cursor) };
    assert!(seen.contains(time.0), "{seen:?}");
    assert_eq!(shared(&mut window).selection, Selection::Category(Category::Activations));
}

#[test]
fn growth_is_gone_to_with_its_steps_as_range() {
    let mut window = tall(&leaking());
    let seen = show(&mut window, "step_growth");
    let range = shared(&mut window).range.expect("a range");
    assert!(seen.contains(range.begin) && seen.contains(range.end), "{seen:?}");
}

/// Where most was reserved, not where most was live.
#[test]
fn a_large_cache_is_gone_to_where_it_was() {
    let mut window = tall(&leaking());
    let seen = show(&mut window, "large_cached");
    let answer = window.state().document().expect("it is open").answer().clone();
    let told = answer.findings.iter().find_map(|finding| match &finding.detail {
        Detail::LargeCached { cached, reserved, .. } => Some((*cached, *reserved)),
        _ => None,
    });
    let rows = &answer.now.state.rows;
    assert_eq!(Some((rows.cached, rows.reserved)), told);
    assert!(seen.contains(answer.now.state.time.0), "{seen:?}");
}

#[test]
fn a_refusal_is_gone_to_that_was_not_for_want_of_memory() {
    let mut trace = Trace::new(Trace::session(&["./odd"], None));
    trace.add_process(77, None);
    trace.add_device(0, 100 * MIB);
    trace.now = 1_000_000;
    trace.tagged(0x10_0000_0000, 9 * MIB, Category::Weights, "weight");
    trace.now = 2_000_000;
    let (device, memory) = (0, MemoryKind::Device);
    trace.event(Event::AllocFailed { requested: 0, free: 0, total: 0, device, result: 1, row: 3, memory });
    trace.now = 3_000_000;
    trace.free(0x10_0000_0000);
    trace.end(1);
    let mut window = tall(&trace);
    let seen = show(&mut window, "allocation_refused");
    assert_eq!(shared(&mut window).cursor, At::Refused(Nanoseconds(2_000_000)));
    assert!(seen.contains(2_000_000), "{seen:?}");
}

#[test]
fn a_finding_says_all_that_the_report_says() {
    let trace = simulated_libraries();
    let window = window::of(&trace);
    let heard = heard(&window);
    let answer = window.state().document().expect("it is open").answer();
    let mut more = 0;
    for finding in answer.findings.iter() {
        for sentence in finding.particulars() {
            assert!(heard.contains(&answer.sentence(&sentence)), "{sentence} is not among {heard:#?}");
            more += 1;
        }
    }
    assert!(more > 0);
    let window = window::of(&out_of_memory());
    let answer = window.state().document().expect("it is open").answer();
    let oom = answer.findings.iter().find_map(|finding| match &finding.detail {
        Detail::Oom(oom) => Some(memscope_core::report::circumstances(oom)),
        _ => None,
    });
    let heard = window::heard(&window);
    let told = oom.expect("the error");
    assert!(!told.is_empty() && told.iter().all(|sentence| heard.contains(sentence)), "{told:?} in {heard:#?}");
}
