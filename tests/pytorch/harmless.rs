//! The shim and the hooks change nothing: a program under memscope ends, prints and computes as it does alone. And the names that
//! the shim gives are right.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use memscope_core::allocation::{Allocation, Model};
use memscope_core::profile::Profile;
use memscope_core::report::Instant;
use memscope_wire::{Category, Origin};

use crate::memscope::{Place, stderr, stdout};
use crate::torch::python;

pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs").join(name)
}

/// What memscope recorded of one run.
pub struct Recorded {
    pub output: Output,
    pub model: Model,
}

/// A run under memscope with what `arrange` adds: Python's arguments, an environment.
pub fn recorded(place: &Place, python: &Path, arrange: impl Fn(&mut Command)) -> Recorded {
    let mut command = place.memscope();
    command.args(["run", "-q", "-f", "-o", "p.mscope", "--"]).arg(python);
    arrange(&mut command);
    let output = command.output().expect("memscope starts");
    let model = Profile::open(place.path("p.mscope")).and_then(|profile| profile.model());
    Recorded { model: model.unwrap_or_else(|error| panic!("no profile ({error}): {}", stderr(&output))), output }
}

/// Runs Python alone and under memscope, which must be the same.
pub fn unchanged(place: &Place, python: &Path, arrange: impl Fn(&mut Command)) -> Recorded {
    let mut command = place.command(python);
    arrange(&mut command);
    let alone = command.output().expect("Python starts");
    let recorded = recorded(place, python, arrange);
    same_lines(&stdout(&alone), &stdout(&recorded.output));
    same_lines(&stderr(&alone), &stderr(&recorded.output));
    assert_eq!(alone.status, recorded.output.status);
    recorded
}

/// Runs a program once more, with `--stacks python`, which must change nothing either, and leaves no tensor of a module without a line.
fn unchanged_with_lines(place: &Place, python: &Path, name: &str, before: &Recorded) -> Recorded {
    let lines = recorded(place, python, |command| {
        command.arg(program(name)).env("MEMSCOPE_STACKS", "python");
    });
    same_lines(&stdout(&before.output), &stdout(&lines.output));
    same_lines(&stderr(&before.output), &stderr(&lines.output));
    assert_eq!(before.output.status, lines.output.status);
    let mut in_modules = lines.model.allocations().iter().filter(|one| one.scope != 0);
    assert!(in_modules.all(|one| one.stack != 0), "each line is known");
    lines
}

#[track_caller]
fn same_lines(alone: &str, under: &str) {
    let different = alone.lines().zip(under.lines()).find(|(alone, under)| alone != under);
    assert_eq!(different, None, "the first line that differs");
    assert_eq!(alone, under);
}

impl Recorded {
    /// Processes with tensors of the module at this path.
    pub fn processes_in(&self, path: &str) -> BTreeSet<u32> {
        let here = self.model.allocations().iter().filter(|one| self.path(one.scope).ends_with(path));
        here.map(|one| one.process).collect()
    }

    pub fn path(&self, scope: u32) -> String {
        self.model.scopes().path(scope, self.model.names())
    }

    /// Whether the program's own hook told a gradient of this name and size.
    pub fn has_gradient(&self, name: &str, bytes: u64) -> bool {
        let told = |one: &&Allocation| (one.category, one.origin) == (Category::Gradients, Origin::Hooked);
        let mut gradients = self.model.allocations().iter().filter(told);
        gradients.any(|one| one.bytes == bytes && self.model.names().text(one.name) == name)
    }

    /// Paths of what has this size.
    pub fn paths_of(&self, bytes: u64) -> BTreeSet<String> {
        self.model.allocations().iter().filter(|one| one.bytes == bytes).map(|one| self.path(one.scope)).collect()
    }
}

#[test]
fn training_and_all_that_a_program_does_to_modules() {
    let Some(python) = python("training_and_all_that_a_program_does_to_modules") else { return };
    let place = Place::new();
    let run = unchanged(&place, &python, |command| {
        command.arg(program("unchanged.py")).env("MARKS", place.path("marks"));
    });
    assert!(run.output.status.success());
    let marked = run.marked(&place, 0);
    run.told_right(&marked);
    assert!(marked.len() > 50, "{} storages", marked.len());
    assert!(stdout(&run.output).contains("== compiled"), "all cases ran");
    assert_eq!(run.processes_in("Net/tail").len(), 1, "the shim was there");
    let lines = unchanged_with_lines(&place, &python, "unchanged.py", &run);
    assert_eq!(lines.processes_in("Net/tail").len(), 1);
}

#[test]
fn ways_to_end() {
    let Some(python) = python("ways_to_end") else { return };
    let place = Place::new();
    let run = unchanged(&place, &python, |command| {
        command.arg(program("leaving.py"));
    });
    let said = stdout(&run.output);
    // Statuses as wait(2) gives them: 256 times the code, or the signal.
    for expected in [
        "fails in forward: 256\n",
        "interrupted in backward: 2\n",
        "alarm in forward: 256\n",
        "exit in forward: 768\n",
        "hard exit in backward: 1280\n",
        "a fault of memory in forward: 11\n",
        "killed in backward: 15\n",
        "another program in forward: 1792\nanother torch.Size([1, 2])",
    ] {
        assert!(said.contains(&format!("== {expected}")), "{expected}: {said}");
    }
    assert!(!said.contains("not reached"), "{said}");
    assert!(run.processes_in("Sequential.1/layer").len() > 10, "the shim was in the children");
}

#[test]
fn other_processes() {
    let Some(python) = python("other_processes") else { return };
    let place = Place::new();
    let run = unchanged(&place, &python, |command| {
        command.arg(program("processes.py"));
    });
    assert!(run.output.status.success());
    // Itself, two workers and a child by fork, and a worker by spawn.
    assert_eq!(run.processes_in("Net/layer").len(), 5);
    let report = Profile::open(place.path("p.mscope")).and_then(|profile| profile.report(Instant::Peak));
    let processes = report.expect("a report").processes;
    let named: Vec<_> = processes.iter().filter_map(|process| process.name.as_deref()).collect();
    for name in [
        "ForkProcess-1, DataLoader worker 0",
        "ForkProcess-2, DataLoader worker 1",
        "SpawnProcess-3, DataLoader worker 0",
        "ForkProcess-4",
    ] {
        assert!(named.contains(&name), "{name}: {named:?}");
    }
    assert_eq!(named.len(), 4, "neither the program itself nor another Python has a name: {named:?}");
    let lines = unchanged_with_lines(&place, &python, "processes.py", &run);
    assert_eq!(lines.processes_in("Net/layer").len(), 5, "and all of them say lines");
}

#[test]
fn ranks_of_torchrun() {
    let Some(python) = python("ranks_of_torchrun") else { return };
    let place = Place::new();
    let run = unchanged(&place, &python, |command| {
        command.args(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]);
        command.arg(program("ranks.py")).env("OMP_NUM_THREADS", "1").env("MARKS", place.path("marks"));
    });
    assert!(run.output.status.success(), "{}", stderr(&run.output));
    assert_eq!(run.processes_in("0/layer").len(), 2);
    for rank in 0..2 {
        let marked = run.marked(&place, rank);
        run.told_right(&marked);
        assert!(marked.len() > 200, "{} storages", marked.len());
        let names = |label, truth| run.names_at(&marked, label, truth);
        // Gradients, and two or more buckets of other sizes than any one gradient.
        assert!(names("replicated 0", "gradients").contains("ddp.bucket"), "{:?}", names("replicated 0", "gradients"));
        assert!(names("replicated 3", "gradients").contains("0.layer.weight.grad"));
        assert_eq!(
            names("gathered", "weights"),
            ["0.weight (gathered)", "1.weight (gathered)"].map(str::to_owned).into()
        );
        // A layer's gradients are parts of one storage, which has the name of its beginning.
        let of_shards = ["0.weight.grad", "1.weight.grad", "2.weight.grad"].map(str::to_owned);
        assert_eq!(names("sharded 2", "gradients"), of_shards.into());
    }
}

#[test]
fn names_are_right() {
    let Some(python) = python("names_are_right") else { return };
    let place = Place::new();
    let run = recorded(&place, &python, |command| {
        command.arg(program("names.py"));
    });
    assert_eq!(stdout(&run.output), "reused\n", "{}", stderr(&run.output));
    let of = |width: u64| run.paths_of(width * 4 * 3).into_iter().collect::<Vec<_>>();
    for (width, path) in [
        (1001, "Outer/parts.0/wide"),
        (1002, "Outer/parts.1.0/wide"),
        (1021, "Outer/parts.0"),
        (1022, "Outer/parts.1.0/wide"),
        (1041, "Outer/parts.0/wide"),
        (1043, "Outer/parts.0/wide"),
        (1061, "Outer/parts.0/wide"),
        (1062, "Outer/parts.1.0/wide"),
        (1081, "Inner/wide"),
        (1082, "Inner/wide"),
        (1091, "AveragedModel/module/wide"),
    ] {
        let found = of(width);
        assert!(found.iter().any(|one| one == path), "{width}: {found:?}");
        assert!(found.iter().all(|one| one.is_empty() || path.starts_with(one.as_str())), "{width}: {found:?}");
    }
    // Inside of a compiled graph it is the whole.
    for width in [1011, 1012] {
        assert!(of(width).iter().all(|one| one.is_empty() || one.starts_with("Outer")), "{:?}", of(width));
        assert!(of(width).iter().any(|one| one == "Outer"), "{:?}", of(width));
    }
    for path in ["Sequential.0/wide", "Outer/parts.1.0/wide"] {
        assert!(of(1032).iter().any(|one| one == path), "{path}: {:?}", of(1032));
    }
    for path in ["Outer/parts.0/wide", "Inner/wide"] {
        assert!(of(1071).iter().any(|one| one == path), "{path}: {:?}", of(1071));
    }
    assert!(run.has_gradient("parts.0.wide.weight.grad", 1061 * 4 * 4), "it keeps its name");
    assert!(!run.has_gradient("wide.weight.grad", 1061 * 4 * 4), "it has no other name");
    // TorchScript runs the layers itself.
    assert_eq!(of(1051), ["", "RecursiveScriptModule"]);
    for kind in 0..7 {
        let found = of(2000 + kind);
        let right = format!("Kind{kind}/layer");
        assert!(found.contains(&right), "{found:?}");
        assert!(found.iter().all(|one| one.is_empty() || right.starts_with(one.as_str())), "{kind}: {found:?}");
    }
}
