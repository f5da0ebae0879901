//! Host references, one a kernel.
