//! Who owns an address, and where libcuda is.
//!
//! Owns: libcuda's handle, taken at first sight with RTLD_NOLOAD. The handle is kept for good: a program that closes libcuda
//! and opens it again would get it at another address, and the hooks would call into nothing. Refuses: to load anything.
//!
//! A libcuda that was loaded with the program cannot leave and needs no handle. It gets none, because glibc's dlopen would
//! allocate memory for it, in the middle of the program's first CUDA call.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::linker::{self, owner};

/// Names under which a driver is loaded; the first is the soname of NVIDIA's.
const DRIVER_NAMES: [&CStr; 2] = [c"libcuda.so.1", c"libcuda.so"];

static DRIVER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Base address of this library.
fn own_base() -> usize {
    static BASE: AtomicUsize = AtomicUsize::new(0);
    let known = BASE.load(Relaxed);
    if known != 0 {
        return known;
    }
    let base = owner(own_base as *const () as usize).map_or(0, |(base, _)| base);
    BASE.store(base, Relaxed);
    base
}

/// True when `address` lies in this library.
pub fn is_ours(address: usize) -> bool {
    owner(address).is_some_and(|(base, _)| base == own_base())
}

/// True when both addresses lie in one module.
pub fn is_same(one: *const c_void, other: *const c_void) -> bool {
    match (owner(one as usize), owner(other as usize)) {
        (Some((one, _)), Some((other, _))) => one == other,
        _ => false,
    }
}

/// True when the code at `address` belongs to libcuda or to this library: their own look-ups are not ours to answer. (On
/// WSL2 libcuda.so.1 is a shim that looks up its functions in another libcuda with dlsym.)
pub fn is_driver_or_ours(address: usize) -> bool {
    let Some((base, file)) = owner(address) else { return false };
    if base == own_base() {
        return true;
    }
    if file.is_null() {
        return false;
    }
    // SAFETY: dladdr gives a terminated string that lives as long as the module.
    is_driver_file(unsafe { CStr::from_ptr(file) })
}

/// libcuda's handle, or null while it is not loaded.
fn driver() -> *mut c_void {
    let known = DRIVER.load(Acquire);
    if !known.is_null() {
        return known;
    }
    for name in DRIVER_NAMES {
        if let Some(handle) = keep(libc::LM_ID_BASE, name.as_ptr()) {
            return handle;
        }
    }
    null_mut()
}

/// True once libcuda is loaded.
pub fn driver_is_loaded() -> bool {
    !driver().is_null()
}

/// Takes a handle on a module that is loaded already, for good.
fn keep(space: libc::Lmid_t, file: *const c_char) -> Option<*mut c_void> {
    let handle = linker::loaded(space, file);
    (!handle.is_null()).then(|| {
        DRIVER.store(handle, Release);
        handle
    })
}

/// Keeps the module of a driver function loaded, whatever its name.
pub fn pin(function: *mut c_void) {
    if let Some((base, file)) = owner(function as usize)
        && base != own_base()
        && !came_with_the_program(base)
        && driver().is_null()
        && !file.is_null()
    {
        // A program may have loaded it into a namespace of the linker's own (dlmopen).
        keep(linker::space(function as usize), file);
    }
}

/// True when a driver is loaded, in whatever namespace, and whether or not anything is known of it. Allocates nothing and takes
/// no handle.
pub fn driver_came() -> bool {
    unsafe extern "C" fn visit(module: *mut libc::dl_phdr_info, _bytes: usize, _: *mut c_void) -> c_int {
        // SAFETY: the linker gives its description of a module, with a terminated name.
        let file = unsafe { (*module).dlpi_name };
        // SAFETY: as above.
        (!file.is_null() && is_driver_file(unsafe { CStr::from_ptr(file) })) as c_int
    }
    // SAFETY: `visit` does what is demanded of it.
    unsafe { libc::dl_iterate_phdr(Some(visit), null_mut()) != 0 }
}

fn is_driver_file(path: &CStr) -> bool {
    path.to_bytes().rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"libcuda.so"))
}

/// True when the module at `base` was loaded before the program began, and so stays. The dynamic linker lists modules in the
/// order of their loading and is itself loaded before the program begins: what precedes it was, too.
fn came_with_the_program(base: usize) -> bool {
    struct Search {
        base: usize,
        linker: usize,
    }
    unsafe extern "C" fn visit(module: *mut libc::dl_phdr_info, _bytes: usize, search: *mut c_void) -> c_int {
        // SAFETY: the linker gives its description of a module, and our own `search`.
        let (address, search) = unsafe { ((*module).dlpi_addr as usize, &*search.cast::<Search>()) };
        match address {
            _ if address == search.base => FOUND,
            _ if address == search.linker => BEHIND,
            _ => 0,
        }
    }
    const FOUND: c_int = 1;
    const BEHIND: c_int = 2;
    // SAFETY: asks the kernel's auxiliary vector.
    let mut search = Search { base, linker: unsafe { libc::getauxval(libc::AT_BASE) } as usize };
    // SAFETY: `visit` does what is demanded of it, and `search` lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) == FOUND }
}

/// The driver's own function of this name; null when it has none.
pub fn driver_symbol(name: &CStr) -> *mut c_void {
    let handle = DRIVER.load(Acquire);
    if handle.is_null() { next_then_driver(name) } else { symbol(handle, name) }
}

/// The function that a program linked with libcuda would call if this library were not there; else the driver's own.
pub fn next_then_driver(name: &CStr) -> *mut c_void {
    let next = next_symbol(name);
    if !next.is_null() {
        return next;
    }
    let handle = driver();
    if handle.is_null() { null_mut() } else { symbol(handle, name) }
}

/// The function of this name behind this library in the order of look-up; null when there is none.
pub fn next_symbol(name: &CStr) -> *mut c_void {
    symbol(libc::RTLD_NEXT, name)
}

/// The function of this name in a library that is loaded already, wherever it was loaded to; null when there is none.
pub fn symbol_of(library: &CStr, name: &CStr) -> *mut c_void {
    let handle = linker::loaded(libc::LM_ID_BASE, library.as_ptr());
    if handle.is_null() {
        return null_mut();
    }
    // The handle is kept: the library must not leave while its function is known here.
    symbol(handle, name)
}

/// The function of this name that the whole program sees; null when there is none.
pub fn global_symbol(name: &CStr) -> *mut c_void {
    symbol(libc::RTLD_DEFAULT, name)
}

/// Looks up `name` for ourselves; null when there is none but in this library.
fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    let found = linker::look_up(handle, name);
    if found.is_null() {
        linker::forget_error();
        return null_mut();
    }
    if is_ours(found as usize) { null_mut() } else { found }
}
