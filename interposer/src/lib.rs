//! memscope's interposer: the library that is preloaded into the profiled program.
//!
//! Owns: the hooks of the CUDA driver's functions and of PyTorch's allocators, the shim for Python programs, the C API of
//! include/memscope.h, and the writer of this process's log.
//! Refuses: to change anything that the program sees. Every call reaches the real function with its arguments and its result
//! comes back; what goes wrong here is counted in the log's header, never shown and never fatal.
//!
//! In the order in which a call travels:
//!
//! | file | what it owns |
//! | --- | --- |
//! | `table.rs` | the one table of hooked functions, and the real function behind each row |
//! | `dlsym.rs` | look-up by `dlsym`: the exported, naked `dlsym` |
//! | `dlopen.rs` | the exported, naked `dlopen`: RTLD_DEEPBIND |
//! | `proc_address.rs` | look-up by `cuGetProcAddress` |
//! | `linker.rs` | the dynamic linker's own functions, of whatever version |
//! | `module.rs` | who owns an address; libcuda's handle, pinned |
//! | `hooks.rs` | the bodies of the hooks: what is recorded before and after the real call |
//! | `driver.rs` | what the hooks ask the driver themselves: device, sizes, identity |
//! | `owner.rs` | which library a call of the driver comes from |
//! | `framework.rs` | the hooks of PyTorch's allocators |
//! | `python.rs` | how the shim (python/) gets into a Python program, and what it calls |
//! | `callables.rs` | the shim's functions for what is done in every call of a module and for every gradient |
//! | `interpreter.rs` | the functions of a Python interpreter that are called |
//! | `scope.rs` | the module that a thread is in |
//! | `stack/` | where in the program a thread is, when that is wanted: lines of Python, or machine code (`stack/native/`) |
//! | `api.rs` | the C API |
//! | `nvtx/` | ranges of NVTX |
//! | `simulation.rs` | what the simulated CUDA libraries say of a run |
//! | `names.rs` | names travel once, then as a hash |
//! | `log.rs` | claims a slot, writes it, commits it; grows the file |
//! | `state.rs` | the page that a forked child does not inherit, and how a log is opened in it |
//! | `confinement.rs` | the exported, naked `prctl`: programs that filter their system calls |
//! | `beginning.rs` | when the program began |
//! | `creation.rs` | the file: its name, its mapping, its header |
//! | `exec.rs` | the exported, naked `execve` and `execv`: programs that are started without this library |
//! | `marks.rs` | that the library was loaded, and that it is or may be passed by: what is left where there is no log |
//! | `thread.rs` | the thread's own words: its id, and whether it is inside a hook |
//! | `clock.rs` | ticks, and their calibration |
//! | `system.rs` | system calls, made directly |
//!
//! Nothing reachable from a hook allocates on the heap, takes a lock, prints, panics or unwinds. As it is shipped
//! (`--profile preload`) the library is `no_std` and aborts on panic, and a test compares its imported symbols with a list,
//! in which `abort` and `malloc` do not occur: code that could panic does not pass it.

#![cfg_attr(all(panic = "abort", not(test)), no_std)]
// A unit test must not export a dlsym, and then nothing calls it.
#![cfg_attr(test, allow(dead_code))]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
compile_error!(
    "the interposer is written for x86-64 Linux with glibc: dlsym.rs, dlopen.rs, thread.rs and system.rs need a port"
);

mod api;
mod before;
mod beginning;
mod callables;
mod clock;
mod confinement;
#[cfg(test)]
mod coverage;
mod creation;
mod dlopen;
mod dlsym;
mod driver;
mod exec;
mod framework;
mod hooks;
mod interpreter;
mod linker;
mod log;
mod marks;
mod module;
mod names;
mod nvtx;
mod owner;
mod proc_address;
mod process_name;
mod python;
mod scope;
mod simulation;
mod stack;
mod state;
mod system;
mod table;
mod thread;

// Without std nobody else asks for libc.
#[link(name = "c")]
unsafe extern "C" {}

/// Never reached: the test of the imported symbols fails when `abort` is among them.
#[cfg(all(panic = "abort", not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: abort takes nothing and does not return.
    unsafe { libc::abort() }
}
