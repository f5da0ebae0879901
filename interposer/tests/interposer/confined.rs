//! Programs that take something from themselves: the folder of the logs, files, system calls. They run as they would; what
//! is then not recorded comes with its reason, where a process can leave one.

use memscope_wire::Event;
use memscope_wire::log::{CHUNK_SLOTS, Refusal};

use crate::log_reader::{Log, logs, marks, only_log, refusals};
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
    assert_eq!(
        (logs(&folder).len(), refusals(&folder), marks(&folder)),
        (0, vec![], vec!["library.loaded".to_owned()])
    );
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
    assert_eq!(
        (logs(&folder).len(), refusals(&folder), marks(&folder)),
        (0, vec![], vec!["library.loaded".to_owned()])
    );
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

/// Runs silent.c both ways, with native stacks too; the folder of its logs for each.
fn silent(arguments: [&str; 3]) -> Vec<std::path::PathBuf> {
    let folder = driver("");
    let program = program("silent", &["-Wl,-z,now", "-L", folder.to_str().unwrap(), "-lcuda"]);
    let both = [None, Some("native")].map(|stacks| {
        let (logs, output) = compare(&program, &folder, &arguments, |command| {
            stacks.map(|stacks| command.env(memscope_wire::env::STACKS, stacks));
        });
        (output.status.code() != Some(99)).then(|| {
            assert_eq!(
                (output.status.code(), output.stdout.as_slice()),
                (Some(3), &b"unharmed\n"[..]),
                "{arguments:?}"
            );
            logs
        })
    });
    if both.contains(&None) {
        stage::skip(&format!("a program that takes calls away from itself: {arguments:?} is not allowed here"));
    }
    both.into_iter().flatten().collect()
}

#[test]
fn a_filter_that_nobody_saw_meets_no_call_of_ours() {
    let folder = driver("");
    let linked = ["-Wl,--no-as-needed", "-L", folder.to_str().unwrap(), "-lcuda"];
    for program in [program("unseen", &[]), variant("unseen", "-linked", &linked)] {
        for arguments in [&["end"][..], &["read", "/bin/echo", "unharmed"]] {
            let (logs, output) = compare(&program, &folder, arguments, |_| {});
            if output.status.code() == Some(99) {
                return stage::skip("a filter by a raw system call: it is not allowed here");
            }
            assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"unharmed\n"[..], &b""[..]));
            assert_eq!(output.status.code(), Some(if arguments.len() == 1 { 3 } else { 0 }));
            assert_eq!((refusals(&logs), marks(&logs)), (vec![], vec!["library.loaded".to_owned()]));
        }
    }
}

/// Sizes of all allocations of a log, and how many frees it has.
fn calls(log: &Log) -> (Vec<u64>, usize) {
    let sizes = log.events().into_iter().filter_map(|event| match event {
        Event::Alloc { bytes, .. } => Some(bytes),
        _ => None,
    });
    (sizes.collect(), log.events().iter().filter(|event| matches!(event, Event::Free { .. })).count())
}

#[test]
fn a_program_that_may_only_write_and_end_is_recorded_to_its_last_call() {
    for what in ["strict", "filter", "tsc"] {
        for folder in silent([what, "", "late"]) {
            let log = only_log(&folder);
            assert_eq!(calls(&log), ([vec![100; 10], vec![200; 500]].concat(), 510), "{what}");
            assert_eq!((log.dropped(), log.faults()), (0, 0), "{what}");
            let times: Vec<u64> = log.records().iter().map(|record| record.ticks).collect();
            assert!(times.is_sorted(), "{what}: one thread, so that time does not go back");
        }
        // A driver is linked, so the log is opened before.
        for folder in silent([what, "", "first"]) {
            assert_eq!(calls(&only_log(&folder)), (vec![200; 500], 500), "{what}");
        }
    }
}

#[test]
fn a_program_under_a_filter_of_others_lives_without_any_call_that_a_log_needs() {
    let calls_of_the_library: [(libc::c_long, &[Refusal]); 22] = [
        (libc::SYS_openat, &[]),
        (libc::SYS_close, &[]),
        (libc::SYS_read, &[]),
        (libc::SYS_pread64, &[]),
        // Not even the page on which it would be noted that there is no log.
        (libc::SYS_mmap, &[]),
        (libc::SYS_munmap, &[]),
        (libc::SYS_madvise, &[]),
        (libc::SYS_fallocate, &[Refusal::Denied]),
        (libc::SYS_fcntl, &[]),
        (libc::SYS_fchmod, &[]),
        (libc::SYS_fstat, &[]),
        (libc::SYS_stat, &[]),
        (libc::SYS_readlink, &[]),
        (libc::SYS_prlimit64, &[]),
        (libc::SYS_rt_sigprocmask, &[]),
        (libc::SYS_gettid, &[]),
        (libc::SYS_getppid, &[]),
        (libc::SYS_sched_yield, &[]),
        (libc::SYS_unlink, &[]),
        (libc::SYS_prctl, &[]),
        (libc::SYS_process_vm_readv, &[]),
        (libc::SYS_clock_gettime, &[]),
    ];
    for (number, reasons) in calls_of_the_library {
        for folder in silent(["deny", &number.to_string(), "first"]) {
            assert_eq!(refusals(&folder), reasons, "{number}");
            let without_a_log = [libc::SYS_openat, libc::SYS_mmap, libc::SYS_fallocate].contains(&number);
            let found: Vec<_> = logs(&folder).iter().map(calls).collect();
            let expected = if without_a_log { vec![] } else { vec![(vec![200; 500], 500)] };
            assert_eq!(found, expected, "{number}");
        }
        for folder in silent(["deny", &number.to_string(), "late"]) {
            assert_eq!(calls(&only_log(&folder)), ([vec![100; 10], vec![200; 500]].concat(), 510), "{number}");
        }
    }
}
