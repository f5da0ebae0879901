//! That every figure on a screen is of the moment that it seems to be of: pause, samples, groups, keys of GPUs.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use memscope_core::Category;
use memscope_core::explorer::Explorer;
use memscope_core::journal::entry::DeviceSample;
use memscope_tui::output::Output;

use crate::sessions::{self, MIB};
use crate::trace::{Trace, uuid_text};
use crate::view::View;

const SIZE: (u16, u16) = (120, 40);
const SECOND: u64 = 1_000_000_000;

fn press(view: &mut View, key: char) {
    view.app.handle(&Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE)));
}

/// What came since, and the answer to what the view asks then; twice, for what the first one raises.
fn go_on(view: &mut View, explorer: &mut Explorer, trace: &Trace, from: usize) {
    trace.entries[from..].iter().for_each(|entry| explorer.apply(entry));
    for _ in 0..2 {
        let query = view.app.query();
        view.app.receive(std::sync::Arc::new(explorer.answer(&query)));
    }
}

fn session() -> Trace {
    let mut trace = Trace::new(Trace::session(&["./train"], None));
    trace.add_process(4242, None);
    trace.add_device(0, 1 << 30);
    trace.now = SECOND;
    trace
}

#[test]
fn a_group_opens_into_exactly_what_it_holds() {
    let mut trace = session();
    trace.push("my model");
    for layer in 1..=12 {
        trace.push(&format!("h.{layer}"));
        // Layer 1 is the largest, and the first group; its path begins those of 10, 11 and 12.
        let bytes = if layer == 1 { 64 * MIB } else { MIB };
        trace.tagged(0x1000_0000 * layer, bytes, Category::Weights, "weight");
        trace.pop();
    }
    trace.pop();
    trace.tagged(0x10_0000_0000, 100 * MIB, Category::Inputs, "batch");
    let by_scope = |view: &mut View| {
        for _ in 0..5 {
            if view.text().contains("Live allocations by scope") {
                return;
            }
            view.press("b");
        }
        panic!("no grouping by scope: {}", view.text());
    };
    let mut view = View::new(&trace, SIZE);
    view.press("a");
    by_scope(&mut view);
    view.key(KeyCode::Down);
    view.key(KeyCode::Enter);
    let heading = view.line("Live allocations");
    assert!(heading.contains("1 of 13") && heading.contains("scope=\"my model/h.1\""), "{heading}");
    // The same group once more: no more terms.
    by_scope(&mut view);
    view.key(KeyCode::Enter);
    let heading = view.line("Live allocations");
    assert_eq!(heading.matches("scope=").count(), 1, "{heading}");
    assert!(heading.contains("1 of 13"), "{heading}");
    // What lies outside all scopes is a group as any other, and the largest.
    view.key(KeyCode::Esc);
    by_scope(&mut view);
    view.key(KeyCode::Enter);
    let heading = view.line("Live allocations");
    assert!(heading.contains("1 of 13") && heading.contains("scope=\"\""), "{heading}");
    assert!(view.text().contains("batch"), "{}", view.text());
}

#[test]
fn steps_of_a_paused_view_stand_still() {
    let mut trace = sessions::training();
    let mut explorer = trace.explorer();
    for shown in ["t", "", "a", "s", "m"] {
        let mut view = View::new(&trace, SIZE);
        view.press(shown).press(" ");
        // What is looked at only now was not asked for before.
        view.press("t");
        go_on(&mut view, &mut explorer, &trace, trace.entries.len());
        let before = view.text();
        assert!(before.contains("PAUSED"), "{before}");
        let from = trace.entries.len();
        trace.now += SECOND;
        trace.tagged(0x7000_0000_0000 + trace.now, 50 << 30, Category::Inputs, "late");
        for number in 0..3 {
            trace.now += SECOND;
            trace.step(trace.now + number);
        }
        trace.refuse(1 << 40, 1, 1 << 30);
        go_on(&mut view, &mut explorer, &trace, from);
        assert_eq!(view.text(), before, "paused on {shown:?}");
        press(&mut view, 'l');
        go_on(&mut view, &mut explorer, &trace, trace.entries.len());
        let after = view.text();
        assert!(after.contains("LIVE") && !after.contains("PAUSED") && after != before, "{after}");
        assert!(after.contains("the pause has ended"), "{after}");
    }
}

#[test]
fn every_screen_of_a_paused_view_stands_still() {
    for shown in ["o", "a", "s", "m", "t", "ap", "o[", "t1", "f"] {
        let mut trace = sessions::training();
        let mut explorer = trace.explorer();
        let mut view = View::new(&trace, SIZE);
        view.press(" ").press(shown);
        go_on(&mut view, &mut explorer, &trace, trace.entries.len());
        let before = view.text();
        let from = trace.entries.len();
        trace.now += SECOND;
        trace.tagged(0x7000_0000_0000, 50 << 30, Category::Inputs, "late");
        trace.step(18);
        trace.now += SECOND;
        trace.refuse(1 << 40, 1, 1 << 30);
        go_on(&mut view, &mut explorer, &trace, from);
        assert_eq!(view.text(), before, "{shown:?}");
    }
}

/// A program's output of more lines than the screen has.
fn output() -> Output {
    let output = Output::new(20, 80);
    for line in 0..200 {
        let _ = output.feed(format!("line {line}\r\n").as_bytes());
    }
    output
}

#[test]
fn the_output_of_a_paused_view_stands_still() {
    let fed = output();
    let mut view = View::of_program(&sessions::training(), SIZE, Some(fed.clone()));
    view.press("u ");
    let before = view.text();
    assert!(before.contains("PAUSED") && before.contains("line 199"), "{before}");
    let _ = fed.feed(b"more\r\nand more\r\n");
    assert_eq!(view.text(), before);
    // One can look around in it.
    view.key(KeyCode::Up);
    assert!(view.text().contains("1 row back of 181"), "{}", view.text());
    view.press(" ");
    assert!(view.text().contains("and more"), "{}", view.text());
    // Who types sees what comes of it.
    view.press(" i");
    assert!(view.text().contains("TYPING") && !view.text().contains("PAUSED"), "{}", view.text());
}

#[test]
fn the_output_moves_by_screens() {
    let mut view = View::of_program(&sessions::training(), SIZE, Some(output()));
    view.press("u");
    view.key(KeyCode::PageUp);
    // Twenty rows, of which one stays in sight.
    assert!(view.text().contains("19 rows back of 181"), "{}", view.text());
    view.key(KeyCode::PageUp);
    view.key(KeyCode::PageDown);
    assert!(view.text().contains("19 rows back of 181"), "{}", view.text());
    view.key(KeyCode::PageDown);
    view.key(KeyCode::Up);
    assert!(view.text().contains("1 row back of 181"), "{}", view.text());
}

/// What NVML says of the one device.
fn told(used: u64) -> DeviceSample {
    DeviceSample { uuid: uuid_text(0), total: Some(1 << 30), used: Some(used), ..DeviceSample::default() }
}

#[test]
fn device_figures_are_of_a_sample_that_met_this_moments_memory() {
    let mut trace = session();
    trace.tagged(0x1000_0000, 64 * MIB, Category::Weights, "weight");
    trace.now += SECOND;
    trace.sample(told(70 * MIB));
    trace.now += SECOND;
    let view = View::new(&trace, SIZE);
    assert!(view.text().contains("free 954.0 MiB"), "1024 - 70: {}", view.text());
    assert!(view.text().contains(" 70.00 MiB") && !view.text().contains('~'), "{}", view.text());
    // Another sample, in which the program holds more; then it holds what the first one met.
    trace.tagged(0x2000_0000, 128 * MIB, Category::Inputs, "batch");
    trace.now += SECOND;
    trace.sample(told(200 * MIB));
    trace.now += SECOND;
    trace.free(0x2000_0000);
    trace.now += SECOND;
    let view = View::new(&trace, SIZE);
    assert!(view.text().contains("free 954.0 MiB") && !view.text().contains("200.0 MiB"), "{}", view.text());
    // And what none has met: no device rows, and about as much used as was told last.
    trace.tagged(0x3000_0000, 32 * MIB, Category::Inputs, "batch");
    trace.now += SECOND;
    let view = View::new(&trace, SIZE);
    assert!(!view.text().contains("free ") && !view.text().contains("unexplained"), "{}", view.text());
    assert!(view.text().contains("~200.0 MiB"), "{}", view.text());
}

#[test]
fn gpus_say_their_keys_and_a_key_without_one_is_told() {
    let mut view = View::new(&sessions::eight_gpus(), SIZE);
    assert!(view.line("0 [1]").contains("H100") && view.text().contains("7 [8]"), "{}", view.text());
    view.press("9");
    assert!(view.text().contains("There is no GPU [9]: those in use have the keys 1 to 8."), "{}", view.text());
    view.press("8");
    assert!(view.text().contains("Ledger of GPU 7") && !view.text().contains("There is no GPU"), "{}", view.text());
}

#[test]
fn the_footer_says_how_to_type_where_somebody_listens() {
    let view = View::of_program(&sessions::training(), (200, 40), Some(output()));
    assert!(view.text().contains("i type"), "{}", view.text());
    assert!(!View::new(&sessions::training(), (200, 40)).text().contains("i type"));
}
