//! The trace on stderr, when MEMSCOPE_SIMULATOR_TRACE is set.
//!
//! Owns: whether to print. Nothing is printed without being asked, save that the session cannot work
//! ([`crate::process`]) and what is not simulated ([`crate::refusal`]).

use std::sync::OnceLock;

fn wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var_os(memscope_wire::env::SIMULATOR_TRACE).is_some())
}

/// Prints a call of an exported function and its result.
pub fn call(name: &str, result: i32) {
    if wanted() {
        eprintln!("memscope simulator: {name} = {result}");
    }
}

/// Prints what `text` says.
pub fn note(text: impl FnOnce() -> String) {
    if wanted() {
        eprintln!("memscope simulator: {}", text());
    }
}
