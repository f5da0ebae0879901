//! The CUDA runtime (libcudart), by theme.
//!
//! Owns: nothing but the list of themes. Streams, events, pools and addresses are the driver's own, as in a real runtime.

mod copy;
mod device;
mod entry;
mod error;
mod event;
mod graph;
mod kernel;
mod memory;
mod properties;
mod registration;
mod stream;

pub use graph::is_capturing;
