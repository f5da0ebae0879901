//! The library file itself: what it exports, what it can reach, and that its hooks leave the heap alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use memscope_wire::{Event, env};

use crate::stage::{self, driver};

/// Names in the dynamic symbol table, without versions; `option` is one of nm's.
fn symbols(option: &str) -> BTreeSet<String> {
    let output =
        stage::output(Command::new("nm").args(["--dynamic", option, "--format=just-symbols"]).arg(stage::interposer()));
    assert!(output.status.success(), "{output:?}");
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().map(|name| name.split('@').next().unwrap().to_owned()).collect()
}

fn list(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn it_reaches_only_what_is_listed() {
    assert_eq!(symbols("--undefined-only"), list(include_str!("imports.txt")));
}

#[test]
fn it_exports_only_what_is_listed() {
    assert_eq!(symbols("--defined-only"), list(include_str!("exports.txt")));
}

#[test]
fn it_loads_where_glibc_is_2_17() {
    let output = stage::output(Command::new("objdump").arg("-T").arg(stage::interposer()));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let versions = text.split("(GLIBC_").skip(1).filter_map(|rest| rest.split(')').next());
    let numbers = |version: &str| version.split('.').map(|number| number.parse().unwrap()).collect::<Vec<u32>>();
    let newest = versions.map(numbers).max().expect("it needs glibc");
    assert!(newest <= vec![2, 17], "{newest:?}");
}

/// Who stands in the way and calls Rust from there can be unwound through: by a debugger, a profiler's signal, native stacks.
#[test]
fn what_calls_from_the_callers_place_can_be_unwound_through() {
    use gimli::{CfaRule, UnwindSection};
    use object::{Object, ObjectSection, ObjectSymbol};
    let bytes = std::fs::read(stage::interposer()).expect("the library");
    let library = object::File::parse(&*bytes).expect("ELF");
    let section = library.section_by_name(".eh_frame").expect("unwind rules");
    let rules = gimli::EhFrame::new(section.data().expect("its bytes"), gimli::NativeEndian);
    let text = library.section_by_name(".text").expect("code").address();
    let bases = gimli::BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
    // What lies between the caller's frame and the stack pointer in the call: the return address and what is pushed.
    for (name, bytes) in [
        ("prctl", 48),
        ("execve", 48),
        ("execv", 48),
        ("dlopen", 16),
        ("dlsym", 32),
        ("_ZN3c109alloc_cpuEm", 16),
        ("_ZN3c108free_cpuEPv", 48),
        ("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", 48),
        ("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", 48),
    ] {
        let mut symbols = library.dynamic_symbols();
        let address = symbols.find(|symbol| symbol.name() == Ok(name)).expect("it is exported").address();
        let fde = rules.fde_for_address(&bases, address, gimli::EhFrame::cie_from_offset);
        let fde = fde.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut context = gimli::UnwindContext::new();
        let mut rows = fde.rows(&rules, &bases, &mut context).expect("rows");
        let mut offsets = BTreeSet::new();
        while let Some(row) = rows.next_row().expect("a row") {
            if let CfaRule::RegisterAndOffset { offset, .. } = row.cfa() {
                offsets.insert(*offset);
            }
        }
        assert_eq!(offsets, BTreeSet::from([8, bytes]), "{name}");
    }
}

/// Runs tests/programs/heap.c, which counts with its own malloc (it is not compared with a run without the interposer, which
/// may allocate too), and demands that nothing was counted. What its log tells.
fn leave_the_heap_alone(program: &Path, variables: &[(&str, &str)]) -> Vec<Event> {
    let logs = stage::folder();
    let mut command = stage::recorded(program, &driver(""), &logs);
    let output = stage::output(command.env(env::NVTX_INJECTION, stage::interposer()).envs(variables.iter().copied()));
    let counts = String::from_utf8_lossy(&output.stdout);
    assert_eq!(counts, "0 0 0 0 0\n", "calls of malloc in {program:?}: first alloc, first free, later, names, ranges");
    let log = crate::log_reader::only_log(&logs);
    assert_eq!(log.dropped(), 0);
    assert!(log.head() > 150_000);
    let events: Vec<Event> = log.records().iter().filter_map(Event::decode).collect();
    let pushed = events.iter().filter(|event| matches!(event, Event::ScopePush { .. })).count();
    assert_eq!(pushed, 2001, "1,000 of the program's own, and NVTX's");
    events
}

/// The program, which opens the driver itself or is linked with it.
fn heap(is_linked: bool) -> PathBuf {
    if !is_linked {
        return stage::variant("heap", "-opens", &[]);
    }
    stage::variant("heap", "-linked", &["-DLINKED", "-L", driver("").to_str().unwrap(), "-lcuda"])
}

#[test]
fn hooks_leave_the_heap_alone() {
    for is_linked in [false, true] {
        leave_the_heap_alone(&heap(is_linked), &[]);
    }
}

#[test]
fn native_stacks_leave_the_heap_alone() {
    let events = leave_the_heap_alone(&heap(true), &[(env::STACKS, "native")]);
    assert!(events.iter().any(|event| matches!(event, Event::StackAddress { .. })), "stacks were told");
}

#[test]
fn telling_whose_code_calls_leaves_the_heap_alone() {
    // The program under the name of a library that keeps memory for itself.
    let program = stage::folder().join("libnccl.so.2");
    std::fs::copy(heap(true), &program).unwrap();
    let events = leave_the_heap_alone(&program, &[]);
    assert!(events.iter().any(|event| matches!(event, Event::Owner { .. })), "the owner was told");
}

/// The system calls that the library makes itself: none waits, prints or signals.
#[test]
fn it_makes_only_the_system_calls_that_are_listed() {
    let mut calls = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(path).unwrap();
            let end = |rest: &str| rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            calls.extend(source.split("SYS_").skip(1).map(|rest| rest[..end(rest)].to_owned()));
        }
    }
    assert_eq!(calls, list(include_str!("system_calls.txt")));
}
