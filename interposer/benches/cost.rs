//! What the interposer costs: nanoseconds added to a recorded call, against a driver that does nothing, and microseconds
//! added to the start of a program that never uses CUDA.
//!
//! `cargo bench -p memscope-interposer`. Each figure is the median of the differences of interleaved pairs (without, with),
//! and the 95 % confidence interval of that median. The program is tests/programs/cost.c; its median batch of calls tells what
//! the hooks cost, its mean all that a user pays. Two things decide about the mean:
//!
//! - Who grows the log. With *memscope recording*, as in `memscope run`, a recorder of memscope-core follows the program: it
//!   moves the events into a journal, provides the log's memory ahead of the program and takes it back. With *nobody
//!   recording*, the program provides it itself: the kernel finds and clears a page for every 64 events, in its thread.
//! - How fast the calls come. *Bursts* of 1,024 calls with a pause of a millisecond are about a million calls a second in each
//!   thread, more than any trainer makes. *Back to back* is as fast as the program can loop over a driver that does nothing:
//!   faster than any recorder can provide memory, let alone keep the events.
//!
//! Wall time is what a user sees; on a busy machine it has the waiting for a processor in it. Processor time of the calling
//! thread, kernel included, has not.

#[path = "../tests/interposer/stage.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod stage;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use memscope_core::journal::entry::SessionInfo;
use memscope_core::recorder::{Options, Recorder};
use memscope_core::session::SessionFolder;
use memscope_wire::env;

const PAIRS: usize = 31;

/// A median, and the order statistics that hold the true one with 95 % confidence.
struct Median {
    value: f64,
    low: f64,
    high: f64,
}

fn median(mut values: Vec<f64>) -> Median {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let reach = 0.98 * count.sqrt();
    let low = (count / 2.0 - reach).floor().max(0.0) as usize;
    let high = ((count / 2.0 + reach).ceil() as usize).min(values.len() - 1);
    Median { value: values[values.len() / 2], low: values[low], high: values[high] }
}

/// Measures in turn without and with the interposer; the order changes with each pair, so that a drift of the machine hits
/// both. For each of the `N` figures: what it is without, and what is added.
fn compare<const N: usize>(mut measure: impl FnMut(bool) -> [f64; N]) -> [(Median, Median); N] {
    measure(true);
    let pairs: Vec<_> = (0..PAIRS)
        .map(|pair| {
            let with_first = pair % 2 == 0;
            let (first, second) = (measure(with_first), measure(!with_first));
            if with_first { (second, first) } else { (first, second) }
        })
        .collect();
    std::array::from_fn(|figure| {
        let plain = pairs.iter().map(|(without, _)| without[figure]).collect();
        let added = pairs.iter().map(|(without, with)| with[figure] - without[figure]).collect();
        (median(plain), median(added))
    })
}

fn report(what: &str, unit: &str, goal: Option<f64>, (plain, added): &(Median, Median)) {
    let verdict = match goal {
        Some(goal) if added.value <= goal => format!("goal {goal:.0}: met"),
        Some(goal) => format!("goal {goal:.0}: missed"),
        None => "no goal".to_owned(),
    };
    println!(
        "{what:<58} {:>7.1} {unit} plain, {:>6.1} {unit} added [{:.1}, {:.1}], {verdict}",
        plain.value, added.value, added.low, added.high
    );
}

/// A folder in memory if there is one.
fn logs() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let parent = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let folder = parent.join(format!("memscope-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// How fast the calls come.
#[derive(Clone, Copy)]
enum Pace {
    BackToBack,
    Bursts,
}

impl Pace {
    /// Batches of a thread, and microseconds between bursts: arguments of the program.
    fn arguments(self) -> [&'static str; 2] {
        match self {
            Pace::BackToBack => ["10000", "0"],
            Pace::Bursts => ["15000", "1000"],
        }
    }
}

/// Who reads the log.
#[derive(Clone, Copy)]
enum Reader {
    Nobody,
    Memscope,
}

/// Nanoseconds a call: wall time of the median batch, wall time of all, processor time of all.
fn call_cost(threads: u32, pace: Pace, reader: Reader, logs: &Path) -> [(Median, Median); 3] {
    let program = stage::linked_program("cost");
    let driver = stage::driver("");
    let threads = threads.to_string();
    let run = |command: &mut Command| stage::output(command.arg(&threads).args(pace.arguments()));
    compare(|with| {
        let output = match (with, reader) {
            (false, _) => run(&mut stage::plain(&program, &driver)),
            (true, Reader::Nobody) => {
                let output = run(&mut stage::recorded(&program, &driver, logs));
                for log in std::fs::read_dir(logs).unwrap() {
                    std::fs::remove_file(log.unwrap().path()).unwrap();
                }
                output
            }
            (true, Reader::Memscope) => beside_a_recorder(|logs| run(&mut stage::recorded(&program, &driver, logs))),
        };
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
        figures.try_into().unwrap()
    })
}

/// Nanoseconds that a native stack of so many frames adds to an allocation, in bursts beside a recorder: mean, processor time.
fn stack_cost(frames: u32) -> [(Median, Median); 2] {
    let program = stage::linked_program("cost");
    let driver = stage::driver("");
    compare(|with| {
        let output = beside_a_recorder(|logs| {
            let mut command = stage::recorded(&program, &driver, logs);
            command.arg("1").args(Pace::Bursts.arguments()).arg(frames.to_string());
            if with {
                command.env(env::STACKS, "native");
            }
            stage::output(&mut command)
        });
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
        // Every other call is a free, which has no stack.
        [figures[1] * 2.0, figures[2] * 2.0]
    })
}

/// Runs a program beside memscope's recorder, as `memscope run` does. Nothing may be lost.
fn beside_a_recorder(run: impl FnOnce(&Path) -> Output) -> Output {
    let place = std::env::temp_dir().join(format!("memscope-bench-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let session = SessionInfo::begin(vec!["cost".to_owned()]);
    let folder = SessionFolder::create(&place.join("cost.mscope"), &session).unwrap();
    let recorder = Recorder::start(&folder, Options::default(), None).unwrap();
    let output = run(&folder.logs());
    let summary = recorder.finish(output.status.code()).unwrap();
    assert_eq!((summary.progress.dropped, summary.uncommitted), (0, 0), "{summary:?}");
    folder.remove().unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    output
}

/// Microseconds from the start of a program to its end.
fn start_cost(logs: &Path) -> [(Median, Median); 1] {
    const STARTS: u32 = 40;
    let nothing = Path::new("/bin/true");
    compare(|with| {
        let mut command = if with { stage::recorded(nothing, logs, logs) } else { stage::plain(nothing, logs) };
        let begin = Instant::now();
        for _ in 0..STARTS {
            assert!(command.status().unwrap().success());
        }
        [begin.elapsed().as_secs_f64() * 1e6 / f64::from(STARTS)]
    })
}

fn main() {
    let logs = logs();
    println!("{PAIRS} interleaved pairs; median [95 % interval]; wall time unless it says processor time");
    for threads in [1, 2] {
        println!("recorded call, {threads} thread(s)");
        for (pace, paced) in [(Pace::Bursts, "bursts"), (Pace::BackToBack, "back to back")] {
            for (reader, read) in [(Reader::Memscope, "memscope recording"), (Reader::Nobody, "nobody recording")] {
                let [hooks, all, processor] = call_cost(threads, pace, reader, &logs);
                // What a user of `memscope run` pays.
                let goal = matches!((pace, reader), (Pace::Bursts, Reader::Memscope)).then_some(if threads == 1 {
                    25.0
                } else {
                    60.0
                });
                report(&format!("  {paced}, {read}: mean"), "ns", goal, &all);
                report(&format!("  {paced}, {read}: mean, processor time"), "ns", None, &processor);
                report(&format!("  {paced}, {read}: median batch"), "ns", None, &hooks);
            }
        }
    }
    println!("an allocation with its stack of machine code, from two places in turn; plain is one recorded without");
    for frames in [5, 30] {
        let [all, processor] = stack_cost(frames);
        report(&format!("  {frames} frames: mean"), "ns", (frames == 30).then_some(1000.0), &all);
        report(&format!("  {frames} frames: mean, processor time"), "ns", None, &processor);
    }
    let [start] = start_cost(&logs);
    report("start of /bin/true", "µs", Some(200.0), &start);
    std::fs::remove_dir_all(&logs).unwrap();
}
