//! Forward passes that no backward pass comes for: when it is said, of which module and line, and when not.

use memscope_core::findings::{Detail, Finding};
use memscope_core::profile::{self, Profile};
use memscope_core::report::Instant;
use memscope_wire::{Event, MemoryKind, TextId};
use proptest::prelude::*;

use crate::trace::{ALLOC_ROW, GIVEN_UP_ROW, Trace, UUID};

const MIB: u64 = 1 << 20;
const SEGMENT: u64 = 0x10_0000_0000;
const MODULES: [&str; 5] = ["Net.embedding", "Net.blocks.0", "Net.blocks.1", "Net.norm", "Net.head"];
const LIBRARY: &str = "/opt/lib/python3.11/site-packages/torch/nn/linear.py";

/// A framework's program with a model of five modules, each of which makes 4 MiB that a graph keeps, and 1 MiB that it does not.
struct Program {
    trace: Trace,
    next: u64,
    nodes: u64,
}

impl Program {
    fn new() -> Program {
        let mut trace = Trace::new(&["python", "train.py"], None);
        trace.process(0, 31);
        trace.may_give_up(0);
        trace.device(0, 0, UUID, 16 << 30);
        trace.alloc(0, SEGMENT, 8 << 30);
        Program { trace, next: SEGMENT, nodes: 0 }
    }

    fn make(&mut self, bytes: u64) -> u64 {
        let address = self.next;
        self.next += bytes;
        self.trace.now += 1000;
        self.trace.block(0, address, bytes);
        address
    }

    fn free(&mut self, addresses: impl IntoIterator<Item = u64>) {
        for address in addresses {
            self.trace.now += 1000;
            self.trace.free_block(0, address);
        }
    }

    fn scope(&mut self, path: &str) {
        let path = if path.is_empty() { TextId::NONE } else { self.trace.name(0, path) };
        self.trace.event(0, Event::Scope { path });
    }

    /// What a forward pass leaves that is called at this line; of a `frozen` model only its result.
    fn pass(&mut self, line: u32, phase: &str, frozen: bool) -> Vec<u64> {
        self.trace.phase(0, phase);
        let mut made = Vec::new();
        let base = self.nodes + 1;
        self.nodes += 2 + MODULES.len() as u64;
        let (file, function) = (self.trace.name(0, "/home/me/train.py"), self.trace.name(0, "<module>"));
        self.trace.event(0, Event::StackNode { node: base, parent: 0, file, function, line: 90 });
        let function = self.trace.name(0, "run");
        self.trace.event(0, Event::StackNode { node: base + 1, parent: base, file, function, line });
        for (number, module) in (2..).zip(MODULES) {
            let (file, function) = (self.trace.name(0, LIBRARY), self.trace.name(0, "forward"));
            let (node, parent) = (base + number, base + 1);
            self.trace.event(0, Event::StackNode { node, parent, file, function, line: number as u32 });
            self.trace.event(0, Event::Stack { node, whole: true });
            self.scope(module);
            let temporary = self.make(MIB);
            made.push(self.make(4 * MIB));
            self.free([temporary]);
            if frozen && made.len() > 1 {
                let before = made.remove(0);
                self.free([before]);
            }
        }
        self.scope("");
        self.trace.event(0, Event::Stack { node: 0, whole: true });
        self.trace.phase(0, if phase == "forward" { "loss" } else { "" });
        made
    }

    fn forward(&mut self) -> Vec<u64> {
        self.pass(10, "forward", false)
    }

    /// A step of a training that adds up the losses of so many forward passes.
    fn step(&mut self, number: u64, passes: usize) {
        self.trace.step(0, number);
        let kept: Vec<u64> = (0..passes).flat_map(|_| self.forward()).collect();
        self.trace.phase(0, "backward");
        self.free(kept.into_iter().rev());
        self.trace.phase(0, "optimizer");
        self.trace.phase(0, "");
    }

    /// An evaluation over so many batches: the outputs of one are let go when there are those of the next.
    fn evaluate(&mut self, batches: usize, line: u32, phase: &str, frozen: bool) {
        let mut before = Vec::new();
        for _ in 0..batches {
            let now = self.pass(line, phase, frozen);
            self.free(std::mem::replace(&mut before, now));
        }
        self.free(before);
    }

    fn refuse(&mut self, requested: u64) {
        for row in [ALLOC_ROW, GIVEN_UP_ROW] {
            let (device, total, memory) = (0, 16 << 30, MemoryKind::Device);
            self.trace.event(0, Event::AllocFailed { requested, free: 0, total, device, result: 2, row, memory });
        }
    }

    fn told(&self) -> Vec<Finding> {
        self.trace.model().report(Instant::Peak).expect("a report").findings
    }

    fn findings(mut self) -> Vec<Finding> {
        self.trace.ended(0);
        self.trace.end(0);
        let findings = self.told();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("p.mscope");
        profile::write(&self.trace.model(), &path, false).expect("written");
        let again = Profile::open(&path).and_then(|profile| profile.model()).expect("read");
        assert_eq!(again.report(Instant::Peak).expect("a report").findings, findings, "the profile has it too");
        findings
    }
}

/// How many passes, bytes of the largest, module and line.
type Told = (u64, u64, Option<String>, Option<String>);

fn unused(findings: &[Finding]) -> Option<Told> {
    let mut told = findings.iter().filter_map(|finding| match &finding.detail {
        Detail::UnusedGraphs { passes, bytes, scope, line, .. } => Some((*passes, *bytes, scope.clone(), line.clone())),
        _ => None,
    });
    let first = told.next();
    assert!(told.next().is_none(), "one a process");
    first
}

#[test]
fn an_evaluation_that_keeps_its_graphs_is_told_with_its_module_and_line() {
    let mut program = Program::new();
    (1..=3).for_each(|number| program.step(number, 1));
    program.evaluate(6, 25, "forward", false);
    (4..=5).for_each(|number| program.step(number, 1));
    let findings = program.findings();
    let line = Some("me/train.py:25 in run".to_owned());
    assert_eq!(unused(&findings), Some((6, 20 * MIB, Some("Net".to_owned()), line)));
    let told = findings.iter().find(|finding| finding.detail.kind() == "unused_graphs").expect("told");
    assert_eq!(
        told.message,
        "activations were kept for a backward pass that never came: by 6 forward passes of Net, up to 20.00 MiB in each; called \
         at me/train.py:25 in run"
    );
    assert!(told.advice.contains("torch.no_grad()"), "{}", told.advice);
}

/// Also where nothing is trained at all, and of which the end is not seen.
#[test]
fn predictions_that_keep_their_graphs_are_told() {
    let mut program = Program::new();
    program.evaluate(4, 25, "forward", false);
    let kept = program.forward();
    assert_eq!(kept.len(), 5);
    assert_eq!(unused(&program.findings()).map(|(passes, ..)| passes), Some(4));
}

#[test]
fn what_a_backward_pass_comes_for_is_not_told() {
    type Runs = fn(&mut Program);
    let cases: [(&str, Runs); 7] = [
        ("a training", |program| (1..=9).for_each(|number| program.step(number, 1))),
        ("losses that are added up", |program| (1..=4).for_each(|number| program.step(number, 5))),
        ("more of them than are remembered", |program| (1..=2).for_each(|number| program.step(number, 70))),
        ("under no_grad", |program| {
            program.step(1, 1);
            program.evaluate(8, 25, "inference", true);
        }),
        ("a frozen model keeps nothing but its result", |program| {
            program.step(1, 1);
            program.evaluate(8, 25, "forward", true);
            program.step(2, 1);
        }),
        ("one that is left out, now and then", |program| {
            for number in 1..=5 {
                program.step(number, 1);
                program.evaluate(2, 10, "forward", false);
            }
        }),
        ("backward passes that are not seen", |program| {
            for _ in 0..5 {
                let kept = program.forward();
                program.trace.phase(0, "");
                program.free(kept);
                program.trace.phase(0, "optimizer");
                program.trace.phase(0, "");
            }
        }),
    ];
    for (name, run) in cases {
        let mut program = Program::new();
        run(&mut program);
        assert_eq!(unused(&program.findings()), None, "{name}");
    }
}

fn advice_where_memory_ran_out(findings: &[Finding]) -> &str {
    let oom = findings.iter().find(|finding| finding.detail.kind() == "oom");
    &oom.expect("out of memory").advice
}

/// Memory runs out in an evaluation: what is kept of its first batches is why, and no smaller batch is asked for.
#[test]
fn where_memory_ran_out_in_such_passes_that_is_the_advice() {
    let ran_out = |passes: usize, steps: u64, at_once: usize| {
        let mut program = Program::new();
        // What is not in use is little.
        program.trace.block(0, SEGMENT + (7 << 30), (1 << 30) - 8 * MIB);
        program.trace.block(0, SEGMENT + (1 << 30), 6 << 30);
        (1..=steps).for_each(|number| {
            program.next = SEGMENT;
            program.step(number, at_once);
        });
        program.next = SEGMENT;
        program.trace.block(0, SEGMENT + (900 << 20), 124 << 20);
        for _ in 0..passes {
            program.forward();
        }
        program.trace.phase(0, "");
        program.trace.block(0, program.next, (900 << 20) - (program.next - SEGMENT));
        program.trace.phase(0, "forward");
        program.refuse(30 * MIB);
        program.findings()
    };
    let findings = ran_out(3, 4, 1);
    let told = advice_where_memory_ran_out(&findings);
    assert!(
        told.ends_with(
            "3 forward passes in a row keep 60.00 MiB for a backward pass that has not come, and before there were never more than 1"
        ) && told.contains("torch.no_grad()"),
        "{told}"
    );
    // So many in a row are usual; or nobody knows yet what is.
    for (passes, steps, at_once) in [(3, 4, 4), (3, 1, 1), (0, 4, 1)] {
        let findings = ran_out(passes, steps, at_once);
        let told = advice_where_memory_ran_out(&findings);
        assert!(!told.contains("no_grad"), "{passes}, {steps}, {at_once}: {told}");
    }
}

proptest! {
    /// Whatever is trained in between and however many losses are added up: exactly the evaluations of three batches and more are told.
    #[test]
    fn exactly_the_passes_that_nobody_came_for_are_counted(parts in proptest::collection::vec((1usize..5, 0usize..8, any::<bool>()), 1..6)) {
        let mut program = Program::new();
        let mut expected = 0;
        for (number, (at_once, batches, grad)) in (1..).zip(parts) {
            program.step(number, at_once);
            program.evaluate(batches, 25, if grad { "forward" } else { "inference" }, !grad);
            if grad && batches >= 3 {
                expected += batches as u64;
            }
        }
        let told = unused(&program.told()).map_or(0, |(passes, ..)| passes);
        prop_assert_eq!(told, expected);
    }
}
