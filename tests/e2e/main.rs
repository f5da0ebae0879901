//! End-to-end tests: the `memscope` binary as a user runs it. One test binary; this is its index.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | `house.rs` | the rooms: which crate may depend on which |
//! | `run.rs` | `memscope run`: status, descriptors, output files, usage, bad input before the start |
//! | `signals.rs` | signals and job control, with and without memscope |
//! | `anchors.rs` | byte-exact figures of the sample against arithmetic by hand |
//! | `activations.rs` | bytes of the flags of activations and shared weights, against arithmetic and PyTorch's figures |
//! | `claims.rs` | what articles claim, at the sizes that they speak of |
//! | `optimizers.rs` | bytes of the optimizers' and the gradients' flags of the sample, against arithmetic by hand |
//! | `lookups.rs` | C programs that reach the driver in each of the three ways |
//! | `ledger.rs` | bytes that only the simulator knows, recovered by the ledger |
//! | `harmless.rs` | programs without CUDA as they are without memscope; hostile places |
//! | `reasons.rs` | why nothing was captured: each reason by what makes it true |
//! | `keep.rs` | `run --keep`: what is kept, what is summed, and that both are said |
//! | `loaders.rs` | programs of other loaders (musl, 32 bits, an old glibc) and of sanitizers |
//! | `kill.rs` | SIGKILL at random moments, then `recover` |
//! | `elsewhere.rs` | memory that counts elsewhere: captured graphs, imports of processes, pools, handles and interfaces, multicast |
//! | `programs.rs` | several processes and devices; an allocator that declares its blocks |
//! | `names.rs` | what processes are called, by multiprocessing and by themselves |
//! | `launchers.rs` | mpirun around memscope and inside it; several profiles as one job |
//! | `native.rs` | stacks of machine code: functions and lines of C++ and Rust |
//! | `caching.rs` | a caching allocator: its own count against the ledger |
//! | `alerts.rs` | `run --alert`: a device that fills is told at once, and in the report |
//! | `out_of_memory.rs` | programs without a framework that run out of memory: told at once |
//! | `owners.rs` | memory that libraries take for themselves: named by the library |
//! | `turns.rs` | programs one after another whose steps have the same numbers, and ranks that lag behind |
//! | `ranks.rs` | several ranks of the sample: named, each with its part, none left hanging |
//! | `resnet.rs` | bytes of the techniques on ResNet-50, against arithmetic by hand and what PyTorch takes |
//! | `config.rs` | the configuration file, and what wins over it |
//! | `tui_program.rs` | the program's terminal under `run --tui`, and its transcript |
//! | `tui_keys.rs` | every key of the dashboard's table does what the help says |
//! | `tui_leaving.rs` | ways out of the dashboard: status, signals, the terminal as it was |
//! | `reports.rs` | `report`, `export`, `devices`, pages; broken profiles |
//! | `doctor.rs` | `doctor`: what is said of the machine and of a command; why a program cannot be started |
//! | `diff.rs` | `memscope diff`: figures of the reports, sums, the schema, refusals |
//! | `gui.rs` | `memscope gui`: where the window's program is looked for, and what is said without it |
//! | `sessions.rs` | `memscope sessions`: listed, cleaned, asked before |
//! | `techniques.rs` | `memscope techniques`: table, JSON, page, refusals, an interrupt |
//! | `top.rs` | `memscope top`: printed, as JSON, on a pseudo-terminal; signals; ledgers |
//!
//! `memscope.rs` runs the binary in a folder of its own, `screen.rs` in a terminal of its own.
//!
//! C programs are in `tests/programs/`. Unit tests stand beside the code; tests of one room in that room's `tests/`.

mod activations;
mod alerts;
mod anchors;
mod caching;
mod claims;
mod config;
mod diff;
mod doctor;
mod elsewhere;
mod gui;
mod harmless;
mod house;
mod keep;
mod kill;
mod launchers;
mod ledger;
mod loaders;
mod lookups;
mod memscope;
mod names;
mod native;
mod optimizers;
mod out_of_memory;
mod owners;
mod programs;
mod ranks;
mod reasons;
mod reports;
mod resnet;
mod run;
mod screen;
mod sessions;
mod signals;
mod techniques;
mod top;
mod tui_keys;
mod tui_leaving;
mod tui_program;
mod turns;
