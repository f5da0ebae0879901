//! The reason why the window exists: a profile with an out-of-memory error opens at it, and what filled memory, who made it and
//! what holds it are read without a click.

use memscope_core::explorer::{At, Target};

use crate::sessions::{eight_gpus, leaking, out_of_memory, training};
use crate::trace::Trace;
use crate::window::{self, heard};

#[test]
fn the_reason_of_an_out_of_memory_error_is_seen_without_a_click() {
    let window = window::of(&out_of_memory());
    let heard = heard(&window);
    let says = |text: &str| heard.iter().any(|heard| heard.contains(text));
    // By hand: at the refusal there live 4 · (96 + 192) · 6 MiB of weights, 4 · 576 · 6 MiB of optimizer state, and activations of
    // 14 GiB and 30,000 MiB, each less the 100 bytes that were not asked for.
    for text in [
        "Largest category:",
        "activations, 43.30 GiB",
        "Its module:",
        "model/h.0, 43.30 GiB",
        "Its holder:",
        "saved for backward",
        "Out of memory: 6.00 GiB asked for",
        "An allocation was refused, at",
    ] {
        assert!(says(text), "{text} is not among {heard:#?}");
    }
    let document = window.state().document().expect("it is open");
    let shared = &document.shared;
    assert!(matches!(shared.cursor, At::Refused(_)), "{:?}", shared.cursor);
    assert_eq!(shared.target, Target::All, "the only device is all");
}

/// Many programs end at once when memory is out: what they held is given back at the very time of the refusal.
#[test]
fn what_filled_memory_is_seen_although_the_program_died_of_it_at_once() {
    const MIB: u64 = 1 << 20;
    let mut trace = Trace::new(Trace::session(&["./fill"], None));
    trace.add_process(77, None);
    trace.add_device(0, 100 * MIB);
    trace.now = 1_000_000;
    trace.tagged(0x10_0000_0000, 90 * MIB, memscope_core::Category::Weights, "weight");
    trace.now = 2_000_000;
    trace.refuse(20 * MIB, 10 * MIB, 100 * MIB);
    trace.end(1);
    let window = window::of(&trace);
    let heard = heard(&window);
    assert!(heard.iter().any(|text| text.starts_with("weights, 90.00 MiB, 100 % of live")), "{heard:#?}");
    assert!(heard.contains("parameter (tagged)"), "{heard:#?}");
}

#[test]
fn without_an_error_a_profile_opens_at_its_peak_and_a_running_session_at_the_present() {
    let at = |trace: &Trace| window::of(trace).state().document().expect("it is open").shared.cursor;
    assert_eq!(at(&leaking()), At::Peak);
    assert_eq!(at(&training()), At::Live);
    assert_eq!(at(&eight_gpus()), At::Live);
}
