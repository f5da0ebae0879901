//! The public CUDA libraries above the driver, on the simulated driver: what an ordinary CUDA build of PyTorch links against.
//!
//! Owns: the documented functions of the CUDA runtime, cuBLAS, cuBLASLt, cuDNN, NCCL, NVRTC, CUPTI and others that PyTorch
//! imports, under one shared object that the loader finds for every one of their names. Memory, streams and events are the
//! driver's, reached as a real runtime reaches it: dlsym of cuGetProcAddress, and everything else through that, so that the
//! interposer sees what it sees on a GPU. Nothing is computed, and device memory is never touched. Refuses: everything
//! undocumented, export tables first of all; and to guess: a function that is not simulated says so and returns an error.
//!
//! A map, in the order in which a call goes:
//! - `api`: the macro by which a function is one row, with its class; `calls`: what is counted and said of calls.
//! - `status`: the result codes of the libraries; `version`: which CUDA the program was built for.
//! - `driver`: the simulated libcuda; `thread`: the calling thread's device and last error.
//! - `cudart`, `cublas`, `cublaslt`, `cudnn`, `nccl`, `nvrtc`, `cupti`: the libraries that are simulated.
//! - `collective`: what NCCL's collectives carry between ranks.
//! - `generated`: what does nothing, and what says that it is not simulated, made by `simulator/runtime/generate`.

#[macro_use]
mod api;

mod calls;
mod collective;
mod cublas;
mod cublaslt;
mod cudart;
mod cudnn;
mod cufft;
mod cupti;
mod driver;
mod generated;
mod nccl;
mod nvrtc;
mod nvtx;
mod python;
mod status;
mod thread;
mod version;
