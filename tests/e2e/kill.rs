//! SIGKILL of the program, of memscope, or of both, at random moments: nothing committed is lost, nothing is doubled.
//!
//! The truth is the program's own count of returned calls, in a shared file. A call's record is committed before it returns,
//! so the profile has that many, or one more when the kill came between the record and the count.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::memscope::{Place, number, stderr};

/// Moments tried for each victim, unless the environment says how many.
const TRIES: u64 = 4;
/// How many moments to try; and the seed from which they come, to try those of another run again.
const SETTINGS: [&str; 2] = ["MEMSCOPE_TEST_KILLS", "MEMSCOPE_TEST_SEED"];
/// Latest moment, in milliseconds after the first event.
const LATEST: u64 = 700;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Program,
    Memscope,
    Both,
}

#[test]
fn nothing_committed_is_lost() {
    let place = Place::new();
    let program = place.compile_linked("churn");
    let [tries, seed] = SETTINGS.map(|name| std::env::var(name).ok().map(|text| text.parse().expect("a number")));
    let now = std::time::UNIX_EPOCH.elapsed().expect("a date").as_nanos() as u64;
    let (tries, seed) = (tries.unwrap_or(TRIES), seed.unwrap_or(now) | 1);
    println!("{tries} moments for each victim, {}={seed}", SETTINGS[1]);
    let mut state = seed;
    for victim in [Victim::Program, Victim::Memscope, Victim::Both] {
        for _ in 0..tries {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let delay = Duration::from_micros(state % (LATEST * 1000));
            println!("{victim:?} after {delay:?}");
            one(&place, &program, victim, delay);
        }
    }
}

fn one(place: &Place, program: &Path, victim: Victim, delay: Duration) {
    let counts = place.path("counts");
    let _ = std::fs::remove_file(&counts);
    let mut command = place.memscope();
    command.args(["run", "-q", "-f", "-o", "k.mscope", "--device", "1GiB", "--no-compute", "--"]);
    let mut memscope = command.arg(program).arg(&counts).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the program counts", || count(&counts).is_some_and(|(allocations, _)| allocations > 0));
    let child = child_of(memscope.id(), program);
    sleep(delay);
    match victim {
        Victim::Program => kill(child),
        Victim::Memscope => {
            kill(memscope.id());
            sleep(Duration::from_millis(30)); // the program goes on alone
            kill(child);
        }
        Victim::Both => {
            kill(memscope.id());
            kill(child);
        }
    }
    finish(place, &mut memscope, victim);
    wait_until("the program is gone", || !Path::new(&format!("/proc/{child}/exe")).exists());

    let report = place.run("report k.mscope --format json");
    assert!(report.status.success(), "{victim:?}: {}", stderr(&report));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let (allocations, frees) = count(&counts).unwrap();
    let (recorded, freed) = (number(&report, "/totals/allocations"), number(&report, "/totals/frees"));
    assert!(
        (allocations..=allocations + 1).contains(&recorded) && (frees..=frees + 1).contains(&freed),
        "{victim:?} after {delay:?}: counted {allocations}/{frees}, recorded {recorded}/{freed}"
    );
    assert_eq!(report["dropped_events"], 0);
}

/// Makes the profile: memscope does it itself, unless it was killed; then `recover` does.
fn finish(place: &Place, memscope: &mut Child, victim: Victim) {
    let status = memscope.wait().unwrap();
    if victim == Victim::Program {
        assert_eq!(status.code(), Some(137));
        return;
    }
    assert!(place.path("k.mscope.session").exists(), "the session of a killed memscope is kept");
    let output = place.run("recover -f k.mscope.session");
    assert!(output.status.success(), "{victim:?}: {}", stderr(&output));
    assert!(!place.path("k.mscope.session").exists(), "a recovered session is removed");
}

fn count(path: &Path) -> Option<(u64, u64)> {
    let bytes = std::fs::read(path).ok()?;
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some((word(0)?, word(8)?))
}

fn kill(pid: u32) {
    // SAFETY: plain numbers; the pid is a descendant of this test that nobody has reaped.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

/// The child of `parent` that runs `program` (memscope's witness of signals is a child too).
fn child_of(parent: u32, program: &Path) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("the children");
    let runs = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program);
    let mut pids = children.split_whitespace().map(|pid| pid.parse().expect("a pid"));
    pids.find(runs).unwrap_or_else(|| panic!("no child runs {}: {children}", program.display()))
}

#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(1));
    }
}
