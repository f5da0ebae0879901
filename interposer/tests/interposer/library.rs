//! The library file itself: what it exports, what it can reach, and that its hooks leave the heap alone.

use std::collections::BTreeSet;
use std::process::Command;

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

#[test]
fn hooks_leave_the_heap_alone() {
    // The program counts with its own malloc: it is not compared with a run without the interposer, which may allocate too.
    let folder = driver("");
    let opens = stage::variant("heap", "-opens", &[]);
    let linked = stage::variant("heap", "-linked", &["-DLINKED", "-L", folder.to_str().unwrap(), "-lcuda"]);
    for program in [opens, linked] {
        let logs = stage::folder();
        let output = stage::output(&mut stage::recorded(&program, &folder, &logs));
        let counts = String::from_utf8_lossy(&output.stdout);
        assert_eq!(counts, "0 0 0 0\n", "calls of malloc in {program:?}: first alloc, first free, later, names");
        let log = crate::log_reader::only_log(&logs);
        assert_eq!(log.dropped(), 0);
        assert!(log.head() > 150_000);
    }
}
