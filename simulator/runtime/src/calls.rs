//! What is counted and said of calls: the trace, functions that are not simulated, and bytes read back from the device.
//!
//! Owns: the note that a process leaves in the session for the end of the run, one line each:
//! `not-simulated NAME CALLS` and `read COUNT KNOWN BYTES WHERE`. Refuses: to stop the program; what cannot be written is lost.

use crate::status::Status;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Session variable of memscope (memscope-wire has the list of all).
const SESSION: &str = "MEMSCOPE_SESSION";
/// Any value: each call is printed.
const TRACE: &str = "MEMSCOPE_SIMULATOR_TRACE";
/// Places of the program that are told apart.
const MOST_PLACES: usize = 1000;

#[derive(Default)]
struct Reads {
    count: u64,
    known: u64,
    bytes: u64,
}

#[derive(Default)]
struct Note {
    process: u32,
    refused: BTreeMap<&'static str, u64>,
    reads: BTreeMap<String, Reads>,
}

static NOTE: Mutex<Note> = Mutex::new(Note { process: 0, refused: BTreeMap::new(), reads: BTreeMap::new() });

/// Prints a call and its result, if MEMSCOPE_SIMULATOR_TRACE is set.
pub fn trace(name: &str, result: i32) {
    static WANTED: OnceLock<bool> = OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var_os(TRACE).is_some()) {
        eprintln!("memscope runtime: {name} = {result}");
    }
}

/// A function that computes on the device and does nothing here: success, and what was known of device memory is stale.
pub fn computed<S: Status>(name: &'static str) -> S {
    crate::driver::launched();
    trace(name, 0);
    S::SUCCESS
}

/// A function that is not simulated: said once on stderr, counted, and an error for the program.
pub fn refused<S: Status>(name: &'static str) -> S {
    trace(name, S::NOT_SUPPORTED.number());
    S::NOT_SUPPORTED.note();
    change(|note| {
        let calls = note.refused.entry(name).or_default();
        *calls += 1;
        if *calls == 1 {
            eprintln!("memscope: {name} is not simulated; the program gets an error from it");
        }
        *calls == 1
    });
    S::NOT_SUPPORTED
}

/// Bytes that the program read back from the device; `known` if they are what it wrote there.
pub fn read_back(bytes: usize, known: bool) {
    let place = crate::python::place().unwrap_or_else(|| "outside Python".to_owned());
    change(|note| {
        let full = note.reads.len() >= MOST_PLACES && !note.reads.contains_key(&place);
        let reads = note.reads.entry(if full { "elsewhere".to_owned() } else { place }).or_default();
        reads.count += 1;
        reads.known += u64::from(known);
        reads.bytes += bytes as u64;
        reads.count == 1
    });
}

/// Changes the note; it is written when `change` says so, and when the process ends.
fn change(change: impl FnOnce(&mut Note) -> bool) {
    static AT_EXIT: AtomicBool = AtomicBool::new(false);
    let mut note = NOTE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if note.process != process {
        // A forked child begins a note of its own.
        *note = Note { process, ..Note::default() };
    }
    if change(&mut note) {
        note.write();
    }
    if !AT_EXIT.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler is a function of this library, which is never unloaded.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    let note = NOTE.lock().unwrap_or_else(PoisonError::into_inner);
    if note.process == std::process::id() {
        note.write();
    }
}

impl Note {
    fn write(&self) {
        let Some(session) = std::env::var_os(SESSION) else { return };
        let mut text = String::new();
        for (name, calls) in &self.refused {
            let _ = writeln!(text, "not-simulated {name} {calls}");
        }
        for (place, reads) in &self.reads {
            let _ = writeln!(text, "read {} {} {} {}", reads.count, reads.known, reads.bytes, place.replace('\n', " "));
        }
        let folder = std::path::PathBuf::from(session).join("runtime");
        let (path, new) = (folder.join(self.process.to_string()), folder.join(format!(".{}", self.process)));
        let _ = std::fs::create_dir_all(&folder);
        let _ = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
    }
}
