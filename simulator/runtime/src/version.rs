//! Which CUDA the program was built for, told by the libraries that it asks for.
//!
//! Owns: the major version of the `libcudart.so.N` that a loaded object needs (DT_NEEDED). Some functions and structures have
//! one name and two layouts, in CUDA 12 and 13.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// Major version when nothing loaded asks for a numbered runtime.
const NEWEST: i32 = 13;

const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;

/// Major version of the CUDA runtime that the program asks for.
pub fn major() -> i32 {
    static KNOWN: AtomicI32 = AtomicI32::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let mut found = 0_i32;
    // SAFETY: the callback matches, and its data outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    if found == 0 {
        return NEWEST;
    }
    KNOWN.store(found, Ordering::Relaxed);
    found
}

/// Whether the program was built for CUDA 12, whose structures differ.
pub fn is_twelve() -> bool {
    major() == 12
}

/// CUDA version as cudaRuntimeGetVersion reports it: the last one of its major version whose interface we follow.
pub fn runtime() -> i32 {
    if is_twelve() { 12_080 } else { 13_020 }
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader gives a description of a loaded object.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr as usize, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return 0 };
    let entries = (base + dynamic.p_vaddr as usize) as *const (i64, usize);
    // SAFETY: a loaded object's dynamic section ends with DT_NULL.
    let entries = (0..).map(|index| unsafe { *entries.add(index) }).take_while(|entry| entry.0 != DT_NULL);
    let Some(strings) = entries.clone().find(|entry| entry.0 == DT_STRTAB).map(|entry| entry.1) else { return 0 };
    // glibc puts the address there, other loaders the offset.
    let strings = if strings < base { base + strings } else { strings };
    for (_, offset) in entries.filter(|entry| entry.0 == DT_NEEDED) {
        // SAFETY: a needed name is a terminated string of the object's string table.
        let name = unsafe { CStr::from_ptr((strings + offset) as *const _) }.to_bytes();
        let digits = name.strip_prefix(b"libcudart.so.").unwrap_or_default();
        let digits = digits.split(|byte| *byte == b'.').next().unwrap_or_default();
        if let Some(major) = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
            // SAFETY: `major` gave a place for a number.
            unsafe { *data.cast::<i32>() = major };
            return 1;
        }
    }
    0
}
