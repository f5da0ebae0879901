//! The three ways in which a C program finds a driver function: linked, dlsym, cuGetProcAddress.

use crate::session::Session;
use std::path::Path;
use std::process::Command;

/// Compiles program.c with `arguments` and runs it on the simulator; its output.
fn run(way: &str, link_driver: bool) -> String {
    let session = Session::new("8589934592*2");
    let program = session.folder().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator/program.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-O1", way, "-o"]).arg(&program).arg(source);
    if link_driver {
        compiler.arg("-L").arg(session.folder()).arg("-lcuda");
    }
    let compiled = compiler.arg("-ldl").output().expect("these tests need a C compiler named cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let done = session.command(program).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{way}: {}\n{text}{}", done.status, String::from_utf8_lossy(&done.stderr));
    text
}

const EXPECTED: &str = "\
devices 2
name Simulated GPU
used 4096
read back 1 2 3 4
used 0
double free 1 CUDA_ERROR_INVALID_VALUE
";

#[test]
fn linked() {
    assert_eq!(run("-DLINKED", true), EXPECTED);
}

#[test]
fn by_dlsym() {
    assert_eq!(run("-DBY_DLSYM", false), EXPECTED);
}

#[test]
fn by_get_proc_address() {
    let extra = "unknown 0 null 1\ntoo new 0 null 2\nper thread differs 1\n";
    assert_eq!(run("-DBY_GET_PROC_ADDRESS", false), format!("{extra}{EXPECTED}"));
}
