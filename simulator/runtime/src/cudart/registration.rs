//! What compiled code tells the runtime when it is loaded (the functions that crt/host_runtime.h declares), and its variables.
//!
//! Owns: the configuration of a launch between `<<<…>>>` and the kernel's stub; addresses of device variables. Refuses: to look
//! into the images that are registered.

use super::kernel::Dim3;
use crate::api::{Out, store};
use crate::status::CudaError;
use crate::thread::ready;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

struct Variable {
    bytes: usize,
    address: Option<u64>,
}

/// Device variables by the address of their host shadow.
static VARIABLES: Mutex<BTreeMap<usize, Variable>> = Mutex::new(BTreeMap::new());

/// The device address of a variable: memory of its own, given when it is first asked for. A real device has it in the module,
/// which no allocation call shows, so it is not the driver's here.
fn address_of(shadow: usize) -> Result<(u64, usize), CudaError> {
    let mut variables = VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let variable = variables.get_mut(&shadow).ok_or(CudaError(13))?;
    if variable.address.is_none() {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the system's choice.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), variable.bytes.max(1), protection, flags, -1, 0) };
        if place == libc::MAP_FAILED {
            return Err(CudaError(2));
        }
        variable.address = Some(place as u64);
    }
    Ok((variable.address.unwrap_or(0), variable.bytes))
}

api! {
    simulated fn __cudaPopCallConfiguration(
        grid: Out<'_, Dim3>, block: Out<'_, Dim3>, shared: Out<'_, usize>, stream: Out<'_, usize>,
    ) -> CudaError {
        let last = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(CudaError(52))?;
        store(grid, last.grid);
        store(block, last.block);
        store(shared, last.shared);
        store(stream, last.stream);
        Ok(())
    }
    simulated fn __cudaGetKernel(kernel: Out<'_, usize>, function: usize) -> CudaError {
        store(kernel, function);
        Ok(())
    }
    simulated fn cudaGetSymbolAddress(address: Out<'_, u64>, symbol: usize) -> CudaError {
        store(address, address_of(symbol)?.0);
        Ok(())
    }
    simulated fn cudaGetSymbolSize(bytes: Out<'_, usize>, symbol: usize) -> CudaError {
        store(bytes, address_of(symbol)?.1);
        Ok(())
    }
    no_op fn cudaMemcpyToSymbol(
        symbol: usize, _source: *const c_void, _bytes: usize, _offset: usize, _kind: c_int,
    ) -> CudaError {
        ready()?;
        address_of(symbol).map(|_| ())
    }
    no_op fn cudaMemcpyToSymbolAsync(symbol: usize) -> CudaError {
        ready()?;
        address_of(symbol).map(|_| ())
    }
}

plain! {
    simulated fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: usize) -> c_uint {
        CONFIGURATIONS.with_borrow_mut(|stack| stack.push(Configuration { grid, block, shared, stream }));
        0
    }
    simulated fn __cudaRegisterFatBinary(_image: *mut c_void) -> *mut *mut c_void {
        // A handle to give back; nothing is read from it.
        static HANDLE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        (&raw const HANDLE).cast_mut().cast()
    }
    no_op fn __cudaRegisterFatBinaryEnd(_handle: *mut *mut c_void) {}
    no_op fn __cudaUnregisterFatBinary(_handle: *mut *mut c_void) {}
    no_op fn __cudaRegisterFunction() {}
    no_op fn __cudaRegisterManagedVar() {}
    simulated fn __cudaInitModule(_handle: *mut *mut c_void) -> c_char { 1 }
    simulated fn __cudaRegisterVar(
        _handle: *mut *mut c_void, shadow: usize, _address: *mut c_char, _name: *const c_char, _external: c_int,
        bytes: usize, _constant: c_int, _global: c_int,
    ) {
        let mut variables = VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
        variables.insert(shadow, Variable { bytes, address: None });
    }
}
