//! The journal: the truth of a session on disk.
//!
//! Owns: the file `<session>/journal`: its vocabulary ([`entry`]), its bytes ([`mod@format`]), and the one writer and the one
//! reader of them; of a session that does not keep all, the chain of such files ([`Chain`]). Refuses: to interpret the records.
//!
//! The file is append-only: a header, then frames, each with checksums of its own. What was written survives the death by
//! SIGKILL of memscope and of everything else, since the kernel has it; it is not forced to the disk, so a loss of power
//! may cost the last seconds.

pub(crate) mod chain;
mod checkpoint;
pub mod entry;
pub mod format;
mod payload;
mod reader;
mod writer;

pub use chain::Chain;
pub use checkpoint::{Checkpoint, Head, Standing, VERSION as CHECKPOINT_VERSION};
pub use reader::{Reader, Tail};
pub use writer::{Writer, is_being_written};
