//! The interposer as programs meet it: each test runs a small C program (tests/programs/ at the root) with and without it,
//! against a driver that does nothing, and reads the log.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | `stage.rs` | building the library, the null driver and the programs; running them |
//! | `log_reader.rs` | reading a log on the wire types alone |
//! | `look_ups.rs` | the ways in which a program gets a driver function |
//! | `records.rs` | what is recorded of calls and annotations; the header |
//! | `tensors.rs` | PyTorch's allocators, by a libc10 of the same names |
//! | `pythons.rs` | the lines of a Python program, in each version of Python that there is |
//! | `processes.rs` | fork, vfork, clone, exec |
//! | `threads.rs` | many threads, signals, address reuse |
//! | `adversity.rs` | full and missing folders, limits, closed descriptors |
//! | `hazards.rs` | what programs do that harms a careless preload: jumps, profilers, namespaces, injectors, calls out of season |
//! | `confined.rs` | what programs take from themselves: root folder, user, files, system calls; why they are then not recorded |
//! | `recording.rs` | together with memscope's recorder |
//! | `unread.rs` | logs whose reader is gone, slow, or out of sight |
//! | `library.rs` | the library file itself: symbols, heap |

mod adversity;
mod confined;
mod hazards;
mod library;
mod log_reader;
mod look_ups;
mod native;
mod processes;
mod pythons;
mod ranges;
mod recording;
mod records;
mod stage;
mod tensors;
mod threads;
mod unread;
