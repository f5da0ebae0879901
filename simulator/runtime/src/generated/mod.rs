//! What `simulator/runtime/generate` makes.

#[rustfmt::skip]
mod errors;
#[rustfmt::skip]
mod stubs;

pub use errors::error_name;
