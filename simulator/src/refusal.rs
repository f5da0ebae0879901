//! What is said of a function that is not simulated, as the simulated CUDA runtime says it of its own.
//!
//! Owns: one line on stderr for each function, and a record of each call in memscope's log, by the interposer's function
//! (found with dlsym). Refuses: what a GPU may answer too (a kind of handle that a device does not have): that is an answer.

use crate::lock::Lock;
use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

/// The interposer's function (interposer/src/simulation.rs).
type Missed = unsafe extern "C" fn(*const c_char);

/// The program called `name`, which is not simulated, and gets CUDA_ERROR_NOT_SUPPORTED.
pub fn refused(name: &'static str) {
    static SAID: Lock<BTreeSet<&str>> = Lock::new(BTreeSet::new());
    static MISSED: OnceLock<Option<Missed>> = OnceLock::new();
    if SAID.lock().insert(name) {
        eprintln!("memscope: {name} is not simulated; the program gets an error from it");
    }
    let find = || {
        // SAFETY: a terminated name, in the global scope.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"memscope_simulation_missed".as_ptr()) };
        // SAFETY: the interposer's function of this name has this type.
        (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Missed>(address) })
    };
    if let (Some(missed), Ok(name)) = (MISSED.get_or_init(find), CString::new(name)) {
        // SAFETY: a terminated string.
        unsafe { missed(name.as_ptr()) };
    }
}
