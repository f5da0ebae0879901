//! Who holds memory: what the graph of a step saved, and what the program keeps beyond it.
//!
//! A program of a framework by hand: in each step a forward pass makes activations, a backward pass and an optimizer follow.

use memscope_core::explorer::{At, BandsQuery, Explorer, Query, Row, RowsQuery, SegmentsQuery, Target};
use memscope_core::findings::{Detail, Finding, Holder, Oom};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::profile::{self, Profile};
use memscope_core::report::Instant;
use memscope_wire::{Event, MemoryKind};

use crate::trace::{GIVEN_UP_ROW, Trace, UUID};

const MIB: u64 = 1 << 20;
const SEGMENT: u64 = 0x10_0000_0000;

/// A training loop of a framework on one device of 4 GiB.
struct Loop {
    trace: Trace,
    address: u64,
}

impl Loop {
    fn new() -> Loop {
        Loop::in_segment(4000)
    }

    /// With so many MiB granted.
    fn in_segment(mebibytes: u64) -> Loop {
        let mut trace = Trace::new(&["python", "train.py"], None);
        trace.process(0, 31);
        trace.may_give_up(0);
        trace.device(0, 0, UUID, 4096 * MIB);
        trace.alloc(0, SEGMENT, mebibytes * MIB);
        Loop { trace, address: SEGMENT }
    }

    fn begin(&mut self, step: u64) {
        self.trace.now = step * 1_000_000;
        self.trace.step(0, step);
        self.trace.phase(0, "forward");
    }

    fn make(&mut self, bytes: u64, scope: &str) -> u64 {
        let path = self.trace.name(0, scope);
        self.trace.event(0, Event::Scope { path });
        let address = self.address;
        self.address += bytes;
        self.trace.now += 1000;
        self.trace.block(0, address, bytes);
        address
    }

    fn free(&mut self, address: u64) {
        self.trace.now += 1000;
        self.trace.free_block(0, address);
    }

    /// The backward pass, which ends these, and the optimizer.
    fn train(&mut self, saved: &[u64]) {
        self.trace.phase(0, "backward");
        saved.iter().for_each(|address| self.free(*address));
        self.trace.phase(0, "optimizer");
        self.trace.now += 1000;
        self.trace.phase(0, "");
    }

    fn refuse(&mut self) {
        self.refuse_of(3000);
    }

    fn refuse_of(&mut self, mebibytes: u64) {
        self.trace.now += 1000;
        let (memory, requested, total) = (MemoryKind::Device, mebibytes * MIB, 4096 * MIB);
        let event =
            Event::AllocFailed { requested, free: 96 * MIB, total, device: 0, result: 2, row: GIVEN_UP_ROW, memory };
        self.trace.event(0, event);
    }

    fn end(mut self, status: i32) -> Trace {
        self.trace.now += 1000;
        self.trace.ended(0);
        self.trace.end(status);
        self.trace
    }
}

/// Ten steps that each keep 20 MiB of an activation, and memory that runs out in the forward pass of the eleventh.
fn leaking() -> Trace {
    let mut training = Loop::new();
    for step in 1..=10 {
        training.begin(step);
        let saved = training.make(30 * MIB, "Net.encoder");
        training.make(20 * MIB, "Net.decoder");
        training.train(&[saved]);
    }
    training.begin(11);
    training.make(30 * MIB, "Net.encoder");
    training.refuse();
    training.end(1)
}

fn oom(findings: &[Finding]) -> &Oom {
    let oom = findings.iter().find_map(|finding| match &finding.detail {
        Detail::Oom(oom) => Some(oom),
        _ => None,
    });
    oom.expect("memory ran out")
}

#[test]
fn what_was_kept_from_step_to_step_is_not_said_to_be_saved_for_backward() {
    let trace = leaking();
    let findings = trace.model().report(Instant::Peak).expect("a report").findings;
    let largest = oom(&findings).largest.clone().expect("it lives");
    assert_eq!((&*largest.category, largest.scope.as_deref()), ("activations", Some("Net/decoder")));
    assert_eq!((largest.bytes, largest.scope_bytes, largest.scope_allocations), (230 * MIB, 200 * MIB, 10));
    // The first was made in step 1; steps 2 to 10 have begun and ended since.
    assert_eq!((largest.holder, largest.kept_steps), (Holder::KeptByProgram, 9));
    let sentence = largest.sentence();
    assert!(
        sentence.ends_with("made in Net/decoder: kept by the program across up to 9 steps (inferred)."),
        "{sentence}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.mscope");
    profile::write(&trace.model(), &path, false).expect("written");
    let again = Profile::open(&path).and_then(|profile| profile.model()).expect("read");
    assert_eq!(again.report(Instant::Peak).expect("a report").findings, findings, "the profile has it too");
}

#[test]
fn what_the_step_itself_saved_is_saved_for_backward_at_its_largest_moment() {
    let mut training = Loop::new();
    let mut last = None;
    for step in 1..=6 {
        training.begin(step);
        let saved = [training.make(30 * MIB, "Net.encoder"), training.make(20 * MIB, "Net.encoder")];
        // A program's names for what it got last stay until it gets the next.
        last.replace(training.make(MIB, "Net.head")).into_iter().for_each(|loss| training.free(loss));
        training.train(&saved);
    }
    training.begin(7);
    training.make(30 * MIB, "Net.encoder");
    training.refuse();
    let trace = training.end(1);
    let findings = trace.model().report(Instant::Peak).expect("a report").findings;
    let largest = oom(&findings).largest.clone().expect("it lives");
    assert_eq!((largest.holder, largest.kept_steps, &*largest.origin), (Holder::SavedForBackward, 0, "inferred"));
    assert!(largest.sentence().ends_with(": saved for backward (inferred)."), "{}", largest.sentence());
}

/// Passes that are accumulated for one step of the optimizer are one step, however many they are.
#[test]
fn an_accumulation_keeps_nothing_beyond_its_step() {
    let mut training = Loop::new();
    training.begin(1);
    training.train(&[]);
    training.begin(2);
    for _ in 0..40 {
        training.trace.phase(0, "forward");
        training.make(10 * MIB, "Net.encoder");
        training.trace.phase(0, "backward");
    }
    training.refuse();
    let findings = training.end(1).model().report(Instant::Peak).expect("a report").findings;
    assert_eq!(oom(&findings).largest.as_ref().map(|largest| largest.holder), Some(Holder::SavedForBackward));
}

#[test]
fn every_view_says_so_of_each_allocation() {
    let trace = leaking();
    let mut explorer = Explorer::new(memscope_core::explorer::Limits::NONE);
    trace.entries.iter().for_each(|entry| explorer.apply(entry));
    let at = At::Refused(explorer.answer(&Query::default()).gravest.expect("it ran out").time);
    let query = Query {
        at,
        target: Target::Device(0),
        largest: true,
        rows: Some(RowsQuery { window: 0..100, ..RowsQuery::default() }),
        segments: Some(SegmentsQuery { window: 0..10, blocks: 100, ..SegmentsQuery::default() }),
        bands: Some(BandsQuery { range: Nanoseconds(0)..Nanoseconds(u64::MAX), limit: 100, ..BandsQuery::default() }),
        ..Query::default()
    };
    let answer = explorer.answer(&query);
    let largest = answer.largest.clone().expect("it lives");
    assert_eq!(Some(&largest), oom(&answer.findings).largest.as_ref(), "as the finding has it");
    // Made in step s: until the eleventh, s + 1 to 10 have begun and ended.
    let expected = |step: u64| match step {
        10 | 11 => "saved for backward (inferred)".to_owned(),
        9 => "kept by the program across 1 step (inferred)".to_owned(),
        step => format!("kept by the program across {} steps (inferred)", 10 - step),
    };
    let rows = answer.rows.expect("rows");
    let mut seen = 0;
    for row in &rows.rows {
        let Row::Allocation(row) = row else { panic!("no groups were asked for") };
        let step = row.step.expect("all are made in steps");
        assert_eq!(row.held_by(), expected(step), "made in step {step}");
        seen += 1;
    }
    assert_eq!(seen, 11);
    let of_birth = |birth: Nanoseconds| expected(birth.0 / 1_000_000);
    let segments = answer.segments.expect("segments");
    let blocks: Vec<_> = segments.segments.iter().flat_map(|segment| &segment.shown).collect();
    assert_eq!(blocks.len(), 11);
    blocks.iter().for_each(|block| assert_eq!(block.held_by(), of_birth(block.pick.birth)));
    let bands = answer.bands.expect("bands");
    let kept = bands.bands.iter().filter(|band| band.bytes == 20 * MIB);
    assert_eq!(kept.map(|band| assert_eq!(band.held_by(), of_birth(band.pick.birth))).count(), 10);
    let earlier = explorer.answer(&Query { at: At::Step(3), ..query });
    // At the largest moment of step 3, what was made in the first has outlived the second.
    let rows = earlier.rows.expect("rows");
    let of_first = |row: &&Row| matches!(row, Row::Allocation(row) if row.step == Some(1));
    let Some(Row::Allocation(first)) = rows.rows.iter().find(of_first) else { panic!("it lives") };
    assert_eq!(first.held_by(), "kept by the program across 1 step (inferred)");
}

/// Ten steps that each keep some MiB of an activation in a segment of 1,350 MiB, and a request that fails.
fn advice(kept: u64, requested: u64) -> String {
    let mut training = Loop::in_segment(1350);
    for step in 1..=10 {
        training.begin(step);
        let saved = training.make(30 * MIB, "Net.encoder");
        training.make(kept * MIB, "Net.decoder");
        training.train(&[saved]);
    }
    training.begin(11);
    training.refuse_of(requested);
    let findings = training.end(1).model().report(Instant::Peak).expect("a report").findings;
    let oom = findings.into_iter().find(|finding| matches!(finding.detail, Detail::Oom(_)));
    oom.expect("out of memory").advice
}

/// Also where the cache, 350 MiB, has enough: that would help for a step. Those of the tenth step have outlived none yet.
#[test]
fn where_most_is_of_earlier_steps_that_is_what_to_look_for() {
    for requested in [300, 3000] {
        assert_eq!(
            advice(100, requested),
            "look for what keeps tensors across steps, such as a list of losses that still hold their graph; 900.0 MiB of \
             activations have outlived whole steps"
        );
    }
    // 100 MiB are kept, and 1,250 cached.
    assert!(advice(10, 300).starts_with("set PYTORCH_CUDA_ALLOC_CONF"), "{}", advice(10, 300));
}
