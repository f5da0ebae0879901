//! NVML over the shared state: what the simulated devices have, and who holds how much of them.
//!
//! Owns: the exported nvml functions. A value that a simulated device does not have (temperature, power, fans, clocks,
//! utilisation, links) is NVML_ERROR_NOT_SUPPORTED and never a number. NVML sees every device of the session, whatever
//! CUDA_VISIBLE_DEVICES says, and needs no cuInit.

use crate::driver::Out;
use crate::process;
use crate::state::State;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

mod device;
mod memory;
mod system;
mod telemetry;

/// A result of NVML (nvmlReturn_t).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Return(pub c_int);

impl Return {
    const SUCCESS: Return = Return(0);
    const UNINITIALIZED: Return = Return(1);
    const INVALID_ARGUMENT: Return = Return(2);
    const NOT_SUPPORTED: Return = Return(3);
    const NOT_FOUND: Return = Return(6);
    const INSUFFICIENT_SIZE: Return = Return(7);
    const DRIVER_NOT_LOADED: Return = Return(9);
    const ARGUMENT_VERSION_MISMATCH: Return = Return(25);
    const UNKNOWN: Return = Return(999);
}

/// What the body of an exported function returns.
type Status = Result<(), Return>;

/// nvmlDevice_t: an address in [`HANDLES`].
type Device = usize;

/// One byte a device, whose addresses are the handles: they look and compare like pointers, and none is dereferenced.
static HANDLES: [u8; memscope_wire::device::MAX_DEVICES as usize] = [0; memscope_wire::device::MAX_DEVICES as usize];

/// nvmlInit less nvmlShutdown.
static USERS: AtomicI32 = AtomicI32::new(0);

fn guard(name: &'static str, body: impl FnOnce() -> Status) -> Return {
    let result = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Return::SUCCESS,
        Ok(Err(result)) => result,
        Err(_) => Return::UNKNOWN,
    };
    crate::trace::call(name, result.0);
    result
}

fn store<T>(out: Out<'_, T>, value: T) -> Status {
    out.ok_or(Return::INVALID_ARGUMENT)?.write(value);
    Ok(())
}

/// The state, once nvmlInit was called.
fn state() -> Result<&'static State, Return> {
    if USERS.load(Ordering::Relaxed) <= 0 {
        return Err(Return::UNINITIALIZED);
    }
    process::state().map_err(|_| Return::DRIVER_NOT_LOADED)
}

/// Handle of a device, by its number in the shared state.
fn handle(physical: u32) -> Result<Device, Return> {
    if physical < state()?.device_count() {
        Ok(&raw const HANDLES[physical as usize] as usize)
    } else {
        Err(Return::INVALID_ARGUMENT)
    }
}

/// The device with this handle.
fn physical(handle: Device) -> Result<u32, Return> {
    let count = state()?.device_count();
    let first = &raw const HANDLES as usize;
    let index = handle.checked_sub(first).ok_or(Return::INVALID_ARGUMENT)?;
    u32::try_from(index).ok().filter(|&index| index < count).ok_or(Return::INVALID_ARGUMENT)
}

macro_rules! exports {
    ($(fn $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $crate::nvml::Return {
            $crate::nvml::guard(stringify!($name), move || -> $crate::nvml::Status { $body })
        }
    )*};
}
use exports;
