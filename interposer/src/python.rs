//! How the shim (python/) gets into a Python program, and the functions that it calls.
//!
//! Owns: an audit hook of the interpreter, which waits until `torch` is being loaded and then runs the shim, once, in a
//! namespace of its own, and lets `process_name` look at what it hears. That needs no variable, file or start-up module of Python's, and so works with `-E`, `-I`, `-S` and
//! in every kind of environment. Refuses: programs that are not Python, and to let an error of ours into the program: an
//! exception that was pending stays as it was, and a shim that fails is a notice in the report.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};
use memscope_wire::{Category, Event, Origin, TextId};

use crate::interpreter::{Object, Python};
use crate::{callables, creation, framework, log, module, names, nvtx, process_name, thread};

/// One text of files in python/, terminated.
macro_rules! text_of_files {
    ($($file:literal)*) => { concat!($(include_str!(concat!("../python/", $file)),)* "\0") };
}

/// The shim's text: its files in the order in which they run, in one namespace.
const SHIM: &str = text_of_files!(
    "native.py" "unlocked.py" "tensors.py" "phases.py" "steps.py" "names.py" "parameters.py" "modules.py" "backward.py"
    "optimizers.py" "distributed.py" "data.py" "refusals.py" "ranks.py" "stacks.py" "wrapping.py" "install.py"
);

/// Its name in Python. The rest is for the program's warnings, whose `stacklevel` does not count frames of the import system.
const FILE_NAME: &CStr = c"<memscope> importlib._bootstrap";

impl Python {
    /// Runs the shim; false when it cannot run.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock.
    unsafe fn run_shim(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.run(SHIM, FILE_NAME, |names| callables::offer(self, names)) }
    }

    /// Runs a terminated text in a namespace of its own, into which `offer` puts functions; false when it cannot run.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock.
    pub unsafe fn run(self, text: &'static str, file: &CStr, offer: impl FnOnce(Object) -> bool) -> bool {
        /// Py_file_input.
        const FILE: c_int = 257;
        // SAFETY: the lock is held; each object is checked before its use. What is made here lives as long as the program.
        unsafe {
            let code = (self.compile)(text.as_ptr().cast(), file.as_ptr(), FILE);
            let names = (self.new_dictionary)();
            if code.is_null() || names.is_null() {
                return false;
            }
            let evaluate = self.evaluate;
            (self.set_item)(names, c"__builtins__".as_ptr(), (self.builtins)()) == 0
                && offer(names)
                && !evaluate(code, names, names).is_null()
        }
    }
}

/// Set while torch is loaded or loading.
static SEEN: AtomicBool = AtomicBool::new(false);

/// The interpreter's audit hook: called with its lock held, before each import among others.
unsafe extern "C" fn audit(event: *const c_char, arguments: Object, _: *mut c_void) -> c_int {
    // SAFETY: the interpreter gives a terminated name, and a tuple whose first item is the module's name.
    unsafe {
        if event.is_null() {
            return 0;
        }
        let event = CStr::from_ptr(event);
        if !SEEN.load(Relaxed) && event == c"import" {
            import(arguments);
        } else if process_name::is_due(event) {
            undisturbed(|python| process_name::follow(python));
        }
    }
    0
}

/// # Safety
/// The caller holds the interpreter's lock; `arguments` is the tuple of an import event.
#[cold]
unsafe fn import(arguments: Object) {
    // SAFETY: the caller's promise.
    let work = |python: Python| unsafe {
        let name = (python.tuple_item)(arguments, 0);
        let text = if name.is_null() { core::ptr::null() } else { (python.text_of)(name) };
        let inside = !text.is_null() && is_in_torch(CStr::from_ptr(text));
        // Before that, a program that begins with `import torch.nn` only says what it is going to import.
        let loading = inside && !(python.item)((python.modules)(), c"torch".as_ptr()).is_null();
        if loading && !SEEN.swap(true, Relaxed) && !python.run_shim() {
            notice(c"the shim for Python could not be loaded: modules, phases and categories of PyTorch are not known");
        }
    };
    // SAFETY: the caller's promise.
    unsafe { undisturbed(work) }
}

/// Does something with the interpreter that leaves a pending exception as it was, and none of its own.
///
/// # Safety
/// The caller holds the interpreter's lock.
unsafe fn undisturbed(work: impl FnOnce(Python)) {
    let Some(python) = Python::find() else { return };
    // SAFETY: the caller's promise.
    unsafe {
        let mut pending = [null_mut(); 3];
        let [kind, value, trace] = &mut pending;
        (python.fetch)(kind, value, trace);
        work(python);
        (python.clear)();
        let [kind, value, trace] = pending;
        (python.restore)(kind, value, trace);
    }
}

/// True for what is in torch: its own first lines import some of that.
fn is_in_torch(name: &CStr) -> bool {
    name.to_bytes().starts_with(b"torch.")
}

/// Says what could not be done.
fn notice(text: &CStr) {
    // SAFETY: terminated.
    let text = unsafe { names::identify(text.as_ptr()) };
    log::append(&Event::Notice { text });
}

/// Asks the interpreter of this process, if there is one, to be told of imports.
extern "C" fn arm() {
    if !creation::is_asked_for() || !creation::wants_shim() {
        return;
    }
    let add = module::global_symbol(c"PySys_AddAuditHook");
    if !add.is_null() {
        type Hook = unsafe extern "C" fn(*const c_char, Object, *mut c_void) -> c_int;
        // SAFETY: int PySys_AddAuditHook(Py_AuditHookFunction hook, void *userData), which may be called before the
        // interpreter is initialised.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(Hook, *mut c_void) -> c_int>(add)(audit, null_mut()) };
    }
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static ARM: extern "C" fn() = arm;

/// The calling thread's word for the module that it is in: a path's id, 0 for none. The word is the thread's own and lives as
/// long as it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_scope() -> *mut u64 {
    thread::current().scope.as_ptr()
}

/// The id of a text, which is in the log from now on.
///
/// # Safety
/// `text` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_shim_text(text: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { names::identify(text) }.0
}

/// The tensor at `address` is of this category, and `name` (the id of a text) is its name.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_tag(address: u64, category: c_int, name: u64) {
    if address != 0 {
        let category = Category::from_number(u8::try_from(category).unwrap_or_default());
        log::append(&Event::Tag { address, name: TextId(name), category, origin: Origin::Hooked });
    }
}

/// What the calling thread allocates from now on is of this category, with this name; nothing is said of it from category 0 on.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_making(category: c_int, name: u64) {
    let thread = thread::current();
    thread.making_name.set(name);
    thread.making.set(u32::from(u8::try_from(category).unwrap_or_default()));
}

/// What the shim could not do, as a sentence for the report.
///
/// # Safety
/// `text` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_shim_notice(text: *const c_char) {
    // SAFETY: the caller's promise.
    let text = unsafe { names::identify(text) };
    log::append(&Event::Notice { text });
}

/// What PyTorch was just refused on `device` was asked for at `line`.
///
/// # Safety
/// `line` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_shim_refused(device: u32, line: *const c_char) {
    // SAFETY: the caller's promise.
    let line = unsafe { names::identify(line) };
    log::append(&Event::RefusedLine { line, device });
}

/// The shim is in this process, or in a child that inherited it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_framework() {
    nvtx::leave_phases_to_the_shim();
    log::append(&Event::Framework);
}

/// What the shim wants to run after a refusal of the driver that PyTorch does not report.
static LATER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Gives the shim's function to run, once the interpreter is at it, after each refusal of pool memory from now on: by then
/// PyTorch has raised its error, which knows the line. It is called with the device's ordinal.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_ask_later(function: *mut c_void) {
    LATER.store(function, Release);
}

/// The driver has refused pool memory on `device`. The allocator's lock may be held, and Python's must not be taken: the
/// interpreter is only told that there is work, which its main thread does before its next call or turn of a loop.
pub fn refused_by_driver(device: u32) {
    let function = LATER.load(Acquire);
    let add = if function.is_null() { null_mut() } else { module::global_symbol(c"Py_AddPendingCall") };
    if !add.is_null() {
        // SAFETY: int Py_AddPendingCall(int (*func)(void *), void *arg), which needs neither the lock nor a thread of Python's;
        // the shim's function has that type.
        unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize) -> c_int>(add)(function, device as usize)
        };
    }
}

/// Torch could not be loaded: the shim is run again when it is loaded the next time.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_wait() {
    SEEN.store(false, Relaxed);
}

/// 1 when this PyTorch lacks a function that is hooked here.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_shim_lacks_hooks() -> c_int {
    framework::is_incomplete() as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_torch_is_known_by_its_name() {
        for (name, expected) in [(c"torch", false), (c"torch.nn", true), (c"torchvision.ops", false), (c"tor", false)] {
            assert_eq!(is_in_torch(name), expected, "{name:?}");
        }
    }
}
