//! Full and missing folders, limits, closed descriptors: the program is unharmed, and what is lost is counted.

use std::path::Path;
use std::process::Command;

use memscope_wire::log::{CHUNK_SLOTS, HEADER_BYTES, Refusal, SLOT_BYTES};
use memscope_wire::{Event, env};

use crate::log_reader::{Log, logs, only_log, refusals};
use crate::stage::{self, driver, linked_program, program, run_both};

const CHUNK_BYTES: u64 = CHUNK_SLOTS * SLOT_BYTES as u64;

/// Records before the first event of a program: its thread and the rows of the table.
fn preamble() -> u64 {
    stage::rows() + 1
}

fn steps(log: &Log) -> u64 {
    log.events().iter().filter(|event| matches!(event, Event::Step { .. })).count() as u64
}

#[test]
fn a_folder_that_takes_no_log_harms_nobody() {
    let program = linked_program("linked");
    let plain = stage::output(&mut stage::plain(&program, &driver("")));
    for folder in ["/nonexistent/folder", "/dev/null", "/proc", "/dev/full/x", &"long".repeat(2000)] {
        let recorded = stage::output(&mut stage::recorded(&program, &driver(""), Path::new(folder)));
        assert_eq!(recorded, plain, "{folder}");
    }
}

#[test]
fn a_limit_of_file_size_drops_and_counts() {
    let limit = HEADER_BYTES as u64 + CHUNK_BYTES + 100;
    let logs = run_both(&program("limits", &[]), &driver(""), &[&limit.to_string(), "20000", "0"]);
    let log = only_log(&logs);
    assert_eq!(log.allocated(), CHUNK_SLOTS);
    assert_eq!(steps(&log), CHUNK_SLOTS - preamble());
    assert_eq!(log.dropped(), 20_000 - (CHUNK_SLOTS - preamble()));
}

#[test]
fn recording_resumes_when_there_is_room_again() {
    let limit = HEADER_BYTES as u64 + CHUNK_BYTES;
    let logs = run_both(&program("limits", &[]), &driver(""), &[&limit.to_string(), "20000", "20000"]);
    let log = only_log(&logs);
    assert_eq!(steps(&log) + log.dropped(), 40_000);
    assert!(steps(&log) > 20_000 + 10_000, "{}", steps(&log));
    assert!(log.events().contains(&Event::Step { number: 39_999 }));
}

#[test]
fn a_limit_without_room_for_a_chunk_leaves_a_log_that_says_so() {
    let logs = run_both(&program("limits", &[]), &driver(""), &["5000", "100", "0"]);
    let log = only_log(&logs);
    assert_eq!((log.allocated(), steps(&log)), (0, 0));
    assert_eq!(log.dropped(), 100 + preamble());
}

#[test]
fn a_limit_without_room_for_a_header_leaves_no_log_and_the_reason() {
    let folder = run_both(&program("limits", &[]), &driver(""), &["4095", "100", "0"]);
    assert_eq!((logs(&folder).len(), refusals(&folder)), (0, vec![Refusal::FileSize]));
}

#[test]
fn address_space_without_room_for_a_log_leaves_the_reason() {
    let logs_of_run = stage::folder();
    let mut command = Command::new("sh");
    // 32 MiB: the log may take half a MiB of it, less than a chunk.
    command.args(["-c", "ulimit -v 32768 && exec \"$0\" 1 1000"]).arg(program("stress", &["-pthread"]));
    command.env("LD_PRELOAD", stage::interposer()).env(env::LOG_DIR, &logs_of_run);
    let output = stage::output(&mut command);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{output:?}");
    assert_eq!((logs(&logs_of_run).len(), refusals(&logs_of_run)), (0, vec![Refusal::AddressSpace]));
}

#[test]
fn little_address_space_is_left_to_the_program() {
    let program = program("stress", &["-pthread"]);
    let logs = stage::folder();
    let mut command = Command::new("sh");
    // 2 GiB: the log may take 32 MiB of it, half a million events.
    command.args(["-c", "ulimit -v 2097152 && exec \"$0\" 1 100000"]).arg(&program);
    command.env("LD_PRELOAD", stage::interposer()).env(env::LOG_DIR, &logs);
    let output = stage::output(&mut command);
    assert!(output.status.success(), "{output:?}");
    let log = only_log(&logs);
    assert_eq!((steps(&log), log.dropped()), (100_000, 0));
}

/// Runs stress.c with its logs on a tmpfs of `kibibytes`; `None` where no file system can be mounted.
fn on_small_tmpfs(kibibytes: u64) -> Option<(std::process::Output, Log)> {
    let (mount, logs) = (stage::folder(), stage::folder());
    let script = format!(
        "mount -t tmpfs -o size={kibibytes}k none \"$MOUNT\" || exit 99\n\
         LD_PRELOAD=\"$PRELOAD\" \"$PROGRAM\" 2 20000; status=$?\n\
         cp \"$MOUNT\"/*.log \"$LOGS\"; exit $status"
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &script]);
    command.env("MOUNT", &mount).env("LOGS", &logs).env("PRELOAD", stage::interposer());
    command.env("PROGRAM", program("stress", &["-pthread"])).env(env::LOG_DIR, &mount);
    match command.output() {
        Ok(output) if output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare") => {
            Some((output, only_log(&logs)))
        }
        refused => {
            use std::io::Write;
            // Past the test harness, which hides what passing tests print.
            let _ = writeln!(std::io::stderr(), "SKIPPED a full tmpfs: none can be mounted here: {refused:?}");
            None
        }
    }
}

#[test]
fn a_full_file_system_drops_and_counts() {
    for (kibibytes, chunks) in [(64, 0), (1500, 1), (2600, 2)] {
        let Some((output, log)) = on_small_tmpfs(kibibytes) else { return };
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
        assert_eq!(log.allocated(), chunks * CHUNK_SLOTS);
        // The preamble and one thread more than it holds.
        let committed = log.records().iter().filter(|record| record.kind() != 0).count() as u64;
        assert_eq!(committed + log.dropped(), 40_000 + preamble() + 1);
        assert_eq!(committed, log.allocated());
    }
}

#[test]
fn a_program_that_closes_and_takes_all_descriptors_is_recorded_and_unharmed() {
    let own = stage::folder().join("own");
    let logs = stage::folder();
    let mut command = stage::recorded(&program("descriptors", &[]), &driver(""), &logs);
    let output = stage::output(command.arg(&own));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "own file: 0 bytes\n");
    let log = only_log(&logs);
    assert_eq!((steps(&log), log.dropped()), (120_000, 0));
}

#[test]
fn a_deleted_log_grows_no_more() {
    let logs = stage::folder();
    let mut command = stage::recorded(&program("deleted", &[]), &driver(""), &logs);
    let output = stage::output(command.arg(&logs));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "grown by 0 chunks\n");
}
