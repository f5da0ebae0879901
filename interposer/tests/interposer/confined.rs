//! Programs that take something from themselves: the folder of the logs, files, system calls. They run as they would; what
//! is then not recorded comes with its reason, where a process can leave one.

use memscope_wire::Event;
use memscope_wire::log::{CHUNK_SLOTS, Refusal};

use crate::log_reader::{Log, logs, only_log, refusals};
use crate::stage::{self, compare, driver, program, variant};

/// Runs confined.c both ways; the folder of its logs. `None` where this machine does not allow what the program does.
fn confined(arguments: [&str; 5]) -> Option<std::path::PathBuf> {
    let (logs, output) = compare(&program("confined", &[]), &driver(""), &arguments, |_| {});
    if output.status.code() == Some(99) {
        let refused = String::from_utf8_lossy(&output.stderr).into_owned();
        stage::skip(&format!("a program confined by {}: {}", arguments[0], refused.trim()));
        return None;
    }
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(output.stdout.ends_with(b"unharmed\n"));
    Some(logs)
}

fn steps(log: &Log) -> Vec<u64> {
    let numbers = log.events().into_iter().filter_map(|event| match event {
        Event::Step { number } => Some(number),
        _ => None,
    });
    numbers.collect()
}

/// More events than a log begins with.
const MANY: u64 = 3 * CHUNK_SLOTS;

#[test]
fn a_program_that_changes_its_root_first_is_not_recorded_and_later_is() {
    let root = stage::folder();
    let root = root.to_str().unwrap();
    let Some(folder) = confined(["chroot", root, "first", "0", "100"]) else { return };
    // There is no place for a reason either.
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    let Some(folder) = confined(["chroot", root, "late", "10", &MANY.to_string()]) else { return };
    assert_eq!(steps(&only_log(&folder)), (0..10 + MANY).collect::<Vec<_>>());
}

#[test]
fn a_program_that_gives_up_its_rights_is_recorded_as_far_as_it_may() {
    let Some(folder) = confined(["user", "", "late", "10", &MANY.to_string()]) else { return };
    assert_eq!(steps(&only_log(&folder)), (0..10 + MANY).collect::<Vec<_>>());
}

#[test]
fn a_program_with_few_files_has_those_that_it_would_have() {
    // Its own files get the numbers from 3 on, whether or not there is a number for ours.
    for files in ["8", "64", "2000"] {
        let Some(folder) = confined(["files", files, "first", "0", &MANY.to_string()]) else { return };
        assert_eq!(steps(&only_log(&folder)), (0..MANY).collect::<Vec<_>>(), "{files}");
    }
    let Some(folder) = confined(["files", "8", "late", "10", &MANY.to_string()]) else { return };
    assert_eq!(steps(&only_log(&folder)), (0..10 + MANY).collect::<Vec<_>>());
}

#[test]
fn a_program_that_may_open_nothing_more_is_not_recorded() {
    let Some(folder) = confined(["files", "3", "first", "0", "100"]) else { return };
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

const FILTERS: [&str; 2] = ["seccomp-errno", "seccomp-kill"];

#[test]
fn a_program_that_filters_its_calls_before_it_has_a_driver_lives_and_leaves_the_reason() {
    for what in FILTERS {
        let Some(folder) = confined([what, "", "first", "0", "100"]) else { return };
        assert_eq!((logs(&folder).len(), refusals(&folder)), (0, vec![Refusal::Filter]), "{what}");
    }
}

#[test]
fn a_program_that_filters_its_calls_is_recorded_where_it_has_a_driver_or_a_log() {
    let folder = driver("");
    let linked = ["-Wl,--no-as-needed", "-L", folder.to_str().unwrap(), "-lcuda"];
    for what in FILTERS {
        let (logs, output) =
            compare(&variant("confined", "-linked", &linked), &folder, &[what, "", "first", "0", "3000"], |_| {});
        if output.status.code() == Some(99) {
            return;
        }
        assert_eq!(steps(&only_log(&logs)), (0..3000).collect::<Vec<_>>(), "{what}");
        let Some(folder) = confined([what, "", "late", "10", "3000"]) else { return };
        assert_eq!(steps(&only_log(&folder)), (0..3010).collect::<Vec<_>>(), "{what}");
    }
}

#[test]
fn what_has_no_room_behind_a_filter_is_counted() {
    for what in FILTERS {
        let Some(folder) = confined([what, "", "late", "10", &MANY.to_string()]) else { return };
        let log = only_log(&folder);
        // A second chunk may have been provided before.
        assert!([CHUNK_SLOTS, 2 * CHUNK_SLOTS].contains(&log.allocated()), "{what}");
        assert_eq!(steps(&log).len() as u64 + log.dropped(), 10 + MANY, "{what}");
        assert_eq!(log.records().iter().filter(|record| record.kind() != 0).count() as u64, log.allocated());
    }
}
