//! Stacks of machine code: what is in the log is what glibc's backtrace() told the program at the same places.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use memscope_wire::{Event, env, module};

use crate::log_reader::{Log, logs, only_log};
use crate::stage::{self, driver};

/// How the programs are built: with and without a chain of frame registers, and without tables for exceptions.
const BUILDS: [(&str, &[&str]); 3] = [
    ("-frames", &["-O0", "-fno-omit-frame-pointer"]),
    ("-tables", &["-O2", "-fomit-frame-pointer"]),
    ("-small", &["-Os", "-fomit-frame-pointer", "-fno-pie", "-no-pie"]),
];

fn chains((label, arguments): (&str, &[&str])) -> PathBuf {
    let folder = driver("");
    let linked = ["-L", folder.to_str().unwrap(), "-lcuda", "-pthread"];
    stage::variant("chains", label, &[arguments, &linked].concat())
}

fn record(program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Output, Log) {
    let (output, logs) = record_all(program, arguments, variables);
    (output, only_log(&logs))
}

/// The program's output, and the folder with its logs.
fn record_all(program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Output, PathBuf) {
    let logs = stage::folder();
    let plain = stage::output(stage::plain(program, &driver("")).args(arguments));
    assert!(plain.status.success(), "{plain:?}");
    let mut command = stage::recorded(program, &driver(""), &logs);
    command.args(arguments).env(env::STACKS, "native").envs(variables.iter().copied());
    let output = stage::output(&mut command);
    assert!(output.status.success(), "{output:?}");
    (output, logs)
}

/// An allocation: its bytes, its frames from the innermost outwards (`file+offset`, or a remark), whether that is all.
#[derive(Debug)]
struct Told {
    bytes: u64,
    frames: Vec<String>,
    whole: bool,
}

fn told(log: &Log) -> Vec<Told> {
    let texts = log.texts();
    let text = |id: u64| String::from_utf8(texts[&id].clone()).unwrap();
    let mut nodes: HashMap<u64, (u64, String)> = HashMap::new();
    let mut threads: HashMap<u32, (u64, bool)> = HashMap::new();
    let mut all = Vec::new();
    for record in log.records() {
        match Event::decode(&record).unwrap() {
            Event::StackNode { node, parent, file, function, .. } => {
                assert!(file.is_none(), "only remarks have no address");
                nodes.insert(node, (parent, text(function.0)));
            }
            Event::StackAddress { node, parent, module: name, offset } => {
                let name = text(name.0);
                let path = module::path(&name);
                assert!(name.len() > path.len(), "{name} has no identity");
                let file = path.rsplit('/').next().unwrap();
                nodes.insert(node, (parent, format!("{file}+{offset:x}")));
            }
            Event::Stack { node, whole } => {
                threads.insert(record.thread, (node, whole));
            }
            Event::Alloc { requested, .. } => {
                let (mut node, whole) = threads.get(&record.thread).copied().unwrap_or((0, true));
                let mut frames = Vec::new();
                while node != 0 {
                    let (parent, frame) = &nodes[&node];
                    frames.push(frame.clone());
                    node = *parent;
                }
                all.push(Told { bytes: requested, frames, whole });
            }
            _ => {}
        }
    }
    all
}

/// What the program says of each allocation: its bytes, and the frames from the one outwards that called the allocating function.
fn expected(output: &Output) -> Vec<(u64, Vec<String>)> {
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ');
        (words.next().unwrap().parse().unwrap(), words.map(str::to_owned).collect())
    };
    lines.lines().map(line).collect()
}

fn address(frame: &str) -> (&str, u64) {
    let (file, offset) = frame.split_once('+').unwrap_or_else(|| panic!("{frame} is a remark"));
    (file, u64::from_str_radix(offset, 16).unwrap())
}

/// Both say the same. Of the function that allocates only the log tells; the place of its call differs from that of the call that
/// asked for the truth, in the same function. `interrupted`: how many frames were interrupted rather than in a call.
fn compare(told: &Told, (bytes, frames): &(u64, Vec<String>), mut interrupted: usize) {
    assert_eq!(told.bytes, *bytes);
    assert!(told.whole, "{told:?}");
    assert_eq!(told.frames.len(), frames.len() + 1, "{told:#?}\n{frames:#?}");
    let (mine, truth) = (address(&told.frames[1]), address(&frames[0]));
    assert!(mine.0 == truth.0 && truth.1.abs_diff(mine.1) < 64, "{mine:?} {truth:?}");
    for (mine, truth) in told.frames[2..].iter().zip(&frames[1..]) {
        if mine != truth && interrupted > 0 {
            let (mine, truth) = (address(mine), address(truth));
            assert_eq!(mine, (truth.0, truth.1 + 1));
            interrupted -= 1;
            continue;
        }
        assert_eq!(mine, truth, "{told:#?}\n{frames:#?}");
    }
}

#[test]
fn every_chain_of_callers_is_the_one_that_the_program_sees() {
    for build in BUILDS {
        for (case, interrupted, allocations) in [
            ("chain", 0, 4),
            ("threads", 0, 3),
            ("signal", 1, 1),
            ("signal-stack", 1, 2),
            ("longjmp", 0, 4),
            ("coroutine", 0, 2),
        ] {
            let (output, log) = record(&chains(build), &[case], &[]);
            let (told, expected) = (told(&log), expected(&output));
            assert_eq!((told.len(), expected.len()), (allocations, allocations), "{case} {build:?}");
            told.iter().zip(&expected).for_each(|(told, expected)| compare(told, expected, interrupted));
            assert_eq!(log.faults(), 0);
        }
    }
}

#[test]
fn a_deep_recursion_is_told_by_its_innermost_frames() {
    for build in BUILDS {
        let (output, log) = record(&chains(build), &["recursion", "10000"], &[]);
        let (told, expected) = (told(&log), expected(&output));
        let (deep, truth) = (&told[0], &expected[0]);
        assert_eq!((deep.bytes, deep.whole, deep.frames.len()), (truth.0, true, 129));
        assert_eq!(deep.frames[2..128], truth.1[1..127]);
        assert_eq!(deep.frames[128], "<deeper>");
        compare(&told[1], &expected[1], 0);
    }
}

#[test]
fn a_frame_register_that_holds_anything_harms_nothing() {
    for build in BUILDS {
        let (_, log) = record(&chains(build), &["broken"], &[]);
        let told = told(&log);
        assert_eq!(told.len(), 11);
        for told in &told {
            let file = address(&told.frames[0]).0;
            assert!(file.starts_with("chains") && address(&told.frames[1]).0 == file, "{told:?}");
        }
        // The same two places each time, whatever the register holds.
        assert!(told.iter().all(|other| other.frames[..2] == told[0].frames[..2]), "{told:#?}");
    }
}

#[test]
fn a_library_that_takes_the_place_of_another_is_not_taken_for_it() {
    let one = stage::library_of("chain_library", "-one", &["-DNAME=first"]);
    let other = stage::library_of("chain_library", "-other", &["-DNAME=second", "-DPADDING=400"]);
    for build in BUILDS {
        let arguments = ["reload", one.to_str().unwrap(), other.to_str().unwrap()];
        let (output, log) = record(&chains(build), &arguments, &[]);
        let (told, expected) = (told(&log), expected(&output));
        assert_eq!((told.len(), expected.len()), (6, 6));
        told.iter().zip(&expected).for_each(|(told, expected)| compare(told, expected, 0));
        // The third frame is the library's.
        let files: Vec<_> = told.iter().map(|told| address(&told.frames[2]).0).collect();
        let names = [&one, &other].map(|path| path.file_name().unwrap().to_str().unwrap());
        assert_eq!(files, [names, names, names].concat());
    }
}

#[test]
fn a_forked_child_tells_its_own_log() {
    let (output, folder) = record_all(&chains(BUILDS[1]), &["fork"], &[]);
    let mut logs = logs(&folder);
    logs.sort_by_key(|log| told(log).len());
    let expected = expected(&output);
    let [child, parent] = logs.as_slice() else { panic!("two processes have {} logs", logs.len()) };
    let (child, parent) = (told(child), told(parent));
    assert_eq!((child.len(), parent.len(), expected.len()), (1, 2, 3));
    compare(&parent[0], &expected[0], 0);
    // Both made the second allocation at the same place.
    compare(&parent[1], &expected[1], 0);
    compare(&child[0], &expected[2], 0);
}

#[test]
fn what_has_no_room_is_told_at_the_outermost_frames() {
    let (output, log) = record(&chains(BUILDS[1]), &["chain"], &[(env::STACK_NODES, "4")]);
    let (told, expected) = (told(&log), expected(&output));
    for (told, (bytes, frames)) in told.iter().zip(&expected) {
        assert_eq!(told.bytes, *bytes);
        assert!(!told.whole && told.frames.len() <= 4);
        assert!(frames.ends_with(&told.frames), "{told:?} {frames:?}");
    }
    assert_eq!(log.dropped(), 0);
}

#[test]
fn nothing_is_told_unless_it_is_asked_for() {
    let logs = stage::folder();
    let program = chains(BUILDS[1]);
    let output = stage::output(stage::recorded(&program, &driver(""), &logs).arg("chain"));
    assert!(output.status.success());
    let told = told(&only_log(&logs));
    assert!(told.len() == 4 && told.iter().all(|told| told.frames.is_empty()), "{told:?}");
}

#[test]
fn a_program_that_forbids_system_calls_lives_and_is_told_as_far_as_is_known() {
    for build in BUILDS {
        let program = chains(build);
        if stage::output(stage::plain(&program, &driver("")).arg("filter")).status.code() == Some(99) {
            stage::skip("a program that filters its system calls");
            return;
        }
        let (output, log) = record(&program, &["filter"], &[]);
        let (told, expected) = (told(&log), expected(&output));
        assert_eq!((told.len(), expected.len()), (3, 3));
        compare(&told[0], &expected[0], 0);
        // The places that were met before are known.
        for (told, (bytes, _)) in told.iter().zip(&expected) {
            assert_eq!(told.bytes, *bytes);
            assert!(told.frames.len() > 2, "{told:?}");
        }
    }
}
