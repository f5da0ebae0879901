//! What is counted and said of calls: the trace, functions that are not simulated, and bytes read back from the device.
//!
//! Owns: the way of these facts to memscope, which is its log of this process, by functions of memscope's interposer (found
//! with dlsym). Refuses: to stop the program, and to keep anything itself: without memscope the facts are lost.

use crate::status::Status;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Any value: each call is printed.
const TRACE: &str = "MEMSCOPE_SIMULATOR_TRACE";

/// Functions of the interposer (interposer/src/simulation.rs).
struct Log {
    not_computed: unsafe extern "C" fn(),
    missed: unsafe extern "C" fn(*const c_char),
    read: unsafe extern "C" fn(*const c_char, u64, c_int),
    range_push: unsafe extern "C" fn(*const c_char),
    range_pop: unsafe extern "C" fn(),
    range_start: unsafe extern "C" fn(*const c_char) -> u64,
    range_end: unsafe extern "C" fn(u64),
}

fn log() -> Option<&'static Log> {
    static LOG: OnceLock<Option<Log>> = OnceLock::new();
    let find = || {
        let symbol = |name: &CStr| {
            // SAFETY: a terminated name, in the global scope.
            let address: *mut c_void = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let not_computed = symbol(c"memscope_simulation_not_computed")?;
        let (missed, read) = (symbol(c"memscope_simulation_missed")?, symbol(c"memscope_simulation_read")?);
        let (push, pop) = (symbol(c"memscope_simulation_range_push")?, symbol(c"memscope_simulation_range_pop")?);
        let (start, end) = (symbol(c"memscope_simulation_range_start")?, symbol(c"memscope_simulation_range_end")?);
        // SAFETY: the interposer's functions of these names have these types.
        unsafe {
            Some(Log {
                not_computed: std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(not_computed),
                missed: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char)>(missed),
                read: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char, u64, c_int)>(read),
                range_push: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char)>(push),
                range_pop: std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(pop),
                range_start: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> u64>(start),
                range_end: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64)>(end),
            })
        }
    };
    LOG.get_or_init(find).as_ref()
}

/// A range of the program begins in this thread.
///
/// # Safety
/// `message` is null or a terminated string.
pub unsafe fn range_push(message: *const c_char) {
    if let Some(log) = log() {
        // SAFETY: the caller's promise.
        unsafe { (log.range_push)(message) };
    }
}

/// It ends.
pub fn range_pop() {
    if let Some(log) = log() {
        // SAFETY: the function takes nothing and has no preconditions.
        unsafe { (log.range_pop)() };
    }
}

/// A range begins that any thread may end: what is to be said at its end.
///
/// # Safety
/// `message` is null or a terminated string.
pub unsafe fn range_start(message: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    log().map_or(0, |log| unsafe { (log.range_start)(message) })
}

/// It ends.
pub fn range_end(range: u64) {
    if let Some(log) = log() {
        // SAFETY: the function takes any number.
        unsafe { (log.range_end)(range) };
    }
}

/// Prints a call and its result, if MEMSCOPE_SIMULATOR_TRACE is set.
pub fn trace(name: &str, result: i32) {
    static WANTED: OnceLock<bool> = OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var_os(TRACE).is_some()) {
        eprintln!("memscope runtime: {name} = {result}");
    }
}

/// This process uses these libraries, so that nothing is computed in it.
pub fn not_computed() {
    if let Some(log) = log() {
        // SAFETY: the function takes nothing and has no preconditions.
        unsafe { (log.not_computed)() };
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
    static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    trace(name, S::NOT_SUPPORTED.number());
    S::NOT_SUPPORTED.note();
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        eprintln!("memscope: {name} is not simulated; the program gets an error from it");
    }
    if let (Some(log), Ok(name)) = (log(), CString::new(name)) {
        // SAFETY: a terminated string.
        unsafe { (log.missed)(name.as_ptr()) };
    }
    S::NOT_SUPPORTED
}

/// Bytes that the program read back from the device; `known` if they are what it wrote there.
pub fn read_back(bytes: usize, known: bool) {
    let Some(log) = log() else { return };
    let line = crate::python::place().and_then(|line| CString::new(line).ok()).unwrap_or_default();
    // SAFETY: a terminated string.
    unsafe { (log.read)(line.as_ptr(), bytes as u64, c_int::from(known)) };
}
