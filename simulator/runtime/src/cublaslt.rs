//! cuBLASLt: descriptions, one algorithm without workspace, and products that are not computed.
//!
//! Refuses: to guess which algorithm a real library would take and how much workspace that wants; PyTorch allocates its own
//! workspace for cuBLASLt before asking, at its fixed size.

use crate::api::{Out, store};
use crate::calls;
use crate::status::CublasStatus;
use std::ffi::{c_int, c_uint, c_void};

/// `cublasLtMatmulAlgo_t`
type Algorithm = [u64; 8];

/// `cublasLtMatmulHeuristicResult_t`
#[repr(C)]
struct Heuristic {
    algorithm: Algorithm,
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

const ALGORITHM: Heuristic = Heuristic { algorithm: [0; 8], workspace: 0, state: 0, waves: 1.0, reserved: [0; 4] };

/// Descriptions are opaque to the program, and nothing in them is needed again.
fn description() -> *mut u8 {
    Box::into_raw(Box::new(0_u8))
}

/// # Safety
/// The pointer must be null or a description, given back once.
unsafe fn give_back(pointer: *mut u8) -> Result<(), CublasStatus> {
    if !pointer.is_null() {
        // SAFETY: as the caller says.
        drop(unsafe { Box::from_raw(pointer) });
    }
    Ok(())
}

api! {
    simulated fn cublasLtCreate(place: Out<'_, *mut u8>) -> CublasStatus { store(place, description()); Ok(()) }
    simulated fn cublasLtDestroy(pointer: *mut u8) -> CublasStatus {
        // SAFETY: the program gives its handle back.
        unsafe { give_back(pointer) }
    }
    simulated fn cublasLtMatmulDescCreate(place: Out<'_, *mut u8>, _compute: c_uint, _scale: c_uint) -> CublasStatus {
        store(place, description());
        Ok(())
    }
    simulated fn cublasLtMatmulDescDestroy(pointer: *mut u8) -> CublasStatus {
        // SAFETY: the program gives its description back.
        unsafe { give_back(pointer) }
    }
    no_op fn cublasLtMatmulDescSetAttribute() -> CublasStatus { Ok(()) }
    simulated fn cublasLtMatrixLayoutCreate(
        place: Out<'_, *mut u8>, _kind: c_uint, _rows: u64, _columns: u64, _leading: i64,
    ) -> CublasStatus {
        store(place, description());
        Ok(())
    }
    simulated fn cublasLtMatrixLayoutDestroy(pointer: *mut u8) -> CublasStatus {
        // SAFETY: the program gives its description back.
        unsafe { give_back(pointer) }
    }
    no_op fn cublasLtMatrixLayoutSetAttribute() -> CublasStatus { Ok(()) }
    simulated fn cublasLtMatmulPreferenceCreate(place: Out<'_, *mut u8>) -> CublasStatus {
        store(place, description());
        Ok(())
    }
    simulated fn cublasLtMatmulPreferenceDestroy(pointer: *mut u8) -> CublasStatus {
        // SAFETY: the program gives its description back.
        unsafe { give_back(pointer) }
    }
    no_op fn cublasLtMatmulPreferenceSetAttribute() -> CublasStatus { Ok(()) }
    size fn cublasLtMatmulAlgoGetHeuristic(
        _handle: *mut c_void, _description: *mut u8, _a: *mut u8, _b: *mut u8, _c: *mut u8, _d: *mut u8,
        _preference: *mut u8, wanted: c_int, results: *mut Heuristic, found: Out<'_, c_int>,
    ) -> CublasStatus {
        if wanted < 1 || results.is_null() {
            return Err(CublasStatus::INVALID_VALUE);
        }
        // SAFETY: the program gives room for at least one result.
        unsafe { results.write(ALGORITHM) };
        store(found, 1);
        Ok(())
    }
    simulated fn cublasLtMatmulAlgoInit(
        _handle: *mut c_void, _compute: c_uint, _scale: c_uint, _a: c_uint, _b: c_uint, _c: c_uint, _d: c_uint,
        _number: c_int, algorithm: Out<'_, Algorithm>,
    ) -> CublasStatus {
        store(algorithm, [0; 8]);
        Ok(())
    }
    size fn cublasLtMatmulAlgoCheck(
        _handle: *mut c_void, _description: *mut u8, _a: *mut u8, _b: *mut u8, _c: *mut u8, _d: *mut u8,
        _algorithm: *const Algorithm, result: Out<'_, Heuristic>,
    ) -> CublasStatus {
        store(result, ALGORITHM);
        Ok(())
    }
    no_op fn cublasLtMatmulAlgoConfigSetAttribute() -> CublasStatus { Ok(()) }
    simulated fn cublasLtMatmulAlgoConfigGetAttribute(
        _algorithm: *const Algorithm, _attribute: c_int, value: *mut u8, bytes: usize, written: Out<'_, usize>,
    ) -> CublasStatus {
        if !value.is_null() {
            // SAFETY: the program gives a buffer of that size.
            unsafe { value.write_bytes(0, bytes) };
        }
        store(written, bytes);
        Ok(())
    }
}

plain! {
    simulated fn cublasLtGetVersion() -> usize { crate::cublas::version() as usize }
    no_op fn cublasLtMatmul() -> CublasStatus { calls::computed("cublasLtMatmul") }
}
