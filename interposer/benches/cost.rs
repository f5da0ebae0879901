//! What the interposer costs: nanoseconds added to a recorded call, against a driver that does nothing, and microseconds
//! added to the start of a program that never uses CUDA.
//!
//! `cargo bench -p memscope-interposer`. Each figure is the median of the differences of interleaved pairs (without, with),
//! and the 95 % confidence interval of that median. The program is tests/programs/cost.c. Its median batch of calls tells what
//! the hooks cost; its mean includes the growth of the log: the kernel provides and clears a page for every 64 events, in
//! memory (/dev/shm) and in the program's thread. Nobody drains the log meanwhile.

#[path = "../tests/interposer/stage.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod stage;

use std::path::{Path, PathBuf};
use std::time::Instant;

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
        "{what:<44} {:>7.1} {unit} plain, {:>6.1} {unit} added [{:.1}, {:.1}], {verdict}",
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

/// Nanoseconds a call: of the median batch, and of all.
fn call_cost(threads: u32, logs: &Path) -> [(Median, Median); 2] {
    const BATCHES: &str = "10000";
    let program = stage::linked_program("cost");
    let driver = stage::driver("");
    compare(|with| {
        let mut command = if with { stage::recorded(&program, &driver, logs) } else { stage::plain(&program, &driver) };
        let output = stage::output(command.args([&threads.to_string(), BATCHES]));
        assert!(output.status.success(), "{output:?}");
        for log in std::fs::read_dir(logs).unwrap() {
            std::fs::remove_file(log.unwrap().path()).unwrap();
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let (median, mean) = text.trim().split_once(' ').unwrap();
        [median.parse().unwrap(), mean.parse().unwrap()]
    })
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
    println!("{PAIRS} interleaved pairs; median [95 % interval]");
    for threads in [1, 2] {
        let [hooks, all] = call_cost(threads, &logs);
        let goal = if threads == 1 { Some(25.0) } else { None };
        report(&format!("recorded call, {threads} thread(s)"), "ns", goal, &hooks);
        report("  with the growth of the log", "ns", None, &all);
    }
    let [start] = start_cost(&logs);
    report("start of /bin/true", "µs", Some(200.0), &start);
    std::fs::remove_dir_all(&logs).unwrap();
}
