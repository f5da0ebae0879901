//! Annotations for Rust programs: say what memory is for, and memscope shows it.
//!
//! Every function does nothing (one predictable branch) when the program does not run under `memscope run`. The functions
//! are those of the C API (interposer/include/memscope.h), found with dlsym at the first call: nothing is linked.
//!
//! ```
//! use memscope_client as memscope;
//! memscope::step(0);
//! let _forward = memscope::scope("layer 3");
//! memscope::phase("forward");
//! memscope::tag(0x7f00_0000_0000, memscope::Category::Weights, "layers.3.weight");
//! ```

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// What bytes are for; the numbers are those of memscope.h.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Category {
    /// Not known.
    Unknown = 0,
    /// Parameters of the model.
    Weights = 1,
    /// Gradients of parameters.
    Gradients = 2,
    /// Kept from forward for backward.
    Activations = 3,
    /// State of the optimizer.
    Optimizer = 4,
    /// Batches: data, labels, masks.
    Inputs = 5,
    /// Temporaries.
    Workspace = 6,
}

/// The C API's functions.
struct Api {
    tag: unsafe extern "C" fn(*const c_void, c_int, *const c_char),
    block_alloc: unsafe extern "C" fn(*const c_void, u64, *mut c_void),
    block_free: unsafe extern "C" fn(*const c_void),
    scope_push: unsafe extern "C" fn(*const c_char),
    scope_pop: unsafe extern "C" fn(),
    phase: unsafe extern "C" fn(*const c_char),
    step: unsafe extern "C" fn(u64),
}

fn api() -> Option<&'static Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(|| {
        // SAFETY: each name is looked up with the signature that memscope.h gives it.
        unsafe {
            Some(Api {
                tag: symbol(c"memscope_tag")?,
                block_alloc: symbol(c"memscope_block_alloc")?,
                block_free: symbol(c"memscope_block_free")?,
                scope_push: symbol(c"memscope_scope_push")?,
                scope_pop: symbol(c"memscope_scope_pop")?,
                phase: symbol(c"memscope_phase")?,
                step: symbol(c"memscope_step")?,
            })
        }
    })
    .as_ref()
}

/// The function with this name among the program's global symbols.
///
/// # Safety
/// `F` must be the function's pointer type.
unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: dlsym takes a valid handle and a terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: same size, and the caller promises that the address is an `F`.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}

/// True when the program runs under memscope.
pub fn is_active() -> bool {
    api().is_some()
}

fn with_name(name: &str, call: impl FnOnce(*const c_char)) {
    // A name with a NUL inside is cut there, as C would.
    let end = name.find('\0').unwrap_or(name.len());
    if let Ok(name) = CString::new(&name[..end]) {
        call(name.as_ptr());
    }
}

/// The allocation or block at `address` (a device pointer) is of `category` and called `name`, for its whole life.
pub fn tag(address: u64, category: Category, name: &str) {
    if let Some(api) = api() {
        // SAFETY: the pointer is not dereferenced by memscope; the name is terminated.
        with_name(name, |name| unsafe { (api.tag)(address as *const c_void, category as c_int, name) });
    }
}

/// A block of `bytes` at `address` inside an allocation of the driver is in use, on `stream` (0 for the default stream).
pub fn block_alloc(address: u64, bytes: u64, stream: u64) {
    if let Some(api) = api() {
        // SAFETY: neither pointer is dereferenced.
        unsafe { (api.block_alloc)(address as *const c_void, bytes, stream as *mut c_void) }
    }
}

/// The block at `address` is free again.
pub fn block_free(address: u64) {
    if let Some(api) = api() {
        // SAFETY: the pointer is not dereferenced.
        unsafe { (api.block_free)(address as *const c_void) }
    }
}

/// Enters the scope `name` on this thread until the returned guard is dropped.
#[must_use = "the scope ends when the guard is dropped"]
pub fn scope(name: &str) -> Scope {
    if let Some(api) = api() {
        // SAFETY: the name is terminated.
        with_name(name, |name| unsafe { (api.scope_push)(name) });
    }
    Scope { not_send: PhantomData }
}

/// An open scope of this thread.
pub struct Scope {
    not_send: PhantomData<*const ()>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(api) = api() {
            // SAFETY: pops what `scope` pushed; the guard cannot leave its thread.
            unsafe { (api.scope_pop)() }
        }
    }
}

/// The process is in phase `name` from now on (data, forward, loss, backward, optimizer, …).
pub fn phase(name: &str) {
    if let Some(api) = api() {
        // SAFETY: the name is terminated.
        with_name(name, |name| unsafe { (api.phase)(name) });
    }
}

/// Training step `number` begins now.
pub fn step(number: u64) {
    if let Some(api) = api() {
        // SAFETY: a plain number.
        unsafe { (api.step)(number) }
    }
}
