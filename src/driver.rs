//! Is there a CUDA driver with a device on this machine?
//!
//! Owns: four calls of the driver, made in memscope's own process. Refuses: contexts and memory; looking costs nothing on
//! the device.

use libc::{c_char, c_int, c_uint};
use libloading::{Library, Symbol};

/// What the driver of this machine says.
pub struct Driver {
    /// CUDA version that the driver supports, e.g. 13000 for 13.0.
    pub version: i32,
    /// Names of the devices, in the driver's order.
    pub devices: Vec<String>,
}

/// Asks the driver. The error is a sentence that says what is missing.
pub fn find() -> Result<Driver, String> {
    // SAFETY: loading NVIDIA's driver library runs its initialisers, as any CUDA program does.
    let library = unsafe { Library::new("libcuda.so.1") }
        .map_err(|_| "no CUDA driver is installed (libcuda.so.1 was not found)".to_string())?;
    // The driver must stay loaded: it starts threads of its own.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: each symbol is given the type of the public header cuda.h.
    unsafe {
        let init: Symbol<unsafe extern "C" fn(c_uint) -> c_int> = symbol(library, "cuInit")?;
        let version: Symbol<unsafe extern "C" fn(*mut c_int) -> c_int> = symbol(library, "cuDriverGetVersion")?;
        let count: Symbol<unsafe extern "C" fn(*mut c_int) -> c_int> = symbol(library, "cuDeviceGetCount")?;
        let name: Symbol<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int> =
            symbol(library, "cuDeviceGetName")?;
        match init(0) {
            0 => {}
            100 => return Err("the CUDA driver finds no device (CUDA_ERROR_NO_DEVICE)".to_string()),
            code => return Err(format!("the CUDA driver does not start (cuInit returned {code})")),
        }
        let (mut number, mut devices) = (0, 0);
        if version(&mut number) != 0 || count(&mut devices) != 0 {
            return Err("the CUDA driver does not answer".to_string());
        }
        if devices == 0 {
            return Err("the CUDA driver finds no device".to_string());
        }
        let names = (0..devices).map(|ordinal| {
            let mut buffer = [0 as c_char; 256];
            let code = name(buffer.as_mut_ptr(), buffer.len() as c_int - 1, ordinal);
            if code != 0 {
                return format!("device {ordinal}");
            }
            std::ffi::CStr::from_ptr(buffer.as_ptr()).to_string_lossy().into_owned()
        });
        Ok(Driver { version: number, devices: names.collect() })
    }
}

/// # Safety
/// `T` must be the type of the function.
unsafe fn symbol<T>(library: &'static Library, name: &str) -> Result<Symbol<'static, T>, String> {
    // SAFETY: the caller's promise.
    unsafe { library.get(name) }.map_err(|_| format!("libcuda.so.1 has no {name}: is it NVIDIA's driver?"))
}
