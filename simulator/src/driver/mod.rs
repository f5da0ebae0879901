//! The exported functions of the driver API, by theme.
//!
//! Owns: the macro with which a function is one row (CUDA version that brought it, name, arguments, per-thread-stream
//! alias, body); the rows are also the table of cuGetProcAddress. A panic ends at the row as CUDA_ERROR_UNKNOWN.
//!
//! Arguments that the documentation calls output pointers are [`Out`]: a null pointer is `None`, and the program
//! vouches, as for any C function, that another pointer is good for a write.

use crate::error::{CUresult, Status};
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An output pointer: null, or good for one write.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// An exported function.
pub struct Export {
    /// Its name, with version and per-thread-stream suffix.
    pub name: &'static str,
    /// CUDA version that brought it, as in cuDriverGetVersion.
    pub version: i32,
    /// Where it is.
    pub address: Address,
}

/// Address of a function.
#[derive(Clone, Copy)]
pub struct Address(pub *const ());

// SAFETY: a function's address can be used from every thread.
unsafe impl Sync for Address {}

/// Runs an exported function's body: traces it, says what is not simulated, and ends a panic.
fn guard(name: &'static str, body: impl FnOnce() -> Status) -> CUresult {
    let result = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => CUresult::SUCCESS,
        Ok(Err(CUresult::NOT_SIMULATED)) => {
            crate::refusal::refused(name);
            CUresult::ERROR_NOT_SUPPORTED
        }
        Ok(Err(result)) => result,
        Err(_) => CUresult::ERROR_UNKNOWN,
    };
    crate::trace::call(name, result.0);
    result
}

/// An argument that must not be null, else CUDA_ERROR_INVALID_VALUE.
fn given<T>(argument: Option<T>) -> Result<T, CUresult> {
    argument.ok_or(CUresult::ERROR_INVALID_VALUE)
}

/// Writes to an output pointer; CUDA_ERROR_INVALID_VALUE when it is null.
fn store<T>(out: Out<'_, T>, value: T) -> Status {
    given(out)?.write(value);
    Ok(())
}

/// Writes to an output pointer unless it is null.
fn store_if<T>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// The text at a C string.
///
/// # Safety
/// The pointer must be null or lead to a terminated string that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, CUresult> {
    if pointer.is_null() {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| CUresult::ERROR_INVALID_VALUE)
}

/// Copies a text with its terminator into a buffer of `capacity` bytes, cut to fit.
///
/// # Safety
/// The buffer must be null or writable.
unsafe fn store_text(buffer: *mut c_char, capacity: usize, text: &str) -> Status {
    if buffer.is_null() || capacity == 0 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let length = text.len().min(capacity - 1);
    // SAFETY: as the caller says; `length` is below the capacity.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), length);
        *buffer.add(length) = 0;
    }
    Ok(())
}

macro_rules! exports {
    ($($version:literal fn $name:ident $arguments:tt $(also $alias:ident)? $body:block)*) => {
        $(
            $crate::driver::exports!(@define $name $arguments $body);
            $($crate::driver::exports!(@alias $alias $name $arguments);)?
        )*
        /// This theme's rows.
        pub(super) static EXPORTS: &[$crate::driver::Export] = &[$(
            $crate::driver::exports!(@row $version $name),
            $($crate::driver::exports!(@row $version $alias),)?
        )*];
    };
    (@row $version:literal $name:ident) => {
        $crate::driver::Export {
            name: stringify!($name),
            version: $version,
            address: $crate::driver::Address($name as *const ()),
        }
    };
    (@define $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $crate::error::CUresult {
            $crate::driver::guard(stringify!($name), move || -> $crate::error::Status { $body })
        }
    };
    (@alias $alias:ident $name:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $alias($($argument: $type),*) -> $crate::error::CUresult {
            // Its own name in it keeps an optimised build from giving both functions one address: programs, and the
            // interposer, tell them apart by that.
            std::hint::black_box(stringify!($alias));
            // SAFETY: the same function under another name.
            unsafe { $name($($argument),*) }
        }
    };
}
use exports;

mod array;
mod context;
mod copy;
mod device;
mod event;
mod execution;
mod external;
mod fill;
mod graph;
mod initialisation;
mod interprocess;
mod library;
mod memory;
mod module;
mod multicast;
mod pointer;
mod pool;
mod stream;
mod unsupported;
mod virtual_memory;

static TABLES: [&[Export]; 20] = [
    array::EXPORTS,
    context::EXPORTS,
    copy::EXPORTS,
    device::EXPORTS,
    event::EXPORTS,
    execution::EXPORTS,
    external::EXPORTS,
    fill::EXPORTS,
    graph::EXPORTS,
    initialisation::EXPORTS,
    interprocess::EXPORTS,
    library::EXPORTS,
    memory::EXPORTS,
    module::EXPORTS,
    multicast::EXPORTS,
    pointer::EXPORTS,
    pool::EXPORTS,
    stream::EXPORTS,
    unsupported::EXPORTS,
    virtual_memory::EXPORTS,
];

/// Every exported function of the driver API.
pub fn all_exports() -> impl Iterator<Item = &'static Export> {
    TABLES.iter().flat_map(|table| table.iter())
}
