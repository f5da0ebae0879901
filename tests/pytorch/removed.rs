//! Programs that take away what the shim put there, modules that fail, and models that go and come: the program is as it is
//! alone, and what is still told is right; what is told no more is unknown, not wrong.

use std::collections::BTreeMap;

use memscope_wire::Category;

use crate::harmless::{Recorded, program, unchanged};
use crate::memscope::{Place, stdout};
use crate::torch::python;

impl Recorded {
    /// How many allocations have this size, by category.
    fn categories_of(&self, bytes: u64) -> BTreeMap<Category, usize> {
        let mut count = BTreeMap::new();
        for one in self.model.allocations().iter().filter(|one| one.bytes == bytes) {
            *count.entry(one.category).or_default() += 1;
        }
        count
    }
}

#[test]
fn what_a_program_takes_away() {
    let Some(python) = python("what_a_program_takes_away") else { return };
    let place = Place::new();
    let run = unchanged(&place, &python, |command| {
        command.arg(program("removed.py"));
    });
    // By case: how many weights, gradients and states are told, and where the layer's results are.
    let layer = "Net/layer";
    for (number, (case, told, module)) in [
        ("everything_there", [1, 3, 2], layer),
        ("hooks_of_modules", [1, 3, 2], layer),
        // The optimizer tells the gradients that it is given.
        ("hooks_of_parameters", [1, 3, 2], layer),
        // Nobody says when it steps.
        ("hooks_of_optimizers", [1, 3, 0], layer),
        ("a_call_around_the_call", [1, 3, 2], layer),
        // Modules are not seen; the optimizer tells what it has.
        ("another_call", [1, 3, 2], ""),
        ("a_failure_in_forward", [1, 3, 2], layer),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(stdout(&run.output).contains(case), "{case} has ended: {}", stdout(&run.output));
        let width = 101 + number as u64;
        let count = run.categories_of(width * width * 4);
        let found = [Category::Weights, Category::Gradients, Category::Optimizer].map(|one| count.get(&one).copied());
        assert_eq!(found.map(Option::unwrap_or_default), told, "{case}: {count:?}");
        assert!(!count.contains_key(&Category::Activations) && !count.contains_key(&Category::Inputs), "{count:?}");
        let paths = run.paths_of(7 * width * 4);
        assert!(paths.contains(module), "{case}: {paths:?}");
        let strange = paths.iter().find(|path| !["", layer, "Net", "Net/head"].contains(&path.as_str()));
        assert_eq!(strange, None, "{case}");
    }
}

#[test]
fn models_that_are_made_anew() {
    let Some(python) = python("models_that_are_made_anew") else { return };
    let place = Place::new();
    let run = unchanged(&place, &python, |command| {
        command.arg(program("anew.py"));
    });
    let said = "models at the addresses of others: True\nfewer than five objects of Python for each model: True\n";
    assert_eq!(stdout(&run.output), said);
    assert_eq!(
        run.paths_of(7 * 50 * 4).into_iter().filter(|path| path.contains('/')).collect::<Vec<_>>(),
        ["Net/layer"]
    );
    // The program's own count, from 1 on without a gap: each begins with its forward pass.
    let results =
        run.model.allocations().iter().filter(|one| run.path(one.scope) == "Net/layer" && one.bytes == 7 * 50 * 4);
    let steps: Vec<u32> = results.map(|one| one.step).collect();
    assert_eq!(steps.len(), 3 * 200);
    assert_eq!(steps.into_iter().zip(1..).find(|(step, count)| step != count), None);
}
