//! The CUDA kernels of memscope's samples: source (.cu), checked-in PTX with its sha256, a parameter table, and one host
//! reference each.
//!
//! Owns: what a kernel computes, and the shape of a launch that it expects. Refuses: to launch anything (samples/ does) and
//! to know who runs the host references (simulator/ does, on the simulated device).
//!
//! The host references, and the crates that they compute with, are behind the feature `host`, which is on by default: a
//! program that only launches kernels turns it off.
//!
//! `kernels/compile` makes the PTX; `kernels/compile --check` proves that it is what the sources compile to.

pub mod geometry;
#[cfg(feature = "host")]
pub mod host;
mod table;

pub use table::{IMAGES, KERNELS};

/// A compiled file: one PTX text with one or more entries.
pub struct Image {
    /// File name without extension, e.g. `layernorm`.
    pub name: &'static str,
    /// The PTX text, without a terminating NUL.
    pub ptx: &'static str,
    /// sha256 of `ptx`, checked in beside it.
    pub sha256: [u8; 32],
}

/// Type of a kernel parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterType {
    /// A device address (8 bytes).
    Pointer,
    /// 32-bit unsigned.
    U32,
    /// 64-bit unsigned.
    U64,
    /// 32-bit float.
    F32,
}

/// One parameter of a kernel.
pub struct Parameter {
    /// Its name in the source.
    pub name: &'static str,
    /// Its type.
    pub kind: ParameterType,
}

/// One entry of an image.
pub struct Kernel {
    /// Entry name.
    pub name: &'static str,
    /// The image that holds it.
    pub image: &'static Image,
    /// Parameters in order.
    pub parameters: &'static [Parameter],
    /// The same computation on the host, on the same memory.
    #[cfg(feature = "host")]
    pub host: HostReference,
}

/// A launch configuration. A host reference sees it too: a kernel with one block a row learns the number of rows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
}

/// A host reference: computes what the kernel computes.
///
/// # Safety
/// Every pointer argument must be valid on the host for what the kernel reads and writes, and the arguments must be those
/// of [`Kernel::parameters`].
pub type HostReference = unsafe fn(&Launch, &Arguments<'_>);

/// The values of a launch's parameters, each in its own 8-byte cell (little-endian, low bytes used).
pub struct Arguments<'a> {
    cells: &'a [u64],
}

impl<'a> Arguments<'a> {
    /// Arguments over cells, one a parameter.
    pub fn new(cells: &'a [u64]) -> Self {
        Arguments { cells }
    }

    /// Parameter `index` as a pointer to `T`.
    pub fn pointer<T>(&self, index: usize) -> *mut T {
        self.cells[index] as *mut T
    }

    /// Parameter `index` as u32.
    pub fn u32(&self, index: usize) -> u32 {
        self.cells[index] as u32
    }

    /// Parameter `index` as u64.
    pub fn u64(&self, index: usize) -> u64 {
        self.cells[index]
    }

    /// Parameter `index` as f32.
    pub fn f32(&self, index: usize) -> f32 {
        f32::from_bits(self.cells[index] as u32)
    }
}

/// The kernel with this entry name in the image with this sha256.
pub fn find(sha256: &[u8; 32], entry: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == entry && &kernel.image.sha256 == sha256)
}
