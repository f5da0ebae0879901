//! cuInit, versions, results, and looking functions up.

use super::{Out, given, store, text};
use crate::error::CUresult;
use crate::proc_address::{self, Found};
use crate::process::{self, driver_version};
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

/// CU_GET_PROC_ADDRESS_SUCCESS and its like.
fn status_number(found: &Found) -> c_int {
    match found {
        Found::Function(_) => 0,
        Found::Unknown => 1,
        Found::TooNew => 2,
    }
}

exports! {
    2000 fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        process::initialise()
    }
    2020 fn cuDriverGetVersion(version: Out<'_, c_int>) { store(version, driver_version()) }
    6000 fn cuGetErrorName(error: CUresult, name: Out<'_, *const c_char>) {
        let name = given(name)?;
        let described = error.describe();
        name.write(described.map_or(std::ptr::null(), |texts| texts.0.as_ptr()));
        described.map(|_| ()).ok_or(CUresult::ERROR_INVALID_VALUE)
    }
    6000 fn cuGetErrorString(error: CUresult, sentence: Out<'_, *const c_char>) {
        let sentence = given(sentence)?;
        let described = error.describe();
        sentence.write(described.map_or(std::ptr::null(), |texts| texts.1.as_ptr()));
        described.map(|_| ()).ok_or(CUresult::ERROR_INVALID_VALUE)
    }
    11030 fn cuGetProcAddress(
        symbol: *const c_char, function: Out<'_, *const c_void>, version: c_int, flags: c_ulonglong,
    ) {
        // SAFETY: the program gives a terminated string or null.
        let found = proc_address::find(unsafe { text(symbol)? }, version, flags)?;
        store(function, found.address())?;
        if matches!(found, Found::Function(_)) { Ok(()) } else { Err(CUresult::ERROR_NOT_FOUND) }
    }
    12000 fn cuGetProcAddress_v2(
        symbol: *const c_char,
        function: Out<'_, *const c_void>,
        version: c_int,
        flags: c_ulonglong,
        status: Out<'_, c_int>,
    ) {
        // SAFETY: the program gives a terminated string or null.
        let found = proc_address::find(unsafe { text(symbol)? }, version, flags)?;
        store(function, found.address())?;
        super::store_if(status, status_number(&found));
        Ok(())
    }
    2000 fn cuGetExportTable(table: Out<'_, *const c_void>, _identity: *const c_void) {
        // Nothing undocumented is simulated. A CUDA runtime that is linked into the program asks, and does not start without.
        crate::refusal::refused("cuGetExportTable");
        store(table, std::ptr::null())?;
        Err(CUresult::ERROR_NOT_FOUND)
    }
    4000 fn cuProfilerInitialize(_configuration: *const c_char, _output: *const c_char, _mode: c_int) {
        Err(CUresult::ERROR_NOT_SUPPORTED)
    }
    12090 fn cuLogsRegisterCallback(_function: *const c_void, _data: *mut c_void, handle: Out<'_, usize>) {
        // Nothing is ever logged.
        super::store_if(handle, 1);
        Ok(())
    }
    12090 fn cuLogsUnregisterCallback(_handle: usize) { Ok(()) }
    4000 fn cuProfilerStart() { process::process().map(|_| ()) }
    4000 fn cuProfilerStop() { process::process().map(|_| ()) }
}
