//! What every kernel computes, against an independent implementation in f64.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | case | a launch with its inputs, what it must give, and how far rounding may carry it from that |
//! | kind | fp32, fp16 and bf16 by their definitions |
//! | cases/ | the cases, by theme, each with its f64 implementation |
//! | host | the host references on every case |
//! | emulated, emulator.cpp | the CUDA sources on every case, compiled for the CPU |
//! | gpu | the PTX on every case, where there is a GPU |
//!
//! Inputs are random from a printed seed, new in every run; MEMSCOPE_TEST_SEED repeats one. Sizes are odd on purpose: no
//! tile, warp or band is full.

mod case;
mod cases;
mod emulated;
mod gpu;
mod host;
mod kind;

/// Says that a test does nothing here, and why. Written past the test harness, which hides what passing tests print.
fn skip(test: &str, reason: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}
