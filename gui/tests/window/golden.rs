//! The reason why the window exists: a profile with an out-of-memory error opens at it, and what filled memory, who made it and
//! what holds it are read without a click.

use eframe::egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT, Queryable};
use memscope_core::Category;
use memscope_core::explorer::{At, Target};
use memscope_gui::shared::Selection;
use memscope_gui::view::whole;
use memscope_wire::Event;

use crate::sessions::{GIB, MIB, eight_gpus, leaking, out_of_memory, training};
use crate::trace::Trace;
use crate::window::{self, Window, click, heard, press, press_with};

/// A PyTorch-like program with names as long as real ones: 40 layers in a container, and a tensor that is refused, with its line.
fn wordy() -> Trace {
    let mut trace = Trace::new(Trace::session(&["python", "train_language_model.py", "--config", "large.yaml"], None));
    trace.add_process(4242, None);
    trace.add_device(0, 24 * GIB);
    trace.pin(0x90_0000_0000, 256 * MIB);
    trace.allocate(0x40_0000_0000, 23 * GIB);
    for number in 1..=5 {
        trace.now += 300_000_000;
        trace.step(number);
        trace.phase("forward");
    }
    trace.push("GPT2LMHeadModel/transformer/h.17/attention.self_attention");
    trace.block(0x40_0000_0000, 9 * GIB, Category::Activations, "");
    trace.block(0x42_8000_0000, 5 * GIB, Category::Unknown, "");
    trace.block(0x44_0000_0000, 3 * GIB, Category::Weights, "transformer.h.17.attention.query_key_value.weight");
    trace.block(0x45_0000_0000, 2 * GIB, Category::Optimizer, "transformer.h.17.attention.query_key_value.exp_avg");
    trace.now += 10_000_000;
    trace.give_up(5 * GIB, 5 * GIB + 512 * MIB, GIB, 24 * GIB);
    let line = trace.name("models/language/attention_layers.py:217 in MultiHeadSelfAttention.forward");
    trace.event(Event::RefusedLine { line, device: 0 });
    trace.end(1);
    trace
}

/// True when what has this in its name lies whole in the window, and not only a part of it.
fn in_sight(window: &Window, text: &str, size: [f32; 2]) -> bool {
    let named = |node: &egui_kittest::Node<'_>| {
        let node = node.accesskit_node();
        [node.label(), node.value()].iter().flatten().any(|name| name.contains(text))
    };
    let inside = |rect: eframe::egui::Rect| {
        rect.min.x >= 0.0 && rect.min.y >= 0.0 && rect.max.x <= size[0] && rect.max.y <= size[1]
    };
    window.root().children_recursive().filter(named).any(|node| inside(node.rect()) && node.rect().height() > 8.0)
}

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

/// Where a window is small, too: on the left the chart, on the right all that one must know first.
#[test]
fn what_was_refused_and_what_to_do_is_in_sight_without_scrolling() {
    let short = out_of_memory();
    let long = wordy();
    let of_short: &[&str] = &[
        "Out of memory: 6.00 GiB refused",
        "model/h.0",
        "step 4, forward, at 3.300000 s",
        "2.00 GiB of 80.00 GiB",
        // Both are blocks of activations; each ends 100 bytes before its block does.
        "h.0.attn.out: 29.30 GiB, 46 % of live, activations, in model/h.0, saved for backward (tagged), 1 allocation",
        "h.0.attn.scores: 14.00 GiB, 22 % of live",
        "h.*.exp_avg: 13.50 GiB, 21 % of live, optimizer, in optimizer, optimizer state (tagged), 6 allocations",
        "To do: ",
    ];
    let of_long: &[&str] = &[
        "Out of memory: 5.00 GiB refused",
        "GPT2LMHeadModel/transformer/h.17/attention.self_attention",
        "models/language/attention_layers.py:217 in MultiHeadSelfAttention.forward",
        "step 5, forward, at 1.510000 s",
        "5.00 GiB for the tensor; PyTorch asked the driver for a segment of 5.50 GiB",
        "1.00 GiB of 24.00 GiB",
        "9.00 GiB, 47 % of live, activations, in GPT2LMHeadModel/transformer/h.17/attention.self_attention",
        "5.00 GiB, 26 % of live, unknown",
        "To do: ",
    ];
    for (trace, texts) in [(&short, of_short), (&long, of_long)] {
        for size in [[1000.0, 700.0], [960.0, 640.0]] {
            for (scale, light) in [(1.0, false), (1.0, true), (2.0, false), (2.0, true)] {
                let mut window = window::sized(&[("train.mscope", trace)], size, scale);
                if light {
                    press(&mut window, Key::T);
                }
                let drawn = window::texts(&window);
                let module = |text: &&str| drawn.iter().any(|(drawn, _)| drawn.ends_with(*text));
                let modules = ["model/h.0", "…/h.17/attention.self_attention"];
                assert!(modules.iter().any(module), "the end of the module is read: {drawn:?}");
                for text in texts {
                    let seen = in_sight(&window, text, size);
                    assert!(seen, "{text} at {size:?}, {scale}x, light {light}: {:#?}", heard(&window));
                }
            }
        }
    }
}

/// The steps before the refusal can be told apart, in hours too; all of time is one key away.
#[test]
fn what_is_seen_of_time_first_are_the_last_steps() {
    let mut long = Trace::new(Trace::session(&["./train"], None));
    long.add_process(77, None);
    long.add_device(0, 100 * MIB);
    for number in 1..=4000 {
        long.now += 3_000_000_000;
        long.step(number);
        long.tagged(0x10_0000_0000, 40 * MIB, Category::Activations, "out");
        long.now += 1_000_000;
        long.free(0x10_0000_0000);
    }
    long.tagged(0x10_0000_0000, 90 * MIB, Category::Activations, "out");
    long.now += 1_000_000_000;
    long.refuse(20 * MIB, 10 * MIB, 100 * MIB);
    long.end(1);
    // Of the short one steps 2, 3 and 4; of the long one 3,998, 3,999 and 4,000, 3 s each, of more than three hours.
    let first_step = |number: u64| number * 3_000_000_000 + (number - 1) * 1_000_000;
    for (trace, refused, (before, first)) in [
        (out_of_memory(), 3_300_000_000, (500_000_000, 1_400_000_000)),
        (long, long_refusal(), (first_step(3997), first_step(3998))),
    ] {
        let mut window = window::of(&trace);
        let seen = |window: &Window| {
            let document = window.state().document().expect("it is open");
            document.shared.zoom.seen(whole(document.answer()))
        };
        let (all, near) = (whole(window.state().document().expect("it is open").answer()), seen(&window));
        assert!(near.contains(first) && !near.contains(before) && near.contains(refused), "{near:?} of {all:?}");
        press_with(&mut window, Modifiers::COMMAND, Key::Z);
        assert_eq!(seen(&window), all, "an undo shows all");
        press_with(&mut window, Modifiers::COMMAND, Key::Y);
        assert_eq!(seen(&window), near);
        press(&mut window, Key::Num0);
        assert_eq!(seen(&window), all, "and so does its key");
    }
}

/// Of the long session.
const fn long_refusal() -> u64 {
    4000 * 3_000_000_000 + 1_001_000_000 + 3999 * 1_000_000
}

/// An hour of requests, each of which fills and frees; the last one fills the device.
#[test]
fn without_steps_it_is_the_time_in_which_memory_filled() {
    let mut trace = Trace::new(Trace::session(&["./serve"], None));
    trace.add_process(77, None);
    trace.add_device(0, 100 * MIB);
    trace.tagged(0x10_0000_0000, 10 * MIB, Category::Weights, "weight");
    for _ in 0..360 {
        trace.allocate(0x20_0000_0000, 60 * MIB);
        trace.now += 5_000_000_000;
        trace.free(0x20_0000_0000);
        trace.now += 5_000_000_000;
    }
    trace.allocate(0x20_0000_0000, 80 * MIB);
    trace.now += 4_000_000_000;
    trace.refuse(20 * MIB, 10 * MIB, 100 * MIB);
    trace.end(1);
    let window = window::of(&trace);
    let document = window.state().document().expect("it is open");
    let seen = document.shared.zoom.seen(whole(document.answer()));
    assert!(seen.contains(3_604_000_000_000) && seen.contains(3_600_000_000_000), "{seen:?}");
    assert!(seen.length() < 20_000_000_000, "{seen:?}");
    // Where nothing ran out of memory, all of time is seen.
    for trace in [leaking(), training()] {
        assert!(window::of(&trace).state().document().expect("it is open").shared.zoom.is_whole());
    }
}

#[test]
fn a_click_on_what_held_most_lights_it_up_everywhere() {
    let mut window = window::of(&out_of_memory());
    let name =
        "h.0.attn.out: 29.30 GiB, 46 % of live, activations, in model/h.0, saved for backward (tagged), 1 allocation";
    click(&mut window, name);
    let selection = |window: &Window| window.state().document().expect("it is open").shared.selection.clone();
    assert_eq!(selection(&window), Selection::Group(Category::Activations, "model/h.0".into()));
    press(&mut window, Key::Num5);
    click(&mut window, "Only activations in model/h.0");
    let rows = window.state().document().expect("it is open").answer().rows.clone().expect("rows");
    // Both blocks, and no weight of that layer.
    assert_eq!((rows.filter_error.as_deref(), rows.matching), (None, 2));
    click(&mut window, name);
    assert_eq!(selection(&window), Selection::None, "a second click takes it back");
}

#[test]
fn elsewhere_the_error_is_one_line_that_leads_to_it() {
    let mut window = window::of(&out_of_memory());
    press(&mut window, Key::E);
    let told = "Out of memory: 6.00 GiB refused at 3.300000 s";
    assert!(!heard(&window).contains("Free:"), "{:#?}", heard(&window));
    click(&mut window, told);
    assert!(matches!(window.state().document().expect("it is open").shared.cursor, At::Refused(_)));
    assert!(heard(&window).contains("Free:"));
}

/// What to do comes before the figures; rows of nothing are one line.
#[test]
fn advice_is_above_the_ledger_and_rows_of_nothing_are_one_line() {
    // Of the leaking one at its peak a single row is 0 B: that would not be shorter as a line.
    for (trace, advice, folds) in [(out_of_memory(), "To do: ", true), (leaking(), "WARNING", false)] {
        let mut window = window::sized(&[("train.mscope", &trace)], [960.0, 900.0], 1.0);
        let top = |window: &Window, text: &str| {
            let mut found: Vec<f32> = window.query_all_by_label_contains(text).map(|node| node.rect().top()).collect();
            found.sort_by(f32::total_cmp);
            found.first().copied().unwrap_or_else(|| panic!("{text} is not among {:#?}", heard(window)))
        };
        assert!(top(&window, advice) < top(&window, "weights: "), "{advice}");
        if !folds {
            assert!(window.query_by_label("gradients: 0 B").is_some());
            continue;
        }
        assert!(window.query_by_label("inputs: 0 B").is_none());
        // Gradients, inputs, workspace, unknown.
        let empty = "4 rows of 0 B";
        click(&mut window, empty);
        assert!(window.query_by_label("inputs: 0 B").is_some(), "it opens");
        click(&mut window, empty);
        assert!(window.query_by_label("inputs: 0 B").is_none(), "and closes");
    }
}
