//! A step that needs more memory because it was given more: when it is said, and what.

use memscope_core::findings::{Detail, Finding, InputsGrew, Severity};
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Style, text};
use memscope_wire::{Category, Event, MemoryKind, Origin};
use proptest::prelude::*;

use crate::trace::{GIVEN_UP_ROW, Trace, UUID};

const MIB: u64 = 1 << 20;
const SEGMENT: u64 = 0x10_0000_0000;
const WEIGHTS: u64 = 100 * MIB;

/// A training loop of a framework: a batch, activations of ten times its size, gradients of the weights' size.
struct Loop {
    trace: Trace,
    next: u64,
}

impl Loop {
    fn new() -> Loop {
        Loop::in_segment(4000 * MIB)
    }

    fn in_segment(bytes: u64) -> Loop {
        let mut trace = Trace::new(&["python", "train.py"], None);
        trace.process(0, 31);
        trace.may_give_up(0);
        trace.device(0, 0, UUID, 4096 * MIB);
        trace.alloc(0, SEGMENT, bytes);
        let mut training = Loop { trace, next: SEGMENT };
        let weight = training.make(WEIGHTS);
        training.tag(weight, Category::Weights);
        training
    }

    fn make(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes;
        self.trace.now += 1000;
        self.trace.block(0, address, bytes);
        address
    }

    fn free(&mut self, address: u64) {
        self.trace.now += 1000;
        self.trace.free_block(0, address);
    }

    fn tag(&mut self, address: u64, category: Category) {
        let name = memscope_wire::TextId::NONE;
        self.trace.event(0, Event::Tag { address, name, category, origin: Origin::Hooked });
    }

    /// The batch of the next step, and the forward pass with it.
    fn begin(&mut self, step: u64, batch: u64) -> [u64; 2] {
        self.next = SEGMENT + WEIGHTS;
        let batch_at = self.make(batch);
        self.tag(batch_at, Category::Inputs);
        self.trace.step(0, step);
        self.trace.phase(0, "forward");
        let path = self.trace.name(0, "Net.body");
        self.trace.event(0, Event::Scope { path });
        [batch_at, self.make(10 * batch)]
    }

    fn step(&mut self, step: u64, batch: u64) {
        let [batch, activation] = self.begin(step, batch);
        self.trace.phase(0, "backward");
        let path = memscope_wire::TextId::NONE;
        self.trace.event(0, Event::Scope { path });
        let gradient = self.make(WEIGHTS);
        self.tag(gradient, Category::Gradients);
        self.free(activation);
        self.trace.phase(0, "optimizer");
        self.trace.phase(0, "");
        self.free(gradient);
        self.free(batch);
    }

    fn refuse(&mut self, requested: u64) {
        self.trace.now += 1000;
        let memory = MemoryKind::Device;
        let (device, total, row) = (0, 4096 * MIB, GIVEN_UP_ROW);
        self.trace.event(0, Event::AllocFailed { requested, free: 96 * MIB, total, device, result: 2, row, memory });
    }

    fn end(mut self, status: i32) -> Trace {
        self.trace.now += 1000;
        self.trace.ended(0);
        self.trace.end(status);
        self.trace
    }
}

fn found(trace: &Trace) -> Option<(Finding, InputsGrew)> {
    let findings = trace.model().report(Instant::Peak).expect("a report").findings;
    findings.into_iter().find_map(|finding| match &finding.detail {
        Detail::InputsGrew(grew) => Some((finding.clone(), (**grew).clone())),
        _ => None,
    })
}

/// Six steps with 10 MiB, and a seventh with 20 in which memory runs out.
fn doubled() -> Trace {
    doubled_in(4000 * MIB)
}

fn doubled_in(segment: u64) -> Trace {
    let mut training = Loop::in_segment(segment);
    (1..=6).for_each(|step| training.step(step, 10 * MIB));
    training.begin(7, 20 * MIB);
    training.refuse(500 * MIB);
    training.end(1)
}

/// 80 MiB are cached, and the step needs 510 more than those before. Where much is cached, whole pieces would have helped.
#[test]
fn a_batch_that_doubled_is_what_to_look_at() {
    for (segment, advice) in [
        (
            400 * MIB,
            "look at the batch size and the length of sequences or size of images that this step was given: cap them, or \
                     split such a batch; its inputs are 2.0 times the largest before",
        ),
        (
            4000 * MIB,
            "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and keep sizes alike from step to step: the cache has \
                      enough, in pieces that are too small",
        ),
    ] {
        let findings = doubled_in(segment).model().report(Instant::Peak).expect("a report").findings;
        let oom = findings.iter().find(|finding| matches!(finding.detail, Detail::Oom(_))).expect("out of memory");
        assert_eq!(oom.advice, advice);
    }
}

#[test]
fn a_batch_that_doubled_is_told_where_memory_ran_out() {
    let trace = doubled();
    let (finding, grew) = found(&trace).expect("it is told");
    assert_eq!((grew.step, grew.inputs, grew.inputs_before, grew.ran_out), (7, 20 * MIB, 10 * MIB, true));
    // Weights, batch, activations; before, the gradients too.
    assert_eq!((grew.live, grew.requested, grew.fitted_live), (320 * MIB, 500 * MIB, 310 * MIB));
    assert_eq!((grew.by_category.activations, grew.fitted_by_category.activations), (200 * MIB, 100 * MIB));
    assert_eq!((grew.by_category.inputs, grew.fitted_by_category.inputs), (20 * MIB, 10 * MIB));
    assert_eq!((grew.name.as_deref(), grew.name_bytes), (Some("Net/body"), 100 * MIB));
    assert_eq!(finding.severity, Severity::Warning);
    let device = &grew.device;
    assert_eq!(
        finding.message,
        format!(
            "the inputs of step 7 on {device} are 2.0 times the largest before (20.00 MiB after 10.00 MiB), and memory ran out in it"
        )
    );
    let more = finding.particulars();
    assert_eq!(
        more[0],
        "Largest in it until then, against step 6: activations 2.0 times (200.0 MiB after 100.0 MiB), inputs 2.0 times (20.00 MiB after 10.00 MiB)."
    );
    assert_eq!(more[1], "Most of the growth is Net/body, 100.0 MiB.");
    assert_eq!(
        more[2],
        "With the 500.0 MiB asked for it would have been 820.0 MiB live; step 6 needed at most 310.0 MiB."
    );
    let report = trace.model().report(Instant::Peak).expect("a report");
    let page = text(&report, Style::Plain);
    let place = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part} in {page}"));
    assert!(place("error [oom]") < place("warning [inputs_grew]") && place("warning [inputs_grew]") < place("Peak:"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.mscope");
    profile::write(&trace.model(), &path, false).expect("written");
    let again = Profile::open(&path).and_then(|profile| profile.model()).expect("read");
    assert_eq!(again.report(Instant::Peak).expect("a report").findings, report.findings, "the profile has it too");
}

#[test]
fn without_an_error_it_is_a_note_of_the_step_that_needs_most() {
    let mut training = Loop::new();
    (1..=6).for_each(|step| training.step(step, 10 * MIB));
    training.step(7, 30 * MIB);
    (8..=9).for_each(|step| training.step(step, 10 * MIB));
    let (finding, grew) = found(&training.end(0)).expect("it is told");
    assert_eq!((grew.step, grew.inputs, grew.inputs_before, grew.ran_out), (7, 30 * MIB, 10 * MIB, false));
    assert_eq!((grew.live, grew.fitted_live), (530 * MIB, 310 * MIB));
    assert_eq!(finding.severity, Severity::Note);
    assert!(finding.message.ends_with(", and it needs most: 530.0 MiB after 310.0 MiB"), "{}", finding.message);
}

#[test]
fn what_does_not_explain_the_memory_is_not_said() {
    // Memory runs out with the same batch as ever: other memory is the reason.
    let mut training = Loop::new();
    (1..=6).for_each(|step| training.step(step, 10 * MIB));
    training.begin(7, 10 * MIB);
    training.refuse(500 * MIB);
    assert_eq!(found(&training.end(1)), None);
    // A larger batch, and less memory than was needed before.
    let mut training = Loop::new();
    (1..=5).for_each(|step| training.step(step, 10 * MIB));
    training.begin(6, 13 * MIB);
    training.trace.phase(0, "");
    training.refuse(MIB);
    assert_eq!(found(&training.end(1)), None, "243 + 1 MiB against 310");
    // One step before it is no measure.
    let mut training = Loop::new();
    training.step(1, 10 * MIB);
    training.step(2, 10 * MIB);
    training.begin(3, 20 * MIB);
    training.refuse(500 * MIB);
    assert_eq!(found(&training.end(1)), None, "the batch of the first step is not known to be one");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Batches of texts: each as long as it happens to be, of one spread.
    #[test]
    fn ordinary_noise_is_nothing(batches in proptest::collection::vec(900u64..=1000, 4..20), runs_out in any::<bool>()) {
        let mut training = Loop::new();
        let (last, before) = batches.split_last().expect("four at least");
        (1..).zip(before).for_each(|(step, batch)| training.step(step, batch * 10_000));
        match runs_out {
            true => {
                training.begin(batches.len() as u64, last * 10_000);
                training.refuse(500 * MIB);
            }
            false => training.step(batches.len() as u64, last * 10_000),
        }
        prop_assert_eq!(found(&training.end(i32::from(runs_out))), None);
    }

    /// However large the others are, the figures are those of the step and of the largest before.
    #[test]
    fn the_figures_are_the_steps(batches in proptest::collection::vec(10u64..=20, 3..12), factor in 2u64..6) {
        let mut training = Loop::new();
        (1..).zip(&batches).for_each(|(step, batch)| training.step(step, batch * MIB));
        // The first step's batch is not known to be one: there is no step before it that it could be told apart from.
        let most = batches[1..].iter().max().expect("two at least") * MIB;
        let step = batches.len() as u64 + 1;
        training.begin(step, factor * most);
        training.refuse(3000 * MIB);
        let found = found(&training.end(1));
        let (_, grew) = found.expect("it is told");
        prop_assert_eq!((grew.step, grew.inputs, grew.inputs_before), (step, factor * most, most));
        prop_assert_eq!(grew.by_category.activations, 10 * factor * most);
    }
}
