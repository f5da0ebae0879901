//! What a process of Python's multiprocessing is called: `SpawnProcess-1`, `ForkPoolWorker-3`, or as the program has named it.
//!
//! Owns: the moment at which that is asked (multiprocessing itself calls what was registered with it, once a child has its name;
//! processes.py), and the name until there is a log. Refuses: to make a log for it: a process that takes no memory is
//! not recorded because it has a name; and to load a module that the program has not loaded.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use memscope_wire::Event;

use crate::interpreter::{Definition, ONE_ARGUMENT, Object, Python};
use crate::{creation, log, names, state};

/// Terminated.
const TEXT: &str = concat!(include_str!("../python/processes.py"), "\0");
/// Its name in Python, as that of the shim.
const FILE_NAME: &CStr = c"<memscope> importlib._bootstrap";

/// Bytes of a name that are kept.
const LONGEST: usize = 256;

/// The name, and how much of it there is: 0 for none. A child has its parent's until it has one of its own.
static NAME: [AtomicU8; LONGEST] = [const { AtomicU8::new(0) }; LONGEST];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Set once multiprocessing has been asked to say when a child has its name: children inherit that.
static FOLLOWED: AtomicBool = AtomicBool::new(false);
/// Set once something was unpickled.
static UNPICKLED: AtomicBool = AtomicBool::new(false);

static SAY_NAME: Definition = Definition::new(c"say_name", say_name, ONE_ARGUMENT);

/// True for an event of the interpreter at which multiprocessing may have been loaded and no child has its name yet: before a
/// fork; and before the first class is looked up for unpickling, which is how a process begins that is started anew.
pub fn is_due(event: &CStr) -> bool {
    !FOLLOWED.load(Relaxed)
        && (event == c"os.fork" || (event == c"pickle.find_class" && !UNPICKLED.swap(true, Relaxed)))
}

/// Asks multiprocessing, where it is loaded, to say when a child has its name.
///
/// # Safety
/// The caller holds the interpreter's lock; no exception is pending.
pub unsafe fn follow(python: Python) {
    // SAFETY: the caller's promise; each object is checked before its use.
    unsafe {
        let modules = (python.modules)();
        let loaded = |name: &CStr| !(python.item)(modules, name.as_ptr()).is_null();
        if loaded(c"multiprocessing.util") && loaded(c"multiprocessing.process") && !FOLLOWED.swap(true, Relaxed) {
            python.run(TEXT, FILE_NAME, |names| {
                let function = (python.new_function)(&SAY_NAME, null_mut(), null_mut());
                !function.is_null() && (python.set_item)(names, SAY_NAME.name, function) == 0
            });
        }
    }
}

/// `say_name(name)`.
unsafe extern "C" fn say_name(_: Object, name: Object) -> Object {
    let Some(python) = Python::find() else { return null_mut() };
    // SAFETY: called by the interpreter with its lock held; the text lives as long as `name`. A caller who gives something else
    // than a text gets Python's own error.
    unsafe {
        let text = (python.text_of)(name);
        if text.is_null() {
            return null_mut();
        }
        keep(creation::bytes_of(text, LONGEST));
        (python.keep)(python.none);
    }
    if state::already_recording().is_some() {
        begin();
    }
    python.none
}

fn keep(text: &[u8]) {
    LENGTH.store(0, Relaxed);
    for (place, byte) in NAME.iter().zip(text) {
        place.store(*byte, Relaxed);
    }
    LENGTH.store(text.len().min(LONGEST), Release);
}

/// There is a log: the name belongs into it, if there is one.
pub fn begin() {
    let length = LENGTH.load(Acquire);
    if length > 0 {
        let mut text = [0; LONGEST];
        for (byte, place) in text.iter_mut().zip(&NAME) {
            *byte = place.load(Relaxed);
        }
        let name = names::identify_text(text.get(..length).unwrap_or(&[]));
        log::append(&Event::ProcessName { name });
    }
}
