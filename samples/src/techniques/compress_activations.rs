//! Activations kept in 8 bits: `--compress-activations int8` (after ActNN, Chen et al. 2021, without its randomness).
//!
//! When a layer's forward is done, what it keeps is quantised in blocks of 256 elements with one fp32 scale, the block's largest
//! absolute value; the tensors are freed. Before its backward they come back as temporaries. A tensor of N elements keeps
//! N + 4·⌈N/256⌉ bytes instead of 4·N, or of 2·N where it has 16 bits (`--precision`), and each element is off by at most 1/254 of
//! its block's largest. By arithmetic.
//!
//! Statistics of norms and of flash attention stay in fp32, and so does what is kept around the layers. Forward is exact: a
//! layer reads the layer's output before, not the copy that is kept. Workspace rises by what a layer keeps.

/// How what layers keep is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Compression {
    /// To 8 bits an element
    Int8,
}
