//! NVTX ranges: what is in the log of a program that knows nothing of memscope, and that it sees no difference.

use memscope_wire::env;

use crate::log_reader::{Log, only_log};
use crate::stage::{self, driver, interposer, linked_program};

/// The program's output, and its log.
fn record(injection: Option<&std::path::Path>, argument: &str) -> (String, Log) {
    let program = linked_program("ranges");
    let logs = stage::folder();
    let plain = stage::output(stage::plain(&program, &driver("")).arg(argument));
    let mut command = stage::recorded(&program, &driver(""), &logs);
    command.arg(argument);
    if let Some(injection) = injection {
        command.env(env::NVTX_INJECTION, injection);
    }
    let recorded = stage::output(&mut command);
    assert!(plain.status.success(), "{plain:?}");
    assert_eq!(plain, recorded, "the program sees a difference");
    (String::from_utf8(plain.stdout).unwrap(), only_log(&logs))
}

/// The story of a log without what every log has, an allocation as its number of MiB.
fn story(log: &Log) -> Vec<String> {
    let short = |line: String| match line.split_once(": ") {
        Some((call, rest)) if call.starts_with("cuMemAlloc_v2") => {
            let bytes: u64 = rest.split(' ').next().unwrap().parse().unwrap();
            format!("{} MiB", bytes >> 20)
        }
        _ if line.starts_with("cuMemFree_v2") => "free".to_owned(),
        _ => line,
    };
    let all = log.story().into_iter().filter(|line| line != "thread" && !line.starts_with("device"));
    all.filter(|line| !line.contains("context")).map(short).collect()
}

#[test]
fn every_way_to_name_a_range_is_told() {
    let (said, log) = record(Some(interposer()), "");
    // A push says that nobody counts its depth, as without a profiler.
    assert_eq!(said, "-2\n".repeat(6));
    assert_eq!(
        story(&log),
        [
            "into \"narrow\"",
            "into \"wïde\"",
            "into \"attributes\"",
            "1 MiB",
            "out",
            "out",
            "into \"library: registered\"",
            "2 MiB",
            "out",
            "out",
            "by a range",
            "phase \"warming up\"",
            "3 MiB",
            "by a range",
            "phase nothing",
            "4 MiB",
        ]
    );
    assert_eq!((log.faults(), log.dropped()), (0, 0));
}

#[test]
fn ranges_named_after_passes_and_steps_are_phases_and_steps() {
    let (_, log) = record(Some(interposer()), "train");
    let story = story(&log);
    let step = |number: u32, state: &[&str]| -> Vec<String> {
        let push = |name: &str| format!("into {name:?}");
        let phase = |name: &str| ["by a range".to_owned(), format!("phase {name}")];
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [
            vec![push(&format!("step {number}")), format!("step {number}"), push("Forward")],
            phase("\"forward\"").to_vec(),
            vec![push("layer")],
            words(&["4 MiB", "2 MiB", "free", "out", "out"]),
            phase("nothing").to_vec(),
            vec![push("backward")],
            phase("\"backward\"").to_vec(),
            words(&["1 MiB", "free", "free", "out"]),
            phase("nothing").to_vec(),
            vec![push("Optimizer.step#SGD.step")],
            phase("\"optimizer\"").to_vec(),
            // The optimizer's own step is none of the program's.
            vec![push("step")],
            words(state),
            words(&["out", "out"]),
            phase("nothing").to_vec(),
            words(&["out"]),
        ]
        .concat()
    };
    let expected: Vec<String> =
        [vec!["8 MiB".to_owned()], step(10, &["16 MiB"]), step(11, &[]), step(12, &[]), vec!["free".to_owned(); 2]]
            .concat();
    assert_eq!(story, expected);
}

#[test]
fn a_program_that_has_another_profiler_keeps_it() {
    // Nothing is told where the variable is not set, and nothing goes wrong where it names something else.
    let (_, log) = record(None, "train");
    assert!(story(&log).iter().all(|line| line.ends_with("MiB") || line == "free"), "{:?}", story(&log));
}
