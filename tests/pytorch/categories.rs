//! What each tensor is for: the profile against what the program itself knows of its objects (programs/truth.py).
//!
//! Compared are bytes of storages at the end of each forward and backward pass and of each step, at many moments within the
//! backward passes of a step, and at that step's peak: settled, as the profile has them, and live, as a view knew them then.
//! What the program does not name (temporaries, results that a variable holds) is not compared, but must not be called what the
//! program names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use memscope_core::allocation::{Allocation, Model, flag};
use memscope_wire::{Category, MemoryKind, Origin};
use serde_json::Value;

use crate::memscope::Place;
use crate::replay::{Replay, keep_journal};
use crate::torch::{python, run_in};

/// A storage of the program's at one moment, and what it is for.
struct Named<'a> {
    address: u64,
    bytes: u64,
    truth: &'a str,
}

fn storages(line: &Value) -> impl Iterator<Item = Named<'_>> {
    line["storages"].as_array().expect("storages").iter().map(|storage| Named {
        address: storage[0].as_u64().expect("an address"),
        bytes: storage[1].as_u64().expect("bytes"),
        truth: storage[2].as_str().expect("a category"),
    })
}

fn time_of(line: &Value) -> u64 {
    line["time"].as_u64().expect("a time")
}

/// Bytes at one instant, in all and by what memscope has in the place of the truth.
#[derive(Default)]
struct Score {
    all: u64,
    right: u64,
    wrong: u64,
    /// By (truth, memscope's).
    confusions: BTreeMap<(String, &'static str), u64>,
}

impl Score {
    fn count(&mut self, bytes: u64, truth: &str, said: &'static str) {
        self.all += bytes;
        match said {
            said if said == truth => self.right += bytes,
            "unknown" => {}
            _ => self.wrong += bytes,
        }
        if said != truth {
            *self.confusions.entry((truth.to_owned(), said)).or_default() += bytes;
        }
    }

    fn shares(&self) -> Shares {
        Shares { right: self.right as f64 / self.all as f64, wrong: self.wrong as f64 / self.all as f64 }
    }

    #[track_caller]
    fn is_good(&self, place: &str) {
        let shares = self.shares();
        assert!(self.all > 0 && shares.right >= 0.99 && shares.wrong <= 0.005, "{place}: {:?}", self.confusions);
    }
}

/// Of the bytes compared: at the worst instant, where it is of several.
#[derive(Clone, Copy)]
struct Shares {
    right: f64,
    wrong: f64,
}

impl Shares {
    const BEST: Shares = Shares { right: 1.0, wrong: 0.0 };

    fn or_worse(self, other: Shares) -> Shares {
        Shares { right: self.right.min(other.right), wrong: self.wrong.max(other.wrong) }
    }
}

impl std::fmt::Display for Shares {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "{:.2} / {:.2}", 100.0 * self.right, 100.0 * self.wrong)
    }
}

/// The program's storages, and what was live at their addresses.
fn score<'a>(line: &Value, live: impl Fn(u64) -> Option<&'a Allocation>) -> Score {
    let mut score = Score::default();
    for Named { address, bytes, truth } in storages(line) {
        let found = live(address).filter(|one| bytes <= one.bytes);
        score.count(bytes, truth, found.map_or("not recorded", |one| one.category.name()));
    }
    score
}

/// The same of a model as it is now.
fn score_now(model: &Model, line: &Value) -> Score {
    let live: HashMap<u64, &Allocation> = live_in(model).map(|one| (one.address, one)).collect();
    score(line, |address| live.get(&address).copied())
}

/// A finished session's tensors, with lives in the time of the program's notes (CLOCK_MONOTONIC, ns).
struct Tensors<'a> {
    start: u64,
    all: Vec<&'a Allocation>,
    at_address: HashMap<u64, Vec<usize>>,
}

impl<'a> Tensors<'a> {
    fn of(model: &'a Model, device: &str) -> Tensors<'a> {
        let here = |one: &&Allocation| match device {
            "cuda" => one.on_device() && one.is_leaf(),
            _ => one.memory == MemoryKind::Pageable,
        };
        let all: Vec<&Allocation> = model.allocations().iter().filter(here).collect();
        let mut at_address: HashMap<u64, Vec<usize>> = HashMap::new();
        for (number, one) in all.iter().enumerate() {
            at_address.entry(one.address).or_default().push(number);
        }
        Tensors { start: model.session().start_monotonic_ns, all, at_address }
    }

    fn birth(&self, number: usize) -> u64 {
        self.all[number].birth_ticks + self.start
    }

    fn death(&self, number: usize) -> u64 {
        if self.all[number].is(flag::DEAD) { self.all[number].death_ticks + self.start } else { u64::MAX }
    }

    fn lives(&self, number: usize, time: u64) -> bool {
        self.birth(number) <= time && time < self.death(number)
    }

    /// Number of what lived at this address then.
    fn living(&self, address: u64, time: u64) -> Option<usize> {
        self.at_address.get(&address)?.iter().copied().find(|number| self.lives(*number, time))
    }

    /// The program's storages, as they are settled.
    fn score(&self, line: &Value) -> Score {
        score(line, |address| Some(self.all[self.living(address, time_of(line))?]))
    }

    /// What each of them is for, if the program ever named it: as it was named last.
    fn truths(&self, lines: &'a [Value]) -> HashMap<usize, &'a str> {
        let mut truths = HashMap::new();
        for line in lines {
            for Named { address, truth, .. } in storages(line) {
                if let Some(number) = self.living(address, time_of(line)) {
                    truths.insert(number, truth);
                }
            }
        }
        truths
    }

    /// When the most bytes are live between two times, and how many.
    fn peak(&self, begin: u64, end: u64) -> (u64, u64) {
        let mut changes = Vec::new();
        for (number, one) in self.all.iter().enumerate() {
            changes.push((self.birth(number), one.bytes as i64));
            changes.push((self.death(number), -(one.bytes as i64)));
        }
        changes.sort_unstable();
        let (mut live, mut peak) = (0, (begin, 0));
        for (time, bytes) in changes {
            live += bytes;
            if (begin..=end).contains(&time) && live > peak.1 {
                peak = (time, live);
            }
        }
        (peak.0, peak.1 as u64)
    }
}

/// The figures of one set of techniques.
struct Row {
    set: String,
    instants: usize,
    live: Shares,
    settled: Shares,
    peak: u64,
    named: f64,
    live_at_peak: Shares,
    settled_at_peak: Shares,
}

/// The lines of one set of techniques, in the order in which they were written.
fn judge(set: &str, lines: &[Value], tensors: &Tensors, replay: &mut Replay) -> Row {
    let boundary = |line: &&Value| line["instant"] != "within backward";
    let inside = lines.iter().position(|line| !boundary(&line)).expect("moments within a backward pass");
    let (begin, end) = (time_of(&lines[inside - 1]), time_of(lines.last().expect("lines")));
    let (time, peak) = tensors.peak(begin, end);
    let (_, highest) = tensors.peak(time_of(&lines[0]), end);
    assert!(peak >= highest / 100 * 95, "{set}: the last step peaks at {peak} B, all at {highest} B");

    let mut row = Row {
        set: set.to_owned(),
        instants: lines.len(),
        live: Shares::BEST,
        settled: Shares::BEST,
        peak,
        named: 0.0,
        live_at_peak: Shares::BEST,
        settled_at_peak: Shares::BEST,
    };
    let truths = tensors.truths(lines);
    let mut at_peak = false;
    for line in lines {
        if time_of(line) >= time && !at_peak {
            at_peak = true;
            let settled = peak_score(tensors, &truths, time, |one| Some(one.category));
            settled.is_good(&format!("{set}, at the peak"));
            row.settled_at_peak = settled.shares();
            row.named = settled.all as f64 / peak as f64;
            let known: HashMap<u64, Category> =
                live_in(replay.at(time)).map(|one| (one.address, one.category)).collect();
            row.live_at_peak = peak_score(tensors, &truths, time, |one| known.get(&one.address).copied()).shares();
        }
        let settled = tensors.score(line);
        settled.is_good(&format!("{set}, {}", line["instant"]));
        row.settled = row.settled.or_worse(settled.shares());
        if boundary(&line) {
            row.live = row.live.or_worse(score_now(replay.at(time_of(line)), line).shares());
        }
    }
    row
}

/// What lives in a model now.
fn live_in(model: &Model) -> impl Iterator<Item = &Allocation> {
    model.allocations().iter().filter(|one| one.is_leaf() && !one.is(flag::DEAD))
}

/// What is live at the peak, as `said` has it. Wrong is also what the program never named and memscope calls one of its objects.
fn peak_score(
    tensors: &Tensors,
    truths: &HashMap<usize, &str>,
    time: u64,
    said: impl Fn(&Allocation) -> Option<Category>,
) -> Score {
    let mut score = Score::default();
    for number in (0..tensors.all.len()).filter(|number| tensors.lives(*number, time)) {
        let one = tensors.all[number];
        let name = said(one).map_or("not recorded", Category::name);
        match truths.get(&number) {
            Some(truth) => score.count(one.bytes, truth, name),
            None if ["workspace", "activations", "unknown"].contains(&name) => {}
            None => {
                score.wrong += one.bytes;
                *score.confusions.entry(("no object".to_owned(), name)).or_default() += one.bytes;
            }
        }
    }
    score
}

/// At least 99 % of the bytes are right, and at most 0.5 % wrong; the rest is unknown, and what was concluded says so.
fn categories_are_right(model: &str, sets: &str, device: &str) {
    let test = format!("categories of {model} on {device}");
    let Some(python) = python(&test) else { return };
    let options = if device == "cuda" { "--device h100-80gb" } else { "" };
    let place = Place::new();
    let journal = keep_journal(&place);
    let run = run_in(&place, &[], &python, options, &format!("truth {model} {sets} {device} FILE"));
    let mut replay = Replay::of(&journal.join().expect("a journal"));
    let tensors = Tensors::of(&run.model, device);
    guesses_say_so(&run.model, &replay);

    let mut table = format!(
        "{test}: shares in percent, right / wrong\n| techniques | instants | live | settled | peak, MiB | named | live | settled |\n"
    );
    let by_set = run.lines.chunk_by(|one, next| one["set"] == next["set"]);
    let rows: Vec<Row> =
        by_set.map(|lines| judge(lines[0]["set"].as_str().expect("a name"), lines, &tensors, &mut replay)).collect();
    assert_eq!(rows.len(), sets.split('/').count());
    for row in rows {
        assert!(row.instants > 20, "{}: {} instants", row.set, row.instants);
        let (peak, named) = (row.peak as f64 / (1 << 20) as f64, 100.0 * row.named);
        let Row { set, instants, live, settled, live_at_peak, settled_at_peak, .. } = row;
        let _ = writeln!(
            table,
            "| {set} | {instants} | {live} | {settled} | {peak:.1} | {named:.1} % | {live_at_peak} | {settled_at_peak} |"
        );
    }
    println!("{table}");
    refutes_a_wrong_truth(&tensors, &run.lines);
}

/// What no hook told is a guess, and marked as one; activations and workspace are always guesses.
fn guesses_say_so(model: &Model, replay: &Replay) {
    let start = model.session().start_monotonic_ns;
    let mut tags: Vec<(u64, u64)> = replay.hooked().iter().map(|tag| (tag.address, tag.time)).collect();
    tags.sort_unstable();
    let mut guessed = BTreeSet::new();
    for one in model.allocations().iter().filter(|one| one.is_leaf() && one.category != Category::Unknown) {
        let first = tags.partition_point(|tag| tag.0 < one.address);
        let end = if one.is(flag::DEAD) { one.death_ticks } else { u64::MAX - start };
        let within = tags[first..].iter().take_while(|tag| tag.0 < one.address + one.bytes);
        let told = within.into_iter().any(|tag| (start + one.birth_ticks..=start + end).contains(&tag.1));
        let made_by_program = matches!(one.category, Category::Activations | Category::Workspace);
        match one.origin {
            Origin::Hooked => assert!(told && !made_by_program, "not told: {one:?}"),
            origin => assert_eq!(origin, Origin::Inferred, "{one:?}"),
        }
        if one.origin == Origin::Inferred {
            guessed.insert(one.category.name());
        }
    }
    assert!(guessed.contains("activations") && guessed.contains("workspace"), "{guessed:?}");
}

/// The comparison can fail: with the categories of the truth exchanged nearly nothing is right.
fn refutes_a_wrong_truth(tensors: &Tensors, lines: &[Value]) {
    let mut line = lines.last().expect("an instant").clone();
    for storage in line["storages"].as_array_mut().expect("storages") {
        storage[2] = if storage[2] == "weights" { "optimizer" } else { "weights" }.into();
    }
    let wrong = tensors.score(&line).shares().wrong;
    assert!(wrong > 0.9, "{wrong}");
}

/// Each with and without AMP, checkpoints and accumulation.
const ALL: &str = "none/amp/checkpoint/accumulate/amp,checkpoint/amp,accumulate/checkpoint,accumulate/\
                   amp,checkpoint,accumulate";
const OF_TRANSFORMERS: &str = "/foreach/fused/sgd/reentrant";

#[test]
fn of_a_transformer_on_the_cpu() {
    categories_are_right("transformer", &format!("{ALL}{OF_TRANSFORMERS}"), "cpu");
}

#[test]
fn of_a_transformer_on_the_simulated_device() {
    categories_are_right("transformer", &format!("{ALL}{OF_TRANSFORMERS}"), "cuda");
}

#[test]
fn of_a_resnet_on_the_cpu() {
    categories_are_right("resnet", ALL, "cpu");
}

#[test]
fn of_a_resnet_on_the_simulated_device() {
    categories_are_right("resnet", ALL, "cuda");
}

#[test]
fn of_adapters_on_the_cpu() {
    categories_are_right("lora", ALL, "cpu");
}

#[test]
fn of_adapters_on_the_simulated_device() {
    categories_are_right("lora", ALL, "cuda");
}

#[test]
fn of_a_gan_on_the_cpu() {
    categories_are_right("gan", ALL, "cpu");
}

#[test]
fn of_a_gan_on_the_simulated_device() {
    categories_are_right("gan", ALL, "cuda");
}
