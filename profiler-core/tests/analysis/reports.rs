//! Reports of small sessions, against texts that were reviewed, and figures worked out by hand.

use memscope_core::allocation::Model;
use memscope_core::journal::entry::{
    Counters, Entry, Nanoseconds, PassedOver, ProcessIndex, Seen, SessionEnd, SessionInfo, WithoutLogs,
};
use memscope_core::report::{Instant, Report, Style, text};
use memscope_wire::{Category, Event, MemoryKind};

use crate::trace::{ALLOC_ROW, Trace, UUID, UUID_TEXT, training};

const MIB: u64 = 1 << 20;

fn report(trace: &Trace, instant: &str) -> Report {
    let instant: Instant = instant.parse().expect("a moment");
    trace.model().report(instant).expect("the session has this moment")
}

#[test]
fn a_training_loop_is_explained() {
    let report = report(&training(), "peak");
    insta::assert_snapshot!("training", text(&report, Style::Plain));
    let peak = report.peak.as_ref().expect("something was live");
    // 100 weights + 200 optimizer + 3 blocks of 64 MiB less 100 bytes each + 100 gradients.
    assert_eq!(peak.bytes, 592 * MIB - 300);
    assert_eq!((peak.step, peak.phase.as_deref()), (Some(1), Some("backward")));
    assert_eq!(peak.by_category.gradients, 100 * MIB);
    let rows = &peak.ledger.rows;
    assert_eq!((rows.reserved, rows.rounding, rows.cached), (912 * MIB, 300, 320 * MIB));
    let device = peak.ledger.device.as_ref().expect("an exact sample");
    // The sample lies before the gradients: 812 MiB reserved, 400 MiB less 30 bytes of context.
    assert_eq!((device.reserved, device.unexplained), (812 * MIB, Some((400 * MIB - 30) as i64)));
    assert_eq!((device.other_processes, device.unowned), (Some(20), Some(60)));
    assert_eq!(device.device_used, 1812 * MIB + 50);
    let end = report.end.as_ref().expect("a device");
    assert_eq!(end.bytes, 300 * MIB);
    let last = report.steps.last().expect("two steps");
    assert_eq!((last.end_s, last.live_at_end), (Some(2.245), Some(300 * MIB)));
    assert_eq!(end.ledger.rows.reserved, 812 * MIB);
    assert_eq!((report.totals.allocations, report.totals.frees, report.totals.blocks), (6, 2, 6));
    assert_eq!(report.host.peak.bytes, MIB);
    assert_eq!(report.category_peaks.activations.bytes, 192 * MIB - 300);
}

#[test]
fn other_moments_are_found() {
    let trace = training();
    let step = report(&trace, "step:2").at.expect("a moment");
    assert_eq!((step.step, step.bytes), (Some(2), 592 * MIB - 300));
    // In the middle of step 1's forward pass: two of three blocks.
    let time = report(&trace, "time:1.025").at.expect("a moment");
    assert_eq!((time.step, time.bytes), (Some(1), 428 * MIB - 200));
    assert_eq!(time.ledger.rows.cached, (512 - 128) * MIB);
    let end = report(&trace, "end").at.expect("a moment");
    assert_eq!(end.bytes, 300 * MIB);
    assert_eq!(report(&trace, "time:0").at.expect("a moment").bytes, 300 * MIB);
    let missing = trace.model().report(Instant::Step(3)).expect_err("there is no step 3");
    assert_eq!(missing.to_string(), "the session has no step 3: it has those from 1 to 2");
    let late = Instant::Time(Nanoseconds(99_000_000_000));
    let said = late.check_end(&report(&trace, &late.to_string())).expect_err("it has ended").to_string();
    assert!(said.starts_with("time:99 is past the end of the session, which is at time:"), "{said}");
    assert_eq!(Instant::Time(Nanoseconds(0)).check_end(&report(&trace, "time:0")), Ok(()));
    insta::assert_snapshot!("at_time", text(&report(&trace, "time:1.025"), Style::Plain));
}

#[test]
fn the_last_step_ends_with_its_process_when_all_went_well() {
    /// What the last step says: when it ended, and what was live then.
    fn last(trace: &Trace) -> (Option<f64>, Option<u64>) {
        let report = report(trace, "peak");
        let step = report.steps.last().expect("a step");
        if step.live_at_end.is_some() {
            assert_eq!(step.live_at_end, report.end.map(|end| end.bytes));
        }
        (step.end_s, step.live_at_end)
    }
    // Weights, and in step 1 a temporary and what it leaves; `frees` gives all of it back at the end.
    let run = |frees: bool, status: i32| {
        let mut trace = Trace::new(&["./train"], None);
        trace.process(0, 31);
        trace.device(0, 0, UUID, 1 << 30);
        trace.tagged(0, 0x1000_0000, 100 * MIB, Category::Weights, "weights");
        trace.now = 1_000_000_000;
        trace.step(0, 1);
        trace.tagged(0, 0x3000_0000, 7 * MIB, Category::Workspace, "temporary");
        trace.tagged(0, 0x2000_0000, 50 * MIB, Category::Gradients, "weights.grad");
        trace.free(0, 0x3000_0000);
        trace.phase(0, "optimizer");
        trace.now = 2_000_000_000;
        if frees {
            trace.free(0, 0x2000_0000);
            trace.free(0, 0x1000_0000);
        }
        // The last record: nothing of it concerns the device.
        trace.now = 3_000_000_000;
        trace.name(0, "bye");
        trace.ended(0);
        trace.end(status);
        trace
    };
    assert_eq!(last(&run(false, 0)), (Some(3.0), Some(150 * MIB)));
    assert_eq!(last(&run(true, 0)), (Some(3.0), Some(150 * MIB)));
    for status in [1, 137] {
        assert_eq!(last(&run(true, status)), (None, None), "status {status}");
    }
    let mut running = run(false, 0);
    running.entries.retain(|entry| !matches!(entry, Entry::End(_)));
    assert_eq!(last(&running), (None, None), "the session has not ended");
    // Two processes in one step: it ends with the later one.
    let mut both = run(false, 0);
    both.entries.retain(|entry| !matches!(entry, Entry::End(_)));
    both.now = 0;
    both.process(1, 32);
    both.device(1, 0, UUID, 1 << 30);
    both.now = 1_500_000_000;
    both.step(1, 1);
    both.tagged(1, 0x1000_0000, 20 * MIB, Category::Weights, "weights");
    both.now = 4_000_000_000;
    both.phase(1, "optimizer");
    both.ended(1);
    both.end(0);
    assert_eq!(last(&both), (Some(4.0), Some(20 * MIB)));
}

/// A training on the CPU: tensors of a framework, without any device. 40 MiB of weights; in each of two steps 3 x 8 MiB of
/// activations, 40 MiB of gradients while one activation still lives.
fn on_the_cpu() -> Trace {
    let mut trace = Trace::new(&["python", "train.py"], None);
    trace.process(0, 7);
    trace.push(0, "net");
    trace.tensor(0, 0x1000_0000, 40 * MIB, Category::Weights, "net.0.weight");
    trace.pop(0);
    for step in 1..=2 {
        trace.now = step * 1_000_000_000;
        trace.step(0, step);
        trace.phase(0, "forward");
        for layer in 0..3 {
            trace.now += 10_000_000;
            trace.push(0, &format!("net.{layer}"));
            let name = format!("net.{layer}.out");
            trace.tensor(0, 0x2000_0000 + layer * 0x0100_0000, 8 * MIB, Category::Activations, &name);
            trace.pop(0);
        }
        trace.phase(0, "backward");
        for layer in 1..3 {
            trace.now += 10_000_000;
            trace.free(0, 0x2000_0000 + layer * 0x0100_0000);
        }
        trace.tensor(0, 0x3000_0000, 40 * MIB, Category::Gradients, "net.0.weight.grad");
        trace.free(0, 0x2000_0000);
        trace.now += 10_000_000;
        trace.free(0, 0x3000_0000);
    }
    trace.now += 10_000_000;
    trace.ended(0);
    trace.end(0);
    trace
}

#[test]
fn a_training_on_the_cpu_is_explained_by_its_host_memory() {
    let trace = on_the_cpu();
    let whole = report(&trace, "peak");
    insta::assert_snapshot!("on_the_cpu", text(&whole, Style::Plain));
    assert!(whole.peak.is_none() && whole.steps.is_empty(), "there is no device memory");
    let peak = whole.host.moment.as_ref().expect("something was live");
    // Weights, the first activation, gradients.
    assert_eq!((peak.bytes, whole.host.peak.bytes, peak.by_category.gradients), (88 * MIB, 88 * MIB, 40 * MIB));
    assert_eq!((peak.step, peak.phase.as_deref(), peak.device.as_str()), (Some(1), Some("backward"), "host"));
    let scopes: Vec<_> = peak.top_scopes.iter().map(|scope| (scope.scope.as_str(), scope.bytes)).collect();
    assert_eq!(scopes, [("", 40 * MIB), ("net", 40 * MIB), ("net.0", 8 * MIB)]);
    assert_eq!(peak.ledger.rows.reserved, 88 * MIB);
    let steps: Vec<_> = whole.host.steps.iter().map(|step| (step.step, step.peak.bytes, step.live_at_end)).collect();
    assert_eq!(steps, [(1, 88 * MIB, Some(40 * MIB)), (2, 88 * MIB, Some(40 * MIB))]);
    assert_eq!(whole.host.end.as_ref().map(|end| end.bytes), Some(whole.host.at_end.live));
    // Moments.
    let at = |moment: &str| report(&trace, moment).host.at.expect("a moment");
    let two = at("step:2");
    assert_eq!((two.step, two.bytes), (Some(2), 88 * MIB));
    let forward = at("time:2.025");
    assert_eq!((forward.step, forward.phase.as_deref(), forward.bytes), (Some(2), Some("forward"), 56 * MIB));
    insta::assert_snapshot!("on_the_cpu_at_time", text(&report(&trace, "time:2.025"), Style::Plain));
    let missing = trace.model().report(Instant::Step(3)).expect_err("there is no step 3");
    assert_eq!(missing.to_string(), "the session has no step 3: it has those from 1 to 2");
}

/// A process that runs out of memory in the backward pass.
pub fn out_of_memory() -> Trace {
    let mut trace = Trace::new(&["python", "train.py"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 24 << 30);
    trace.step(0, 1);
    trace.phase(0, "backward");
    trace.push(0, "model/\u{1b}[31mred");
    trace.tagged(0, 0x10_0000_0000, 6 << 30, Category::Weights, "weights");
    for layer in 0..4 {
        let name = "a.name.so.long.that.it.would.not.fit.into.the.column.of.names.output";
        trace.tagged(0, 0x20_0000_0000 + (layer << 32), 4 << 30, Category::Activations, name);
    }
    trace.now = 2_500_000_000;
    for _ in 0..2 {
        trace.event(
            0,
            Event::AllocFailed {
                requested: 3 << 30,
                free: 1 << 30,
                total: 24 << 30,
                device: 0,
                result: 2,
                row: ALLOC_ROW,
                memory: MemoryKind::Device,
            },
        );
    }
    trace.ended(0);
    trace.end(1);
    trace
}

#[test]
fn an_out_of_memory_comes_first() {
    let report = report(&out_of_memory(), "peak");
    insta::assert_snapshot!("out_of_memory", text(&report, Style::Plain));
    insta::assert_json_snapshot!("out_of_memory_findings", report.findings);
}

#[test]
fn no_line_is_too_wide_and_colour_comes_only_when_asked() {
    for trace in [training(), out_of_memory(), layers()] {
        let report = report(&trace, "peak");
        let plain = text(&report, Style::Plain);
        assert!(plain.lines().all(|line| line.chars().count() <= 100), "{plain}");
        assert!(!plain.contains('\x1b'));
        assert!(text(&report, Style::Ansi).contains('\x1b'));
    }
}

/// A model of 24 layers in unequal sizes, more than a list of the largest names.
pub fn layers() -> Trace {
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 8 << 30);
    trace.tagged(0, 0x100_0000_0000, 400 * MIB, Category::Weights, "wte.weight");
    trace.step(0, 1);
    for layer in 0..24 {
        trace.push(0, &format!("model/h.{layer}"));
        let name = format!("h.{layer}.attn");
        trace.tagged(0, 0x200_0000_0000 + (layer << 32), (100 + layer) * MIB, Category::Activations, &name);
        trace.alloc(0, 0x300_0000_0000 + (layer << 32), MIB);
        trace.pop(0);
    }
    trace.alloc(0, 0x400_0000_0000, 5 * MIB);
    // Each poll meets a driver event within its window.
    trace.now += 500_000;
    trace.sample(UUID_TEXT, 8 << 30, 3000 * MIB, 20 * MIB, &[(31, 3000 * MIB)]);
    trace
}

#[test]
fn what_has_no_name_is_counted_together_by_its_size() {
    let mut trace = Trace::new(&["./untagged"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 80 << 30);
    for (number, mebibytes) in [64, 1, 64, 200, 64, 1].into_iter().enumerate() {
        trace.alloc(0, 0x100_0000_0000 + ((number as u64) << 32), mebibytes * MIB);
    }
    let report = report(&trace, "peak");
    let groups = &report.peak.as_ref().expect("something was live").top_groups;
    let groups: Vec<_> =
        groups.iter().map(|group| (group.name.as_str(), group.bytes / MIB, group.allocations)).collect();
    let expected =
        [("cuMemAlloc_v2", 200, 1), ("cuMemAlloc_v2, 64.00 MiB each", 192, 3), ("cuMemAlloc_v2, 1.00 MiB each", 2, 2)];
    assert_eq!(groups, expected);
    assert!(text(&report, Style::Plain).contains(
        "
    192.0 MiB  unknown      3 allocations      cuMemAlloc_v2, 64.00 MiB each
"
    ));
}

#[test]
fn layers_are_counted_together() {
    let report = report(&layers(), "peak");
    let peak = report.peak.as_ref().expect("something was live");
    let groups: Vec<(&str, &str, u64, u64)> = peak
        .top_groups
        .iter()
        .map(|group| (group.name.as_str(), group.category.as_str(), group.bytes / MIB, group.allocations))
        .collect();
    // 24 layers from 100 MiB on, each 1 MiB larger; what has no name goes by its scope, and without one by its function.
    let attention = (0..24).map(|layer| 100 + layer).sum();
    let expected = [
        ("h.*.attn", "activations", attention, 24),
        ("wte.weight", "weights", 400, 1),
        ("model/h.*", "unknown", 24, 24),
        ("cuMemAlloc_v2", "unknown", 5, 1),
    ];
    assert_eq!(groups, expected);
    let scopes: Vec<(&str, u64, u64)> = peak
        .top_scope_groups
        .iter()
        .map(|group| (group.scope.as_str(), group.by_category.activations / MIB, group.allocations))
        .collect();
    assert_eq!(scopes, [("model/h.*", attention, 48), ("", 0, 2)]);
    assert_eq!(peak.top_allocations.len(), 20);
    insta::assert_snapshot!("layers", text(&report, Style::Plain));
}

#[test]
fn sizes_tell_apart_what_has_no_name() {
    let mut trace = Trace::new(&["./simple"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 8 << 30);
    for number in 0..12 {
        trace.alloc(0, 0x100_0000_0000 + (number << 32), (100 + number / 4) * MIB);
    }
    let plain = text(&report(&trace, "peak"), Style::Plain);
    let list: Vec<&str> = plain.lines().skip_while(|line| !line.starts_with("Largest")).skip(1).take(4).collect();
    let sizes: Vec<&str> = list.iter().filter_map(|line| line.split("MiB").next()).map(str::trim).collect();
    assert_eq!(sizes, ["102.0", "101.0", "100.0", ""], "{plain}");
}

#[test]
fn use_that_was_sampled_while_memory_changed_is_told_as_such() {
    let used = |trace: &Trace| report(trace, "peak").devices[0].peak;
    let mut trace = layers();
    assert_eq!(used(&trace).device_used_exact, Some(false));
    assert_eq!(used(&trace).device_used.expect("a sample").bytes, 3020 * MIB);
    // A later one is quiet, and saw more.
    trace.now = 8_000_000;
    trace.sample(UUID_TEXT, 8 << 30, 3001 * MIB, 20 * MIB, &[(31, 3001 * MIB)]);
    assert_eq!(used(&trace).device_used_exact, Some(true));
    let plain = text(&report(&trace, "peak"), Style::Plain);
    assert!(!plain.contains("while memory was changing"), "{plain}");
    assert!(plain.contains("The device as a whole, at the sample of 0.008 s:"), "{plain}");
    // The only exact one came before anything was in use; a later one saw more, close to an allocation.
    let mut early = Trace::new(&["./train"], None);
    early.process(0, 31);
    early.device(0, 0, UUID, 8 << 30);
    early.sample(UUID_TEXT, 8 << 30, 0, 0, &[]);
    early.now = 100_000_000;
    early.tagged(0, 0x1000_0000, 100 * MIB, Category::Weights, "weights");
    let unused = text(&report(&early, "peak"), Style::Plain);
    assert!(unused.contains("every exact telemetry sample came while it was not in use"), "{unused}");
    assert!(!unused.contains("that a sample saw"), "{unused}");
    early.now += 100;
    early.sample(UUID_TEXT, 8 << 30, 150 * MIB, 0, &[(31, 150 * MIB)]);
    let changing = text(&report(&early, "peak"), Style::Plain);
    assert!(changing.contains("that a sample saw, while memory was changing: 150.0 MiB at 0.100 s."), "{changing}");
    let without = text(&report(&out_of_memory(), "peak"), Style::Plain);
    assert!(without.contains("The device as a whole is not known: no telemetry sample was taken."), "{without}");
}

#[test]
fn an_empty_session_says_why() {
    let mut model = Model::new();
    insta::assert_snapshot!("nothing", text(&model.report(Instant::Peak).expect("a report"), Style::Plain));
    model.apply(&Entry::Counters(ProcessIndex(0), Counters { dropped: 7, faults: 2, ..Counters::default() }));
    let report = model.report(Instant::End).expect("a report");
    let kinds: Vec<&str> = report.findings.iter().map(|finding| finding.detail.kind()).collect();
    assert_eq!(kinds, ["nothing_captured", "dropped_events", "faults"]);
}

#[test]
fn an_empty_session_gives_the_reason_that_its_processes_left() {
    let reason = |refusals: &[(&str, u32)]| {
        let refusals = refusals.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let mut model = Model::new();
        model.apply(&Entry::End(SessionEnd { refusals, ..SessionEnd::default() }));
        text(&model.report(Instant::Peak).expect("a report"), Style::Plain)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (name, words) in [
        ("room", "no room for a log in shared memory"),
        ("filesize", "ulimit -f"),
        ("addressspace", "ulimit -v"),
        ("denied", "fallocate"),
        ("filter", "seccomp"),
        ("unread", "memscope was gone"),
        ("of a later version", "does not tell why"),
    ] {
        let said = reason(&[(name, 1)]);
        assert!(said.contains(words), "{name}: {said}");
    }
    assert!(reason(&[("filter", 9), ("room", 1)]).contains("no room for a log"), "the gravest");
}

#[test]
fn an_empty_session_gives_the_fact_that_decides() {
    let told = |obstacle: Option<&str>, refusals: &[&str], without_logs: WithoutLogs| {
        let mut model = Model::new();
        let obstacle = obstacle.map(str::to_owned);
        model.apply(&Entry::Session(SessionInfo { obstacle, ..SessionInfo::begin(vec!["./train".into()]) }));
        let refusals = refusals.iter().map(|name| ((*name).to_owned(), 1)).collect();
        model.apply(&Entry::End(SessionEnd { refusals, without_logs: Some(without_logs), ..SessionEnd::default() }));
        let report = model.report(Instant::Peak).expect("a report");
        let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
        (finding.message.clone(), finding.advice.clone())
    };
    let passed_over = PassedOver { reason: "./helper is not in it".into(), advice: "see to it".into() };
    let known = WithoutLogs { loaded: true, signal: Some(9), ..WithoutLogs::default() };
    let seen = WithoutLogs { seen: Seen { passed_over: Some(passed_over), ..Seen::default() }, ..known.clone() };
    let (message, advice) = told(Some("it is static"), &["room"], seen.clone());
    assert!(message.ends_with("captured: it is static") && advice.contains("`memscope doctor -- ./train`"), "{advice}");
    assert!(told(None, &["room"], seen.clone()).0.contains("no room for a log"));
    let said = ("nothing was captured: ./helper is not in it".to_owned(), "see to it".to_owned());
    assert_eq!(told(None, &[], seen), said);
    assert!(told(None, &[], known).0.contains("signal 9 (SIGKILL)"));
    assert!(told(None, &[], WithoutLogs::default()).1.contains("`memscope doctor -- ./train` checks the program"));
}

#[test]
fn steps_whose_numbers_come_again_are_rows_of_their_own() {
    // Two epochs of two steps, which the second rank begins later than the first.
    let mut trace = Trace::new(&["./train"], None);
    for process in [0, 1] {
        trace.process(process, 31 + process);
        trace.device(process, 0, UUID, 1 << 30);
    }
    let order = [(0, 0), (1, 0), (0, 1), (0, 0), (1, 1), (1, 0), (1, 0), (0, 1), (1, 1)];
    let mut held = 0;
    for (at, (process, number)) in order.into_iter().enumerate() {
        trace.now = (at as u64 + 1) * 1_000_000;
        if process == 0 && held > 0 {
            trace.free(0, 0x1000_0000 * held);
        }
        trace.step(process, number);
        if process == 0 {
            held += 1;
            trace.alloc(0, 0x1000_0000 * held, held * MIB);
        }
    }
    trace.now += 1_000_000;
    trace.end(0);
    let whole = report(&trace, "peak");
    let steps: Vec<_> = whole.steps.iter().map(|step| (step.step, step.turn, step.peak.bytes / MIB)).collect();
    // The second rank comes to step 1 when the first has taken 3 MiB in its next one.
    assert_eq!(steps, [(0, 1, 1), (1, 1, 3), (0, 2, 3), (1, 2, 4)]);
    let text = text(&whole, Style::Plain);
    assert!(
        text.contains("            0 ") && text.contains(" 0 (2nd time) ") && text.contains(" 1 (2nd time) "),
        "{text}"
    );
    // The number alone is the largest of all its times.
    for (number, bytes) in [(0, 3), (1, 4)] {
        assert_eq!(report(&trace, &format!("step:{number}")).at.expect("a moment").bytes, bytes * MIB);
    }
}

#[test]
fn steady_growth_is_named_and_a_plateau_is_not() {
    let build = |steps: u64, leak: bool| {
        let mut trace = Trace::new(&["./train"], None);
        trace.process(0, 31);
        trace.device(0, 0, UUID, 1 << 30);
        for step in 0..=steps {
            trace.now = step * 1_000_000;
            trace.step(0, step);
            trace.tagged(0, 0x1000_0000 * (step + 1), 1 << 20, Category::Activations, "loss.history");
            if !leak && step > 0 {
                trace.free(0, 0x1000_0000 * step);
            }
        }
        trace.end(0);
        report(&trace, "peak").findings
    };
    let growth = build(7, true);
    assert_eq!(growth[0].detail.kind(), "step_growth");
    insta::assert_json_snapshot!("step_growth", growth);
    assert!(build(7, false).is_empty());
    assert!(build(4, true).is_empty(), "the first step, and the one that did not end, do not count");
}
