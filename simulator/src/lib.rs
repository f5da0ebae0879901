//! A CUDA device that is not there: `libcuda.so.1` and `libnvidia-ml.so.1` in one library, for runs without a GPU.
//!
//! Owns: the documented driver API and NVML over memory of the host. Device memory is address space without backing;
//! its accounting is shared by all processes of a session, and out-of-memory comes at the simulated capacity. Kernels
//! of memscope's samples run as their host references; any other is a counted no-op. Refuses: everything undocumented
//! (cuGetExportTable finds nothing), machine code, and graphs of anything but memory.
//!
//! A map, in the order in which a call goes:
//! - `driver`, `nvml`: the exported functions, by theme; one table also answers cuGetProcAddress
//!   (`proc_address`).
//! - `process`, `settings`, `state`: this process, what the environment asks, what all processes share.
//! - `device`, `context`, `stream`, `event`, `module` (with `ptx`), `launch`, `graph`, `capture`: the objects of the API.
//! - `memory`, `copy`, `side_table`: addresses, bytes, and what stands in for bytes in a memory-only run.
//! - `memory_only`: what the simulated CUDA runtime tells the driver.
//! - `registry`, `lock`, `error`, `trace`, `refusal`: handles, a lock, result codes, the trace, what is not simulated.

mod capture;
mod context;
mod copy;
mod device;
mod driver;
mod error;
mod event;
mod graph;
mod launch;
mod lock;
mod memory;
mod memory_only;
mod module;
mod nvml;
mod proc_address;
mod process;
mod ptx;
mod refusal;
mod registry;
mod settings;
mod side_table;
mod state;
mod stream;
mod trace;
