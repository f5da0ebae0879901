//! The simulator as programs meet it: loaded as a library, through public bindings, from several processes.
//!
//! One binary. A library path counts only at the start of a process, so a test of [`session::on_simulator`] runs its body
//! in a child: this binary again, with that test alone, on a fresh session. What belongs where:
//! - [`driver`]: cudarc on the simulator: memory, copies, modules, launches, events, out-of-memory, errors.
//! - [`interfaces`]: what other bindings and runtimes use: `extra` parameters, libraries, pointer attributes, threads.
//! - [`virtual_memory`]: pools, reserved addresses and mappings.
//! - [`nvml`]: nvml-wrapper reads back exact numbers; both libraries in one process, in both orders.
//! - [`processes`]: accounting between processes: races, SIGKILL, fork, visible devices.
//! - [`c_programs`]: a C program that links with -lcuda, one with dlsym, one with cuGetProcAddress.

mod c_programs;
mod driver;
mod interfaces;
mod nvml;
mod processes;
mod session;
mod virtual_memory;
