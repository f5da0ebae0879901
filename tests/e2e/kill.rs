//! SIGKILL of the program, of memscope, or of both, at random moments: nothing committed is lost, nothing is doubled.
//!
//! And a program whose memscope was killed is none the worse for it: it fills no memory, and what it did later is counted.
//!
//! The truth is the program's own count of returned calls, in a shared file. A call's record is committed before it returns,
//! so the profile has that many, or one more when the kill came between the record and the count.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use memscope_wire::log::MOST_UNREAD_SLOTS;

use crate::memscope::{Place, flat, number, stderr, stdout};

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

/// Under memscope, a program that records as many steps as it is told.
struct Bursts {
    memscope: Child,
    answers: BufReader<ChildStdout>,
    program: u32,
    steps: u64,
}

impl Bursts {
    fn start(place: &Place) -> Bursts {
        let program = place.compile("bursts", &[]);
        let mut command = place.memscope();
        command.args(["run", "-q", "-f", "-o", "k.mscope", "--"]).arg(&program);
        let mut memscope = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("memscope starts");
        let answers = BufReader::new(memscope.stdout.take().expect("piped"));
        let mut bursts = Bursts { memscope, answers, program: 0, steps: 0 };
        bursts.burst(1000);
        bursts.program = child_of(bursts.memscope.id(), &program);
        bursts
    }

    fn burst(&mut self, steps: u64) {
        writeln!(self.memscope.stdin.as_mut().expect("piped"), "{steps}").expect("it listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert_eq!(answer, "done\n");
        self.steps += steps;
    }
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: plain numbers; the pid is a child of this test that nobody has reaped.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// Bytes that the logs of the session take.
fn bytes_of_logs(place: &Place) -> u64 {
    let folder = place.path("k.mscope.session").canonicalize().expect("the session");
    let entries = std::fs::read_dir(folder.join("logs")).expect("the logs");
    entries.map(|entry| std::os::unix::fs::MetadataExt::blocks(&entry.unwrap().metadata().unwrap()) * 512).sum()
}

/// The finding about lost events.
fn lost(report: &Value) -> &Value {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().find(|finding| finding["kind"] == "dropped_events").unwrap_or_else(|| panic!("{findings:#?}"))
}

#[test]
fn a_program_whose_memscope_was_killed_fills_no_memory_and_is_read_again_later() {
    const BOUND: u64 = MOST_UNREAD_SLOTS * 64;
    let place = Place::new();
    let mut bursts = Bursts::start(&place);
    let begin = Instant::now();
    signal(bursts.memscope.id(), libc::SIGKILL);
    // Its input is the program's as well: it must not be closed by waiting.
    let stdin = bursts.memscope.stdin.take();
    bursts.memscope.wait().expect("gone");
    bursts.memscope.stdin = stdin;
    for _ in 0..3 {
        bursts.burst(MOST_UNREAD_SLOTS / 2);
        assert!(bytes_of_logs(&place) <= BOUND + 4 * 4096, "{}", bytes_of_logs(&place));
    }

    let report = place.run("report k.mscope.session --format json");
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let finding = lost(&report);
    let gone = finding["gone_s"].as_f64().expect("a time");
    assert!(gone > 0.0 && gone < begin.elapsed().as_secs_f64() + 60.0, "{gone}");
    assert_eq!(number(finding, "/events"), number(&report, "/dropped_events"));
    assert!(number(finding, "/events") > MOST_UNREAD_SLOTS / 3, "{finding}");
    let text = flat(&stdout(&place.run("report k.mscope.session")));
    assert!(text.contains("MEMSCOPE WAS GONE, AND"), "{text}");

    // What is read makes room, for the program too.
    let recovery = place.run("recover k.mscope.session");
    assert!(stderr(&recovery).contains("still run"), "{}", stderr(&recovery));
    let before = number(&report, "/dropped_events");
    bursts.burst(MOST_UNREAD_SLOTS / 4);
    drop(bursts.memscope.stdin.take());
    wait_until("the program is gone", || !Path::new(&format!("/proc/{}/exe", bursts.program)).exists());

    let recovery = place.run("recover k.mscope.session");
    assert!(recovery.status.success(), "{}", stderr(&recovery));
    let said = stderr(&recovery);
    assert!(said.contains("memscope was gone, and from"), "{said}");
    let report = place.run("report k.mscope --format json");
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let dropped = number(&report, "/dropped_events");
    assert!((before..=before + 1024).contains(&dropped), "{dropped}, {before} before");
    assert_eq!(lost(&report)["gone_s"].as_f64(), Some(gone), "also in the profile");
    // Everything is read or counted: "N events were in the journal, M more in the logs".
    let line = said.lines().find(|line| line.contains("were in the journal")).expect("what was read");
    let numbers = line.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    let read: u64 = numbers.sum();
    let others = (read + dropped).checked_sub(bursts.steps).expect("no step is missing");
    assert!((1..300).contains(&others), "{others} events besides the steps: the functions' names and the thread");
}

#[test]
fn processes_that_began_when_memscope_was_gone_are_counted_before_a_recovery_too() {
    let place = Place::new();
    let program = place.compile_linked("turns").display().to_string();
    let line = format!(
        "exec >/dev/null 2>&1; {program} plain 4 2; touch first; while [ ! -e go ]; do sleep 0.05; done; {program} plain 4 2; touch second; exit"
    );
    let mut command = place.memscope();
    command.args(["run", "-q", "-o", "k.mscope", "--device", "1GiB", "--", "sh", "-c", &line]);
    let mut memscope = command.spawn().expect("memscope starts");
    wait_until("the first has ended", || place.path("first").exists());
    kill(memscope.id());
    memscope.wait().expect("gone");
    std::fs::write(place.path("go"), "").expect("written");
    wait_until("the second has ended", || place.path("second").exists());
    let processes = |source: &str| {
        let report = place.run(&format!("report {source} --format json"));
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        number(lost(&report), "/processes")
    };
    assert_eq!(processes("k.mscope.session"), 1);
    let recovery = place.run("recover k.mscope.session");
    assert!(recovery.status.success(), "{}", stderr(&recovery));
    assert_eq!(processes("k.mscope"), 1);
}

#[test]
fn a_program_whose_memscope_was_killed_has_a_ledger_that_adds_up() {
    let place = Place::new();
    let program = place.compile_linked("churn");
    let counts = place.path("counts");
    let mut command = place.memscope();
    command.args(["run", "-q", "-f", "-o", "k.mscope", "--device", "1GiB", "--no-compute", "--"]);
    let mut memscope = command.arg(&program).arg(&counts).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the program counts", || count(&counts).is_some_and(|(allocations, _)| allocations > 1000));
    let child = child_of(memscope.id(), &program);
    kill(memscope.id());
    memscope.wait().expect("gone");
    let events = || count(&counts).map_or(0, |(allocations, frees)| allocations + frees);
    // Two chunks may have been provided ahead, and some were not read yet.
    wait_until("more than the bound is written", || events() > 2 * MOST_UNREAD_SLOTS + MOST_UNREAD_SLOTS / 2);
    kill(child);
    wait_until("the program is gone", || !Path::new(&format!("/proc/{child}/exe")).exists());

    let recovery = place.run("recover k.mscope.session");
    assert!(recovery.status.success(), "{}", stderr(&recovery));
    let report = place.run("report k.mscope --format json");
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let (recorded, freed) = (number(&report, "/totals/allocations"), number(&report, "/totals/frees"));
    let dropped = number(&report, "/dropped_events");
    assert!(dropped > 0);
    // A call's record is committed, or counted, before it returns.
    let (all, counted) = (recorded + freed + dropped, events());
    assert!((counted..=counted + 2).contains(&all), "{recorded} + {freed} + {dropped}, counted {counted}");
    // 64 are held at most, and one more while its free is not seen.
    assert!((recorded - 65..=recorded).contains(&freed), "{recorded}, {freed}");
}
