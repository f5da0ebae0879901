//! NVTX, as libnvToolsExt.so has it: ranges go to memscope.
//!
//! Owns: the functions that PyTorch imports. Refuses: programs with NVTX 3 in them, which find memscope themselves; marks.

use crate::calls;
use std::ffi::{c_char, c_int};

/// `NVTX_NO_PUSH_POP_TRACKING`: nobody counts.
const NO_DEPTH: c_int = -2;

plain! {
    simulated fn nvtxRangePushA(message: *const c_char) -> c_int {
        // SAFETY: the caller gives null or a terminated string.
        unsafe { calls::range_push(message) };
        NO_DEPTH
    }
    simulated fn nvtxRangePop() -> c_int {
        calls::range_pop();
        NO_DEPTH
    }
    simulated fn nvtxRangeStartA(message: *const c_char) -> u64 {
        // SAFETY: the caller gives null or a terminated string.
        unsafe { calls::range_start(message) }
    }
    simulated fn nvtxRangeEnd(range: u64) {
        calls::range_end(range);
    }
    no_op fn nvtxMarkA(_message: *const c_char) {}
}
