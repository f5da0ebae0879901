//! What is recorded of refused calls and of annotations, and what the header says.

use std::mem::offset_of;

use memscope_wire::LogHeader;
use memscope_wire::log::{CLOCK_MONOTONIC, CLOCK_TSC};

use crate::log_reader::only_log;
use crate::stage::{self, annotations, driver, linked_program, run_both};

#[test]
fn refusals_are_recorded_and_errno_stays() {
    let log = only_log(&run_both(&linked_program("refusals"), &driver(""), &[]));
    let expected = [
        "thread",
        "device 0: 68719476736 bytes, null driver 000\\x00",
        "in context 1, device 0",
        "cuMemAlloc_v2 10000000: 100 of 100 bytes, stream 0, device 0, device",
        "cuMemAlloc_v2 failed: 2199023255552 bytes, 1073741824 of 68719476736 free, device 0, device, result 2",
        "cuMemFree_v2 10000001, stream 0",
        "cuMemFree_v2 10000001 refused: 1",
        "cuMemFree_v2 dead0000, stream 0",
        "cuMemFree_v2 10000000, stream 0",
        "cuMemFree_v2 10000000, stream 0",
        "device 3: 68719476736 bytes, null driver 000\\x03",
        "cuMemAllocAsync 300010000200: 200 of 200 bytes, stream 300, device 3, pool",
        "cuMemHostAlloc failed: 4398046511104 bytes, 1073741824 of 68719476736 free, device -1, host, result 2",
    ];
    assert_eq!(log.story(), expected);
}

#[test]
fn what_an_old_driver_does_not_tell_is_absent() {
    let story = only_log(&run_both(&linked_program("refusals"), &driver("OLD"), &[])).story();
    let device = "device 0: 68719476736 bytes, null driver 000\\x00";
    let failure = "cuMemAlloc_v2 failed: 2199023255552 bytes, 0 of 0 free, device 0, device, result 2";
    assert!(story.iter().any(|line| line == device) && story.iter().any(|line| line == failure), "{story:#?}");
}

/// What annotations.c says.
fn expect_annotations(label: &str, compiler: &str, arguments: &[&str]) {
    let program = annotations(label, compiler, arguments);
    let alone = stage::output(&mut stage::plain(&program, &stage::folder()));
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "alone\n");
    let logs = stage::folder();
    let recorded = stage::output(&mut stage::recorded(&program, &stage::folder(), &logs));
    assert_eq!(String::from_utf8_lossy(&recorded.stdout), "under memscope\n");
    let long_name = format!("into {:?}", "n".repeat(1024));
    let expected = [
        "thread",
        "step 7",
        "phase \"forward\"",
        "into \"layer 3\"",
        "tag 7000: weights, tagged, \"layers.3.weight, a name that does not fit into one record\"",
        "tag 7000: gradients, tagged, nothing",
        "tag 7000: unknown, none, \"layer 3\"",
        "block 7000: 512 of 512 bytes, stream 20, tagged",
        "block 7000 free, tagged",
        "into nothing",
        "out",
        "into \"\u{fffd}\u{fffd} not UTF-8\"",
        "out",
        &long_name,
        "out",
        "into \"layer 3\"",
        "out",
        "out",
        "phase nothing",
    ];
    let log = only_log(&logs);
    assert_eq!(log.story(), expected);
    // Each text once: 1 + 1 + 2 + 1 + 32 parts.
    let parts = log.events().iter().filter(|event| matches!(event, memscope_wire::Event::Text { .. })).count();
    assert_eq!(parts, 37);
}

#[test]
fn annotations_from_c_are_recorded() {
    expect_annotations("c99", "cc", &["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2"]);
    expect_annotations("c17", "cc", &["-std=gnu17", "-O0"]);
}

#[test]
fn annotations_from_cxx_are_recorded() {
    if std::process::Command::new("c++").arg("--version").output().is_err() {
        use std::io::Write;
        // Past the test harness, which hides what passing tests print.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED annotations_from_cxx_are_recorded: there is no C++ compiler (c++)");
        return;
    }
    expect_annotations("cxx11", "c++", &["-std=c++11", "-x", "c++"]);
    expect_annotations("cxx20", "c++", &["-std=c++20", "-O2", "-x", "c++"]);
}

#[test]
fn the_header_says_who_writes() {
    let program = linked_program("linked");
    let logs = stage::folder();
    let mut command = stage::recorded(&program, &driver(""), &logs);
    let child = command
        .args(["an argument", ""])
        .env("PMI_RANK", "x")
        .env("SLURM_PROCID", "3")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    assert!(child.wait_with_output().unwrap().status.success());
    let log = only_log(&logs);
    let start_time = log.number(offset_of!(LogHeader, start_time));
    assert_eq!(log.name, format!("{pid}-{start_time}-0.log"));
    assert_eq!(log.pid(), pid);
    assert_eq!(log.small(offset_of!(LogHeader, parent_pid)), std::process::id());
    assert_eq!(log.small(offset_of!(LogHeader, rank)), 3);
    // Nobody has said more of the job.
    assert_eq!(log.small(offset_of!(LogHeader, world_size)), 0);
    assert_eq!(log.small(offset_of!(LogHeader, local_rank_and_one)), 0);
    let executable = program.canonicalize().unwrap();
    let executable = executable.to_str().unwrap();
    assert_eq!(log.small(offset_of!(LogHeader, executable_bytes)) as usize, executable.len());
    assert_eq!(log.header(offset_of!(LogHeader, executable), executable.len()), executable.as_bytes());
    let command = format!("{}\0an argument\0\0", program.to_str().unwrap());
    assert_eq!(log.small(offset_of!(LogHeader, command_bytes)) as usize, command.len());
    assert_eq!(log.header(offset_of!(LogHeader, command), command.len()), command.as_bytes());
    let boot_id: String =
        log.header(offset_of!(LogHeader, boot_id), 16).iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().replace('-', "");
    assert_eq!(boot_id, expected);
}

#[test]
fn the_clock_is_calibrated_twice() {
    let log = only_log(&run_both(&linked_program("linked"), &driver(""), &[]));
    let clock = log.small(offset_of!(LogHeader, clock));
    assert!([CLOCK_MONOTONIC, CLOCK_TSC].contains(&clock));
    let first = (log.number(offset_of!(LogHeader, first_ticks)), log.number(offset_of!(LogHeader, first_nanoseconds)));
    let last = (log.number(offset_of!(LogHeader, last_ticks)), log.number(offset_of!(LogHeader, last_nanoseconds)));
    assert!(last.0 > first.0 && last.1 > first.1, "{first:?} {last:?}");
    assert!(log.closed() >= last.1);
    let ticks: Vec<_> = log.records().iter().map(|record| record.ticks).collect();
    assert!(ticks.is_sorted(), "one thread's records are in the order of its clock");
    assert!(ticks[0] >= first.0 && ticks[ticks.len() - 1] <= last.0);
}

#[test]
fn the_first_rank_that_is_a_number_counts() {
    let logs = stage::folder();
    let mut command = stage::recorded(&linked_program("linked"), &driver(""), &logs);
    stage::output(command.env("RANK", "11").env("SLURM_PROCID", "3"));
    assert_eq!(only_log(&logs).small(offset_of!(LogHeader, rank)), 11);

    // Size and local rank; a size that cannot be this job's is none.
    for (sizes, local, told) in [
        (&[("WORLD_SIZE", "16"), ("SLURM_NTASKS", "2")][..], "3", (16, 4)),
        (&[("WORLD_SIZE", "x"), ("SLURM_NTASKS", "12")], "0", (12, 1)),
        (&[("SLURM_NTASKS", "11")], "", (0, 0)),
    ] {
        let logs = stage::folder();
        let mut command = stage::recorded(&linked_program("linked"), &driver(""), &logs);
        stage::output(command.env("RANK", "11").env("LOCAL_RANK", local).envs(sizes.iter().copied()));
        let log = only_log(&logs);
        let found =
            (log.small(offset_of!(LogHeader, world_size)), log.small(offset_of!(LogHeader, local_rank_and_one)));
        assert_eq!(found, told, "{sizes:?}");
    }
    let logs = run_both(&linked_program("linked"), &driver(""), &[]);
    assert_eq!(only_log(&logs).small(offset_of!(LogHeader, rank)) as i32, -1);
}
