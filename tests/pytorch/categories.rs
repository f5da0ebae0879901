//! What each tensor is for: the profile against what the program itself knows of its objects (programs/truth.py).
//!
//! Compared are bytes of storages at the end of each forward and backward pass and of each step, after settlement. What the
//! program does not name (results that a variable holds, temporaries) is not compared.

use std::collections::BTreeMap;

use memscope_core::allocation::{Allocation, Model, flag};
use memscope_wire::{Category, Origin};
use serde_json::Value;

use crate::torch::{python, run};

/// Bytes at one instant, in all and by what the profile has in the place of the truth.
#[derive(Default)]
struct Score {
    all: u64,
    right: u64,
    wrong: u64,
    /// By (truth, profile).
    confusions: BTreeMap<(String, String), u64>,
}

/// What was live at a time (CLOCK_MONOTONIC), by address. Ticks of a profile are nanoseconds since the session began.
fn live_at(model: &Model, time: u64) -> BTreeMap<u64, &Allocation> {
    let time = time - model.session().start_monotonic_ns;
    let leaves = model.allocations().iter().filter(|one| one.is_leaf());
    let live = leaves.filter(|one| one.birth_ticks <= time && !(one.is(flag::DEAD) && one.death_ticks <= time));
    live.map(|one| (one.address, one)).collect()
}

fn score(model: &Model, line: &Value) -> Score {
    let live = live_at(model, line["time"].as_u64().expect("a time"));
    let mut score = Score::default();
    for storage in line["storages"].as_array().expect("storages") {
        let (address, bytes) = (storage[0].as_u64().expect("an address"), storage[1].as_u64().expect("bytes"));
        let truth = storage[2].as_str().expect("a category");
        let found = live.range(..=address).next_back().map(|(_, one)| *one);
        let found = found.filter(|one| address + bytes <= one.address + one.bytes);
        let said = found.map_or("not recorded", |one| one.category.name());
        score.all += bytes;
        match said {
            said if said == truth => score.right += bytes,
            "unknown" => {}
            _ => score.wrong += bytes,
        }
        if said != truth {
            *score.confusions.entry((truth.to_owned(), said.to_owned())).or_default() += bytes;
        }
    }
    score
}

/// At least 99 % of the bytes are right, and at most 0.5 % wrong; the rest is unknown, and what was concluded says so.
fn categories_are_right(model: &str, sets: &str, device: &str) {
    let test = format!("categories of {model} on {device}");
    let Some(python) = python(&test) else { return };
    let options = if device == "cuda" { "--device h100-80gb" } else { "" };
    let run = run(&python, options, &format!("truth {model} {sets} {device} FILE"));
    let instants = run.lines.len();
    assert!(instants >= 8 * sets.split('/').count(), "{test}: {instants} instants");
    let mut worst = (1.0, 0.0);
    for line in &run.lines {
        let score = score(&run.model, line);
        let (right, wrong) = (score.right as f64 / score.all as f64, score.wrong as f64 / score.all as f64);
        worst = (f64::min(worst.0, right), f64::max(worst.1, wrong));
        assert!(score.all > 0 && right >= 0.99 && wrong <= 0.005, "{}: {:?}", line["instant"], score.confusions);
    }
    println!(
        "{test}: {instants} instants, right at least {:.3} %, wrong at most {:.3} %",
        100.0 * worst.0,
        100.0 * worst.1
    );
    let activations = run.model.allocations().iter().filter(|one| one.category == Category::Activations);
    assert!(activations.clone().count() > 0 && activations.clone().all(|one| one.origin == Origin::Inferred), "{test}");
    refutes_a_wrong_truth(&run.model, &run.lines);
}

/// The comparison can fail: with the categories of the truth exchanged nearly nothing is right.
fn refutes_a_wrong_truth(model: &Model, lines: &[Value]) {
    let mut line = lines.last().expect("an instant").clone();
    for storage in line["storages"].as_array_mut().expect("storages") {
        storage[2] = if storage[2] == "weights" { "optimizer" } else { "weights" }.into();
    }
    let score = score(model, &line);
    assert!(score.wrong as f64 / score.all as f64 > 0.9);
}

const OF_LAYERS: &str = "none/amp/checkpoint/accumulate/amp,checkpoint,foreach";

#[test]
fn of_a_transformer_on_the_cpu() {
    categories_are_right("transformer", &format!("{OF_LAYERS}/fused/sgd/reentrant"), "cpu");
}

#[test]
fn of_a_transformer_on_the_simulated_device() {
    categories_are_right("transformer", &format!("{OF_LAYERS}/fused/sgd/reentrant"), "cuda");
}

#[test]
fn of_a_resnet_on_the_cpu() {
    categories_are_right("resnet", OF_LAYERS, "cpu");
}

#[test]
fn of_a_resnet_on_the_simulated_device() {
    categories_are_right("resnet", OF_LAYERS, "cuda");
}

#[test]
fn of_adapters_on_the_cpu() {
    categories_are_right("lora", OF_LAYERS, "cpu");
}

#[test]
fn of_adapters_on_the_simulated_device() {
    categories_are_right("lora", OF_LAYERS, "cuda");
}

#[test]
fn of_a_gan_on_the_cpu() {
    categories_are_right("gan", "none/amp", "cpu");
}

#[test]
fn of_a_gan_on_the_simulated_device() {
    categories_are_right("gan", "none/amp", "cuda");
}
