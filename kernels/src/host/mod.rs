//! Host references, one a kernel: the same computation on the same memory, with all cores.
//!
//! Owns: what the simulated device computes. Refuses: speed that costs clarity, except in matrix products, which go to a
//! GEMM crate. Every function has the kernel's name and its safety contract ([`crate::HostReference`]); shapes and formulas
//! stand once, in the kernel's source (cu/). Work is cut by shape and never by the number of cores, so that a result does
//! not depend on the machine's load.

pub mod adafactor;
pub mod adamw;
pub mod adamw8bit;
pub mod adamw_bf16;
pub mod adamw_foreach;
pub mod attention;
pub mod batchnorm;
pub mod compress;
pub mod convolution;
pub mod dynamic_map;
pub mod elementwise;
pub mod embedding;
mod exponential;
pub mod fill;
pub mod flash_attention;
pub mod half;
pub mod half_flash_attention;
pub mod half_maps;
mod lanes;
pub mod layernorm;
pub mod loss;
pub mod loss_scale;
pub mod matmul;
mod memory;
pub mod momentum;
pub mod pooling;
pub mod relu;
pub mod round_bf16;
pub mod sgd;
