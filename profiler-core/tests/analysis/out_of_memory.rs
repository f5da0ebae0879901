//! Out of memory of a program with an allocator of its own: what reached it, from which line, in how many pieces the cache was.

use memscope_core::explorer::{Alertness, Explorer, Limits};
use memscope_core::findings::{Detail, Finding, Oom};
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Style, finding};
use memscope_wire::{Category, Event, MemoryKind, Origin};

use crate::trace::{ALLOC_ROW, GIVEN_UP_ROW, Trace, UUID, UUID_TEXT};

const MIB: u64 = 1 << 20;
const SEGMENT: u64 = 0x10_0000_0000;

fn refused(trace: &mut Trace, row: u16, requested: u64) {
    let (memory, total) = (MemoryKind::Device, 1024 * MIB);
    trace.event(0, Event::AllocFailed { requested, free: 24 * MIB, total, device: 0, result: 2, row, memory });
}

fn line(trace: &mut Trace, text: &str) {
    let line = trace.name(0, text);
    trace.event(0, Event::RefusedLine { line, device: 0 });
}

/// 700 MiB granted: 300 MiB in three blocks with 100, 250 and 50 MiB between and behind them. Other processes have 60 MiB.
fn program() -> Trace {
    let mut trace = Trace::new(&["python", "train.py"], None);
    trace.process(0, 31);
    trace.may_give_up(0);
    trace.device(0, 0, UUID, 1024 * MIB);
    trace.step(0, 1);
    trace.phase(0, "forward");
    trace.alloc(0, SEGMENT, 700 * MIB);
    for offset in [0, 200, 550] {
        trace.block(0, SEGMENT + offset * MIB, 100 * MIB);
    }
    // Far from other events, so that it is exact.
    trace.now += 50_000_000;
    trace.sample(UUID_TEXT, 1024 * MIB, 1000 * MIB, 0, &[(31, 940 * MIB), (99, 60 * MIB)]);
    let path = trace.name(0, "Net.layers.2.mlp");
    trace.event(0, Event::Scope { path });
    trace
}

/// The driver refuses twice, PyTorch gives up, and the line is told.
fn gives_up(trace: &mut Trace) {
    trace.now += 50_000_000;
    refused(trace, ALLOC_ROW, 300 * MIB);
    refused(trace, ALLOC_ROW, 300 * MIB);
    refused(trace, GIVEN_UP_ROW, 300 * MIB);
    line(trace, "model.py:7 in Net.forward");
}

fn findings(trace: &Trace) -> Vec<Finding> {
    trace.model().report(Instant::Peak).expect("a report").findings
}

/// The findings of the profile that is written of it.
fn through_profile(trace: &Trace) -> Vec<Finding> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.mscope");
    profile::write(&trace.model(), &path, false).expect("written");
    let again = Profile::open(&path).and_then(|profile| profile.model()).expect("read");
    again.report(Instant::Peak).expect("a report").findings
}

fn oom(findings: &[Finding]) -> &Oom {
    let mut ooms = findings.iter().filter_map(|finding| match &finding.detail {
        Detail::Oom(oom) => Some(oom),
        _ => None,
    });
    let first = ooms.next().expect("out of memory");
    assert!(ooms.next().is_none(), "one a process and device");
    first
}

#[test]
fn an_error_that_reached_the_program_is_told_once_with_its_line_and_its_cause() {
    let mut trace = program();
    gives_up(&mut trace);
    trace.free_block(0, SEGMENT);
    trace.ended(0);
    trace.end(1);
    let findings = findings(&trace);
    let found = oom(&findings);
    assert_eq!((found.requested, found.refusals), (300 * MIB, 1));
    assert_eq!(found.line.as_deref(), Some("model.py:7 in Net.forward"));
    assert_eq!((found.scope.as_deref(), found.phase.as_deref()), (Some("Net/layers.2/mlp"), Some("forward")));
    assert_eq!((found.live, found.cached), (300 * MIB, 400 * MIB), "what was freed later was live");
    assert_eq!((found.free_pieces, found.largest_free_piece), (3, 250 * MIB));
    assert_eq!(found.by_category.activations, 300 * MIB, "the error ended them, and no computation");
    // 1024 in all, 24 free, 700 granted.
    assert_eq!((found.outside, found.other_processes), (Some(300 * MIB), Some(60 * MIB)));
    insta::assert_snapshot!("pytorch_out_of_memory", finding(&findings[0], Style::Plain));
    assert_eq!(through_profile(&trace), findings, "the profile has it too");
}

/// PyTorch's message names the segment, the program its tensor: both are told. What the driver was asked for earlier, and PyTorch got
/// over, is another request's; and a limit that PyTorch keeps itself asks the driver for nothing.
#[test]
fn the_segment_that_the_driver_was_asked_for_is_told_beside_the_tensor() {
    let ended = |mut trace: Trace| {
        trace.ended(0);
        trace.end(1);
        findings(&trace)
    };
    let mut trace = program();
    refused(&mut trace, ALLOC_ROW, 600 * MIB);
    trace.alloc(0, 0x20_0000_0000, 600 * MIB);
    refused(&mut trace, ALLOC_ROW, 20 * MIB);
    trace.free(0, 0x20_0000_0000);
    refused(&mut trace, ALLOC_ROW, 20 * MIB);
    refused(&mut trace, GIVEN_UP_ROW, 8 * MIB);
    let told = ended(trace.clone());
    assert_eq!((oom(&told).requested, oom(&told).segment), (8 * MIB, Some(20 * MIB)));
    let text = finding(&told[0], Style::Plain);
    let asked = "PyTorch asked for 8.00 MiB (a segment of 20.00 MiB from the driver), 24.00 MiB of 1.00 GiB were free";
    assert!(told[0].message.contains(asked), "{}", told[0].message);
    assert!(
        text.contains("It was 8.00 MiB for the tensor; PyTorch asked the driver for a segment of 20.00 MiB."),
        "{text}"
    );
    // The next is refused by PyTorch alone; it is the one that is told, since as much is live.
    refused(&mut trace, GIVEN_UP_ROW, 9 * MIB);
    assert_eq!((oom(&ended(trace.clone())).requested, oom(&ended(trace)).segment), (9 * MIB, None));
    // So where the driver granted what was asked for, a moment before.
    let mut trace = program();
    refused(&mut trace, ALLOC_ROW, 20 * MIB);
    trace.alloc(0, 0x20_0000_0000, 20 * MIB);
    refused(&mut trace, GIVEN_UP_ROW, 8 * MIB);
    let told = ended(trace);
    assert_eq!((oom(&told).requested, oom(&told).segment), (8 * MIB, None));
    assert!(!finding(&told[0], Style::Plain).contains("for the tensor"), "{}", told[0].message);
    // Others than PyTorch ask the driver for what they want.
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 1024 * MIB);
    refused(&mut trace, ALLOC_ROW, 20 * MIB);
    refused(&mut trace, ALLOC_ROW, 8 * MIB);
    assert_eq!(oom(&ended(trace)).segment, None);
}

/// Layers that are alike are one group: where they were made, who holds them, and how that is known of most of their bytes.
#[test]
fn what_held_most_says_where_it_was_made_and_who_holds_it() {
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 1024 * MIB);
    for layer in 0..3u64 {
        let address = 0x10_0000_0000 + (layer << 32);
        trace.push(0, &format!("net.{layer}"));
        trace.tagged(0, address, 100 * MIB, Category::Weights, &format!("layer.{layer}.weight"));
        trace.tagged(0, address + (1 << 30), (50 + 2 * layer) * MIB, Category::Activations, "out");
        trace.pop(0);
    }
    // The same name elsewhere, and in smaller part.
    trace.push(0, "head");
    trace.tagged(0, 0x50_0000_0000, 40 * MIB, Category::Activations, "out");
    trace.pop(0);
    trace.alloc(0, 0x60_0000_0000, 30 * MIB);
    refused(&mut trace, ALLOC_ROW, 600 * MIB);
    trace.ended(0);
    trace.end(1);
    let findings = findings(&trace);
    let told: Vec<_> = oom(&findings)
        .largest_groups
        .iter()
        .map(|group| (group.name.as_str(), group.bytes / MIB, group.scope.as_deref(), group.held_by()))
        .collect();
    let expected = [
        ("layer.*.weight", 300, Some("net.*"), "parameter (tagged)"),
        // 50, 52 and 54 MiB in the layers, which are one place, and 40 in the head.
        ("out", 196, Some("net.*"), "saved for backward (tagged)"),
        ("cuMemAlloc_v2", 30, None, "holder unknown"),
    ];
    assert_eq!(told, expected.map(|(name, bytes, scope, holder)| (name, bytes, scope, Some(holder.to_owned()))));
    assert_eq!(through_profile(&trace), findings, "the profile has it too");
}

#[test]
fn a_refusal_that_the_allocator_overcomes_is_no_error() {
    let mut trace = program();
    refused(&mut trace, ALLOC_ROW, 300 * MIB);
    trace.alloc(0, 0x20_0000_0000, 300 * MIB);
    trace.block(0, 0x20_0000_0000, 300 * MIB);
    trace.ended(0);
    trace.end(0);
    let kinds: Vec<&str> = findings(&trace).iter().map(|finding| finding.detail.kind()).collect();
    assert!(kinds.contains(&"cache_given_back") && !kinds.contains(&"oom"), "{kinds:?}");
}

/// Feeds an explorer, and hears whether it is alarmed.
struct Follower {
    explorer: Explorer,
    alertness: Alertness,
    taken: usize,
}

impl Follower {
    fn new() -> Follower {
        Follower { explorer: Explorer::new(Limits::LIVE_ONLY), alertness: Alertness::default(), taken: 0 }
    }

    fn take(&mut self, trace: &Trace) -> bool {
        let mut alarmed = false;
        for entry in &trace.entries[self.taken..] {
            self.explorer.apply(entry);
            alarmed |= self.alertness.is_alarmed(entry);
        }
        self.taken = trace.entries.len();
        alarmed
    }
}

fn refused_memory(trace: &mut Trace, memory: MemoryKind, requested: u64) {
    let (device, row) = (0, ALLOC_ROW);
    trace.event(0, Event::AllocFailed { requested, free: MIB, total: 1024 * MIB, device, result: 2, row, memory });
}

#[test]
fn a_program_without_a_framework_is_told_at_once() {
    let mut follower = Follower::new();
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 31);
    trace.device(0, 0, UUID, 1024 * MIB);
    trace.alloc(0, SEGMENT, 700 * MIB);
    // Blocks of the program's own word are not a framework's.
    let (address, bytes) = (SEGMENT, 100 * MIB);
    trace.event(0, Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin: Origin::Tagged });
    trace.push(0, "encoder");
    refused(&mut trace, ALLOC_ROW, 400 * MIB);
    assert!(follower.take(&trace));
    let told = follower.explorer.out_of_memory(true);
    let found = oom(&told);
    assert_eq!((found.requested, found.function.as_str()), (400 * MIB, "cuMemAlloc_v2"));
    assert_eq!((found.scope.as_deref(), found.live, found.cached), (Some("encoder"), 100 * MIB, 600 * MIB));
    assert_eq!(follower.explorer.out_of_memory(false), [], "once");
    trace.event(
        0,
        Event::AllocFailed {
            requested: 1,
            free: 0,
            total: 0,
            device: 0,
            result: 1,
            row: ALLOC_ROW,
            memory: MemoryKind::Device,
        },
    );
    assert!(!follower.take(&trace), "an invalid argument is not out of memory");
}

#[test]
fn pools_of_a_framework_are_told_and_its_cache_is_not() {
    let mut follower = Follower::new();
    let mut trace = program();
    refused(&mut trace, ALLOC_ROW, 300 * MIB);
    assert!(!follower.take(&trace), "the caching allocator asks again");
    refused_memory(&mut trace, MemoryKind::Pool, 200 * MIB);
    assert!(follower.take(&trace));
    assert_eq!(follower.explorer.out_of_memory(true), [], "its line may still come");
    line(&mut trace, "model.py:9 in Net.forward");
    assert!(follower.take(&trace));
    let told = follower.explorer.out_of_memory(true);
    assert_eq!((oom(&told).requested, oom(&told).line.as_deref()), (200 * MIB, Some("model.py:9 in Net.forward")));
    refused_memory(&mut trace, MemoryKind::Managed, 100 * MIB);
    assert!(follower.take(&trace));
    assert_eq!(oom(&follower.explorer.out_of_memory(false)).requested, 100 * MIB);
    trace.ended(0);
    trace.end(1);
    let all = findings(&trace);
    assert_eq!(oom(&all).refusals, 2, "the two that reached the program");
}

#[test]
fn a_pools_second_try_is_the_one_that_counts() {
    let start = || {
        let mut trace = Trace::new(&["python", "train.py"], None);
        trace.process(0, 31);
        trace.device(0, 0, UUID, 1024 * MIB);
        trace.event(0, Event::Framework);
        trace
    };
    let granted = |trace: &mut Trace, requested: u64| {
        let (memory, address) = (MemoryKind::Pool, 0x30_0000_0000 + trace.now);
        let event = Event::Alloc { address, bytes: requested, requested, stream: 0, device: 0, row: ALLOC_ROW, memory };
        trace.event(0, event);
    };
    let pool = MemoryKind::Pool;
    // Refused, trimmed, given: no error, for whoever follows and for the report.
    let (mut trace, mut follower) = (start(), Follower::new());
    refused_memory(&mut trace, pool, 200 * MIB);
    follower.take(&trace);
    assert_eq!(follower.explorer.out_of_memory(true), []);
    granted(&mut trace, 200 * MIB);
    follower.take(&trace);
    assert_eq!(follower.explorer.out_of_memory(false), []);
    trace.ended(0);
    trace.end(0);
    let kinds: Vec<&str> = findings(&trace).iter().map(|finding| finding.detail.kind()).collect();
    assert!(kinds.contains(&"cache_given_back") && !kinds.contains(&"oom"), "{kinds:?}");
    // Refused twice: one error. And so a second time, of the same size.
    let (mut trace, mut follower) = (start(), Follower::new());
    for time in 1..=2 {
        refused_memory(&mut trace, pool, 200 * MIB);
        refused_memory(&mut trace, pool, 200 * MIB);
        follower.take(&trace);
        assert_eq!(follower.explorer.out_of_memory(true), [], "its line may still come");
        line(&mut trace, &format!("model.py:{time} in Net.forward"));
        follower.take(&trace);
        let told = follower.explorer.out_of_memory(true);
        assert_eq!(oom(&told).line, Some(format!("model.py:{time} in Net.forward")));
    }
    // What is asked for between is another request.
    refused_memory(&mut trace, pool, 300 * MIB);
    granted(&mut trace, 100 * MIB);
    follower.take(&trace);
    assert_eq!(oom(&follower.explorer.out_of_memory(false)).requested, 300 * MIB);
    trace.ended(0);
    trace.end(1);
    let all = findings(&trace);
    assert_eq!(oom(&all).refusals, 3);
    assert_eq!(through_profile(&trace), all);
}

#[test]
fn the_first_refusal_of_a_frameworks_process_waits_for_its_word() {
    let start = || {
        let mut trace = Trace::new(&["python", "train.py"], None);
        trace.process(0, 31);
        trace.may_give_up(0);
        trace.device(0, 0, UUID, 1024 * MIB);
        let (device, memory) = (memscope_wire::event::NO_DEVICE, MemoryKind::Pageable);
        trace.event(0, Event::Alloc { address: 64, bytes: 8, requested: 8, stream: 0, device, row: 80, memory });
        refused(&mut trace, ALLOC_ROW, 2000 * MIB);
        trace
    };
    // PyTorch gives up: told once, as PyTorch's.
    let (mut trace, mut follower) = (start(), Follower::new());
    assert!(follower.take(&trace));
    assert_eq!(follower.explorer.out_of_memory(true), [], "who asked is not known");
    refused(&mut trace, GIVEN_UP_ROW, 2000 * MIB);
    assert!(follower.take(&trace));
    assert_eq!(oom(&follower.explorer.out_of_memory(false)).function, "c10::reportOutOfMemoryToProfiler");
    // It says nothing: another library of the process has asked.
    let (trace, mut follower) = (start(), Follower::new());
    assert!(follower.take(&trace));
    assert_eq!(oom(&follower.explorer.out_of_memory(false)).function, "cuMemAlloc_v2");
}

#[test]
fn a_running_program_is_told_of_each_error_once_when_its_line_is_known() {
    let (mut follower, mut trace) = (Follower::new(), program());
    refused(&mut trace, ALLOC_ROW, 300 * MIB);
    assert!(!follower.take(&trace), "the driver's refusal alone is nothing");
    refused(&mut trace, GIVEN_UP_ROW, 300 * MIB);
    assert!(follower.take(&trace));
    assert_eq!(follower.explorer.out_of_memory(true), [], "the line may still come");
    line(&mut trace, "model.py:7 in Net.forward");
    assert!(follower.take(&trace));
    let told = follower.explorer.out_of_memory(true);
    let found = oom(&told);
    assert_eq!(found.line.as_deref(), Some("model.py:7 in Net.forward"));
    assert_eq!((found.live, found.largest_free_piece), (300 * MIB, 250 * MIB));
    assert_eq!(follower.explorer.out_of_memory(false), [], "once");
    refused(&mut trace, GIVEN_UP_ROW, 200 * MIB);
    assert!(follower.take(&trace));
    assert_eq!(oom(&follower.explorer.out_of_memory(false)).line, None, "no line came");
}
