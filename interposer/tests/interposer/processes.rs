//! Processes that come from processes: each has a log of its own, and its threads are introduced in it.

use std::mem::offset_of;

use memscope_wire::{Event, LogHeader};

use crate::log_reader::{Log, logs};
use crate::stage::{self, driver, linked_program, program, run_both};

/// Runs processes.c; the logs, parents before children, and what each process allocated.
fn run(how: &str) -> (Vec<Log>, Vec<Vec<u64>>) {
    let mut logs = logs(&run_both(&linked_program("processes"), &driver(""), &[how]));
    logs.sort_by_key(|log| log.number(offset_of!(LogHeader, first_nanoseconds)));
    for log in &logs {
        let records = log.records();
        assert!(records.iter().all(|record| record.thread == log.pid()), "a main thread's id is its process's");
        assert_eq!(log.events().iter().filter(|event| matches!(event, Event::Thread)).count(), 1);
        assert_eq!(log.events().iter().filter(|event| matches!(event, Event::Device { .. })).count(), 1);
        assert_eq!(log.functions().len() as u64, stage::rows());
        assert_eq!((log.dropped(), log.faults()), (0, 0));
    }
    let bytes_of = |log: &Log| {
        let bytes = log.events().into_iter().filter_map(|event| match event {
            Event::Alloc { bytes, .. } => Some(bytes),
            _ => None,
        });
        bytes.collect()
    };
    let allocated = logs.iter().map(bytes_of).collect();
    (logs, allocated)
}

fn parent(log: &Log) -> u32 {
    log.small(offset_of!(LogHeader, parent_pid))
}

#[test]
fn forked_processes_have_their_own_logs() {
    let (logs, allocated) = run("fork");
    assert_eq!(allocated, [vec![1000, 1001], vec![2000], vec![3000]]);
    assert_eq!(parent(&logs[1]), logs[0].pid());
    assert_eq!(parent(&logs[2]), logs[1].pid());
    assert!(logs.iter().all(|log| log.closed() != 0));
}

#[test]
fn a_bare_clone_has_its_own_log() {
    let (logs, allocated) = run("clone");
    assert_eq!(allocated, [vec![1000, 1001], vec![2000]]);
    assert_eq!(parent(&logs[1]), logs[0].pid());
    assert_eq!(logs[1].closed(), 0, "_exit is no orderly end");
}

#[test]
fn a_child_that_does_nothing_has_no_log() {
    let (_, allocated) = run("quiet-fork");
    assert_eq!(allocated, [vec![1000, 1001]]);
}

#[test]
fn children_that_execute_a_program_have_their_own_logs() {
    for how in ["vfork", "spawn"] {
        let (logs, allocated) = run(how);
        assert_eq!(allocated, [vec![1000, 1001], vec![5000]], "{how}");
        assert_ne!(logs[0].pid(), logs[1].pid());
        assert!(logs[1].name.ends_with("-0.log"));
    }
}

#[test]
fn exec_begins_a_new_log_of_the_same_process() {
    let (logs, allocated) = run("exec");
    assert_eq!(allocated, [vec![1000], vec![5000]]);
    assert_eq!(logs[0].pid(), logs[1].pid());
    assert_eq!(logs[0].closed(), 0);
    let identity =
        |log: &Log| (log.number(offset_of!(LogHeader, start_time)), log.small(offset_of!(LogHeader, exec_count)));
    assert_eq!(identity(&logs[1]), (identity(&logs[0]).0, 1));
    assert!(logs[1].name.ends_with("-1.log"));
}

#[test]
fn a_forked_process_has_its_own_log_where_the_kernel_wipes_no_pages() {
    let logs_of_run = stage::folder();
    let mut command = stage::recorded(&program("no_wipe", &[]), &driver(""), &logs_of_run);
    let output = stage::output(command.arg(linked_program("processes")).arg("fork"));
    assert!(output.status.success(), "{output:?}");
    let pids: std::collections::BTreeSet<_> = logs(&logs_of_run).iter().map(Log::pid).collect();
    assert_eq!(pids.len(), 3);
    for log in logs(&logs_of_run) {
        assert!(log.records().iter().all(|record| record.thread == log.pid()));
        assert_eq!(log.events().iter().filter(|event| matches!(event, Event::Device { .. })).count(), 1);
    }
}
