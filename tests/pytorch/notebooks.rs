//! Notebooks: the kernel is a child process, and cells train, fail, are interrupted and begin anew.

use std::io::Write;

use crate::harmless::{program, unchanged};
use crate::memscope::{Place, stdout};
use crate::torch::python;

#[test]
fn cells_of_a_notebook() {
    let Some(python) = python("cells_of_a_notebook") else { return };
    let place = Place::new();
    let run = unchanged(&place, &python, |command| {
        command.arg(program("notebook.py"));
    });
    let said = stdout(&run.output);
    if let Some(missing) = said.strip_prefix("missing ") {
        let _ = writeln!(std::io::stderr(), "SKIPPED cells_of_a_notebook: {} is not installed", missing.trim());
        return;
    }
    assert!(said.contains("RuntimeError: addmm") && said.contains("KeyboardInterrupt"), "cells that end early: {said}");
    assert_eq!(said.matches("== cell").count(), 8, "each cell but one has its words: {said}");
    assert_eq!(run.processes_in("Net/layer").len(), 1, "the kernel");
    assert!(run.paths_of(7 * 300 * 4).contains("Net/layer"), "{:?}", run.paths_of(7 * 300 * 4));
}
