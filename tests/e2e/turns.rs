//! Programs one after another that count their steps anew, and ranks side by side that count the same ones.

use std::process::Command;

use serde_json::Value;

use crate::memscope::{Place, number, stderr};

const MIB: u64 = 1 << 20;

/// Number, time, and bytes of each step's peak and end.
fn steps(report: &Value) -> Vec<(u64, u64, u64, Option<u64>)> {
    let row = |step: &Value| {
        (number(step, "/step"), number(step, "/turn"), number(step, "/peak/bytes"), step["live_at_end"].as_u64())
    };
    report["steps"].as_array().expect("steps").iter().map(row).collect()
}

fn said(place: &Place, arguments: &[&str]) -> (String, Value) {
    let mut command = place.memscope();
    command.args(["run", "-f", "-o", "p.mscope", "--json", "r.json", "--device", "1GiB", "--"]).args(arguments);
    let output = command.output().expect("memscope starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = std::fs::read(place.path("r.json")).expect("a report");
    (stderr(&output), serde_json::from_slice(&report).expect("JSON"))
}

/// A program with so many MiB of weights, as `turns.c` does it.
fn alone(weights: u64, steps: u64, turn: u64) -> Vec<(u64, u64, u64, Option<u64>)> {
    let row = |step| (step, turn, (weights + weights / 4 * step) * MIB, Some(weights * MIB));
    (1..=steps).map(row).collect()
}

#[test]
fn two_programs_one_after_another_have_steps_of_their_own() {
    let place = Place::new();
    let program = place.compile_linked("turns").display().to_string();
    // The second one's weights alone are more than the first ever held: they are no part of the first one's last step.
    let line = format!("{program} plain 4 3; {program} plain 64 4");
    let expected = [alone(4, 3, 1), alone(64, 3, 2), vec![(4, 1, 128 * MIB, Some(64 * MIB))]].concat();
    let (text, report) = said(&place, &["sh", "-c", &line]);
    assert_eq!(steps(&report), expected);
    assert!(text.contains("1 (2nd time)"), "{text}");
    // The same process, another program.
    let line = format!("{program} plain 4 3 && exec {program} plain 64 4");
    assert_eq!(steps(&said(&place, &["sh", "-c", &line]).1), expected);
    // As views and other readers see the profile.
    let output = place.run("report p.mscope --format json --at step:1");
    let at: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((steps(&at), number(&at, "/at/bytes")), (expected, 80 * MIB));
}

#[test]
fn the_sample_trained_twice_is_told_as_each_alone() {
    let place = Place::new();
    let binary = env!("CARGO_BIN_EXE_memscope");
    let sample = |batch: u64| format!("{binary} sample gpt --model gpt2-124m --batch {batch} --seq 64 --steps 3");
    let record = |line: &str| {
        let mut command = place.memscope();
        command.args([
            "run",
            "-q",
            "-f",
            "-o",
            "p.mscope",
            "--json",
            "r.json",
            "--device",
            "h100-80gb",
            "--no-compute",
            "--",
        ]);
        let output = command.args(["sh", "-c", line]).output().expect("memscope starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report: Value =
            serde_json::from_slice(&std::fs::read(place.path("r.json")).expect("a report")).expect("JSON");
        steps(&report)
    };
    let (first, second) = (record(&sample(2)), record(&sample(4)));
    let turned = second.into_iter().map(|(step, _, peak, end)| (step, 2, peak, end));
    let expected: Vec<_> = first.into_iter().chain(turned).collect();
    assert_eq!(expected.len(), 6);
    assert_eq!(record(&format!("{}; {}", sample(2), sample(4))), expected);
}

#[test]
fn forked_processes_share_their_steps_when_they_lived_side_by_side() {
    let place = Place::new();
    let program = place.compile_linked("turns").display().to_string();
    let (_, report) = said(&place, &[&program, "forks", "one-after-another"]);
    assert_eq!(steps(&report), [alone(4, 3, 1), alone(8, 3, 2)].concat());
    // The second one lags behind until the first is gone.
    let (_, report) = said(&place, &[&program, "forks", "side-by-side"]);
    assert_eq!(steps(&report), alone(8, 3, 1));
}

#[test]
fn ranks_that_lag_behind_are_in_the_same_steps() {
    let launchers = [
        ("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe", "-n", "2"][..]),
        ("mpiexec.hydra", &["-launcher", "fork", "-n", "2"]),
    ];
    for (launcher, flags) in launchers {
        if !Command::new(launcher).arg("--version").output().is_ok_and(|output| output.status.success()) {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "SKIPPED {launcher}: it is not installed (openmpi-bin, mpich)");
            continue;
        }
        let place = Place::new();
        let program = place.compile_linked("turns").display().to_string();
        let command: Vec<&str> =
            [launcher].into_iter().chain(flags.iter().copied()).chain([&program[..], "rank"]).collect();
        let (_, report) = said(&place, &command);
        assert_eq!(steps(&report), alone(8, 3, 1), "{launcher}");
    }
}
