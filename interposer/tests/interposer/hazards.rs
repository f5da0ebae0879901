//! What programs do that harms a careless preload. Each runs with and without the interposer: nobody can tell the difference, and
//! the records are exact.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use memscope_wire::Event;

use crate::log_reader::{Log, logs, marks, only_log, refusals};
use crate::stage::{self, compare, driver, library, linked_program, program, run_both, variant};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The story of a log without its devices.
fn calls(log: &Log) -> Vec<String> {
    log.story().into_iter().filter(|line| !line.starts_with("device")).collect()
}

/// How often each number of bytes was granted and, over all, how many frees there were.
fn granted(log: &Log) -> (BTreeMap<u64, usize>, usize) {
    let (mut sizes, mut frees) = (BTreeMap::new(), 0);
    for event in log.events() {
        match event {
            Event::Alloc { bytes, .. } => *sizes.entry(bytes).or_default() += 1,
            Event::Free { .. } => frees += 1,
            _ => {}
        }
    }
    (sizes, frees)
}

#[test]
fn calls_after_a_jump_out_of_a_hook_are_recorded_however_deep_they_are() {
    let folder = driver("LEAVES");
    let arguments = ["-rdynamic", "-L", folder.to_str().unwrap(), "-lcuda"];
    let program = variant("jumps_deep", "-leaves", &arguments);
    let (sizes, frees) = granted(&only_log(&run_both(&program, &folder, &["driver"])));
    assert_eq!(sizes, (999..=1199).map(|bytes| (bytes, 1)).collect());
    assert_eq!(frees, 201);
}

#[test]
fn a_handler_that_jumps_out_of_a_hook_at_any_moment_leaves_a_log_that_goes_on() {
    let log = only_log(&run_both(&linked_program("jumps_deep"), &driver(""), &["signal"]));
    let (mut sizes, frees) = granted(&log);
    let interrupted = sizes.remove(&64).unwrap_or(0);
    assert_eq!(sizes, (999..=1199).map(|bytes| (bytes, 1)).collect());
    assert!(interrupted > 200 && frees > 200 + interrupted - 200 - 1, "{interrupted} {frees}");
    assert_eq!((log.dropped(), log.faults()), (0, 0));
    // At each jump one record at most was begun and not finished.
    let unfinished = log.records().iter().filter(|record| record.kind() == 0).count();
    assert!(unfinished <= 200, "{unfinished}");
}

#[test]
fn a_sampling_profiler_sees_and_is_seen_by_nobody() {
    let log = only_log(&run_both(&linked_program("profiled"), &driver(""), &[]));
    assert_eq!(granted(&log), (BTreeMap::from([(100, 100_000)]), 100_000));
    assert_eq!((log.dropped(), log.faults()), (0, 0));
}

#[test]
fn forks_in_the_middle_of_sixteen_threads_have_whole_logs_of_their_own() {
    let all = logs(&run_both(&linked_program("fork_threads"), &driver(""), &[]));
    assert_eq!(all.len(), 1 + 24);
    let mut children = Vec::new();
    for log in &all {
        assert_eq!((log.dropped(), log.faults()), (0, 0));
        assert!(log.records().iter().all(|record| record.kind() != 0), "a slot that was never committed");
        let (sizes, frees) = granted(log);
        if sizes.contains_key(&1) {
            assert_eq!((sizes, frees), (BTreeMap::from([(1, 1), (100, 16 * 2000)]), 1 + 16 * 2000));
        } else {
            assert_eq!((sizes.len(), frees), (1, 50));
            children.extend(sizes);
        }
    }
    children.sort();
    assert_eq!(children, (1000..1024).map(|bytes| (bytes, 50)).collect::<Vec<_>>());
}

#[test]
fn calls_outside_the_drivers_life_are_answered_by_the_driver() {
    let (logs, output) = compare(&linked_program("order"), &driver("LIFE"), &[], |_| {});
    assert_eq!(output.status.code(), Some(5));
    let expected = "constructor: alloc 3, free 3\nbefore cuInit: alloc 3, free 3\ncuInit: 0\nafter cuInit: alloc 0, free 0\n\
                    exit handler: alloc 0, free 0\ndriver ends: 0\ndestructor: alloc 4, free 4\n";
    assert_eq!(text(&output), expected);
    let expected = [
        "thread",
        "in context 1, device 0",
        // The program has nothing to free yet; later it is refused for what it has.
        "cuMemAlloc_v2 10000000: 3 of 3 bytes, stream 0, device 0, device",
        "cuMemFree_v2 10000000, stream 0",
        "cuMemAlloc_v2 10000200: 4 of 4 bytes, stream 0, device 0, device",
        "cuMemAlloc_v2 10000400: 5 of 5 bytes, stream 0, device 0, device",
        "cuMemFree_v2 10000400, stream 0",
        "cuMemFree_v2 10000200, stream 0",
        "cuMemFree_v2 10000200 refused: 4",
    ];
    assert_eq!(calls(&only_log(&logs)), expected);
}

#[test]
fn odd_arguments_are_the_drivers_to_judge() {
    let (logs, output) = compare(&linked_program("odd_arguments"), &driver(""), &[], |_| {});
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output), "1\n1 7\n1 7\n1\n1\n1\n1\n1\n1 0\n1 0\n1\n2\n");
    // The driver had no room before it read where the memory should be: nobody can say.
    let failure = "cuMemCreate failed: 2199023255552 bytes, 1073741824 of 68719476736 free, device -1, host, result 2";
    assert_eq!(calls(&only_log(&logs)), ["thread", failure]);
}

#[test]
fn what_host_functions_allocate_is_recorded_while_the_program_waits_in_a_hook() {
    let log = only_log(&run_both(&linked_program("callbacks"), &driver(""), &[]));
    let (sizes, frees) = granted(&log);
    let expected = (0..50).flat_map(|turn| [(1000 + turn, 2), (2000 + turn, 2)]).chain([(100, 50)]);
    assert_eq!(sizes, expected.collect());
    assert_eq!(frees, 50 + 50 * 2 * 2);
    assert_eq!((log.dropped(), log.faults()), (0, 0));
}

#[test]
fn a_driver_in_a_namespace_of_its_own_is_recorded_and_a_second_one_left_alone() {
    let log = only_log(&run_both(&program("namespaces", &[]), &driver(""), &[]));
    let expected = [
        "thread",
        "device 2: 68719476736 bytes, null driver 000\\x02",
        "in context 3, device 2",
        "cuMemAlloc_v2 200010000000: 100 of 100 bytes, stream 0, device 2, device",
        "cuMemFree_v2 200010000000, stream 0",
    ];
    assert_eq!(log.story(), expected);
    assert_eq!(log.faults(), 2, "two functions of the second driver");
    assert_eq!(log.owners(), [program("namespaces", &[]).display().to_string()]);
}

#[test]
fn a_plug_in_of_another_namespace_is_out_of_reach_and_unharmed() {
    let folder = driver("");
    let plugin = library("plugin", &["-L", folder.to_str().unwrap(), "-lcuda"]);
    let log = only_log(&run_both(&program("namespaces", &[]), &folder, &[plugin.to_str().unwrap()]));
    assert_eq!(granted(&log), (BTreeMap::from([(100, 1)]), 1), "the loader preloads nothing there");
}

fn plugin(folder: &Path) -> String {
    library("plugin", &["-L", folder.to_str().unwrap(), "-lcuda"]).to_str().unwrap().to_owned()
}

#[test]
fn a_library_bound_deeply_goes_past_the_preload_and_leaves_a_mark() {
    let folder = driver("");
    let logs_of_run = run_both(&program("plugin_host", &[]), &folder, &[&plugin(&folder), "deeply"]);
    assert_eq!((logs(&logs_of_run).len(), refusals(&logs_of_run)), (0, vec![]));
    assert_eq!(marks(&logs_of_run), ["bound.deeply", "library.loaded"]);
}

/// What the mark of a program that was started without the library leads to, after starts.c started `/bin/true` in this way.
fn started(way: &str) -> Option<String> {
    let logs_of_run = run_both(&program("starts", &[]), &driver(""), &[way]);
    let entries = std::fs::read_dir(logs_of_run).unwrap().map(|entry| entry.unwrap().path());
    let mut links = entries.filter_map(|entry| std::fs::read_link(entry).ok());
    let name = links.next().map(|name| name.to_str().unwrap().to_owned());
    assert_eq!(links.next(), None, "{way}: more than one");
    name
}

#[test]
fn a_program_that_is_started_without_the_library_leaves_its_name() {
    for way in ["emptied", "null", "own", "after a vfork", "in a handler on little stack", "among folders"] {
        assert_eq!(started(way).as_deref(), Some("/bin/true"), "{way}");
    }
}

#[test]
fn a_program_that_is_started_with_the_library_or_not_at_all_leaves_nothing() {
    for way in ["kept", "nowhere", "without a path"] {
        assert_eq!(started(way), None, "{way}");
    }
}

#[test]
fn a_library_bound_deeply_is_recorded_where_the_user_forbids_it() {
    let folder = driver("");
    let (logs, output) = compare(&program("plugin_host", &[]), &folder, &[&plugin(&folder), "deeply"], |command| {
        command.env(memscope_wire::env::DEEPBIND, "0");
    });
    assert_eq!(text(&output), "0\n");
    assert_eq!(granted(&only_log(&logs)).0, BTreeMap::from([(100, 1), (200, 1)]));
}

/// Runs `program` with `others` preloaded too, without the interposer, and with it first and last.
fn beside(program: &Path, arguments: &[&str], others: &str) -> (Output, [PathBuf; 2]) {
    let folder = driver("");
    let plain = stage::output(stage::plain(program, &folder).args(arguments).env("LD_PRELOAD", others));
    let ours = stage::interposer().to_str().unwrap();
    let logs = [format!("{ours}:{others}"), format!("{others} {ours}")].map(|preload| {
        let logs = stage::folder();
        let recorded =
            stage::output(stage::recorded(program, &folder, &logs).args(arguments).env("LD_PRELOAD", &preload));
        assert_eq!(recorded, plain, "{preload}");
        logs
    });
    (plain, logs)
}

#[test]
fn another_injector_sees_all_it_would_see_and_so_do_we() {
    for (label, arguments) in [("", &[][..]), ("-dlsym", &["-DDLSYM"])] {
        let injector = stage::library_of("injector", label, arguments);
        for (name, arguments) in [("linked", &[][..]), ("looked_up", &[]), ("runtime_like", &["2", "legacy"])] {
            let program = if name == "linked" { linked_program(name) } else { program(name, &[]) };
            let (output, folders) = beside(&program, arguments, injector.to_str().unwrap());
            assert!(output.status.success() && text(&output).contains("injector:"), "{label} {name}: {output:?}");
            let [first, last] = folders;
            let calls = |log: &Log| (granted(log).0.values().sum::<usize>(), granted(log).1);
            assert_eq!(calls(&only_log(&first)), (13, 15), "{label} {name}");
            // Where the other one answers look-ups before us, with the C library's own, it hides what is looked up. memscope is
            // always first.
            if label.is_empty() || name == "linked" {
                assert_eq!(calls(&only_log(&last)), (13, 15), "{label} {name}");
            }
        }
    }
}

#[test]
fn a_program_with_functions_of_the_drivers_names_gets_the_drivers() {
    let log = only_log(&run_both(&program("own_names", &["-rdynamic"]), &driver(""), &[]));
    assert_eq!(granted(&log), (BTreeMap::from([(100, 1)]), 1));
}

#[test]
fn another_malloc_is_no_obstacle() {
    let places =
        ["/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2"];
    let Some(jemalloc) = places.into_iter().find(|path| Path::new(path).exists()) else {
        return stage::skip("another_malloc_is_no_obstacle: there is no jemalloc (Debian: libjemalloc2)");
    };
    for name in ["linked", "callbacks"] {
        let (output, folders) = beside(&linked_program(name), &[], jemalloc);
        assert!(output.status.success(), "{output:?}");
        for log in folders.iter().map(|folder| only_log(folder)) {
            assert_eq!((log.dropped(), log.faults()), (0, 0));
            assert!(granted(&log).1 > 0);
        }
    }
}
