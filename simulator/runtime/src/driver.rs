//! The simulated libcuda, found as a real CUDA runtime finds a driver: dlopen, dlsym of cuGetProcAddress, everything else
//! through that.
//!
//! Owns: the functions that the runtime calls, and the ways to tell the simulated driver what only a runtime knows (that this
//! process computes nothing, that a kernel ran, what a collective left), and to ask what it knows of device memory. Refuses: a libcuda that is not memscope's.

use crate::collective::Memory;
use crate::status::CudaError;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// Newest CUDA version whose functions are asked for.
const VERSION: c_int = 12_080;

/// cuGetProcAddress of CUDA 12 on.
type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> c_int;

macro_rules! driver_functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The functions of the driver that the runtime calls.
        #[allow(non_snake_case, reason = "NVIDIA's spelling")]
        pub struct Driver {
            look_up: GetProcAddress,
            launched: unsafe extern "C" fn(),
            look: unsafe extern "C" fn(u64, u64, *mut u8) -> c_int,
            note: unsafe extern "C" fn(u64, u64, *const u8),
            $($name: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        #[allow(non_snake_case, reason = "NVIDIA's spelling")]
        #[allow(clippy::missing_safety_doc, clippy::too_many_arguments, reason = "as NVIDIA's documentation says")]
        impl Driver {
            fn find(
                look_up: GetProcAddress,
                launched: unsafe extern "C" fn(),
                look: unsafe extern "C" fn(u64, u64, *mut u8) -> c_int,
                note: unsafe extern "C" fn(u64, u64, *const u8),
            ) -> Result<Driver, CudaError> {
                Ok(Driver {
                    look_up,
                    launched,
                    look,
                    note,
                    // SAFETY: the driver's function of this name has this type.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(
                            found(look_up, concat!(stringify!($name), "\0"))?,
                        )
                    },)*
                })
            }

            $(
                pub unsafe fn $name(&self, $($argument: $type),*) -> Result<(), CudaError> {
                    // SAFETY: the caller vouches for the arguments.
                    CudaError(unsafe { (self.$name)($($argument),*) }).result()
                }
            )*
        }
    };
}

driver_functions! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGetName(name: *mut c_char, bytes: c_int, device: c_int);
    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int);
    fn cuDeviceTotalMem(bytes: *mut usize, device: c_int);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    fn cuDeviceGetPCIBusId(text: *mut c_char, bytes: c_int, device: c_int);
    fn cuDeviceGetByPCIBusId(device: *mut c_int, text: *const c_char);
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
    fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: c_int);
    fn cuDeviceGetMemPool(pool: *mut usize, device: c_int);
    fn cuDeviceSetMemPool(device: c_int, pool: usize);
    fn cuDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, value: *mut c_void);
    fn cuDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: *mut c_void);
    fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int);
    fn cuDevicePrimaryCtxReset(device: c_int);
    fn cuCtxGetCurrent(context: *mut usize);
    fn cuCtxSetCurrent(context: usize);
    fn cuCtxGetDevice(device: *mut c_int);
    fn cuCtxSynchronize();
    fn cuCtxEnablePeerAccess(context: usize, flags: c_uint);
    fn cuCtxDisablePeerAccess(context: usize);
    fn cuCtxGetLimit(value: *mut usize, limit: c_int);
    fn cuCtxSetLimit(limit: c_int, value: usize);
    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    fn cuGetErrorString(error: c_int, text: *mut *const c_char);
    fn cuMemGetInfo(free: *mut usize, total: *mut usize);
    fn cuMemAlloc(address: *mut u64, bytes: usize);
    fn cuMemAllocPitch(address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint);
    fn cuMemAllocManaged(address: *mut u64, bytes: usize, flags: c_uint);
    fn cuMemFree(address: u64);
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: usize);
    fn cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: usize, stream: usize);
    fn cuMemFreeAsync(address: u64, stream: usize);
    fn cuMemHostAlloc(pointer: *mut u64, bytes: usize, flags: c_uint);
    fn cuMemFreeHost(pointer: u64);
    fn cuMemHostRegister(pointer: u64, bytes: usize, flags: c_uint);
    fn cuMemHostUnregister(pointer: u64);
    fn cuMemHostGetDevicePointer(address: *mut u64, pointer: u64, flags: c_uint);
    fn cuMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut c_void);
    fn cuMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void);
    fn cuMemPoolSetAccess(pool: usize, descriptions: *const c_void, count: usize);
    fn cuMemPoolTrimTo(pool: usize, bytes: usize);
    fn cuMemcpy(destination: u64, source: u64, bytes: usize);
    fn cuMemcpyAsync(destination: u64, source: u64, bytes: usize, stream: usize);
    fn cuMemcpy2DAsync(description: *const c_void, stream: usize);
    fn cuMemsetD8(address: u64, value: u8, bytes: usize);
    fn cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: usize);
    fn cuPointerGetAttributes(count: c_uint, numbers: *const c_int, values: *const *mut c_void, address: u64);
    fn cuStreamCreateWithPriority(stream: *mut usize, flags: c_uint, priority: c_int);
    fn cuStreamDestroy(stream: usize);
    fn cuStreamSynchronize(stream: usize);
    fn cuStreamQuery(stream: usize);
    fn cuStreamGetPriority(stream: usize, priority: *mut c_int);
    fn cuStreamGetFlags(stream: usize, flags: *mut c_uint);
    fn cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint);
    fn cuStreamAddCallback(stream: usize, callback: *const c_void, data: *mut c_void, flags: c_uint);
    fn cuLaunchHostFunc(stream: usize, function: *const c_void, data: *mut c_void);
    fn cuEventCreate(event: *mut usize, flags: c_uint);
    fn cuEventDestroy(event: usize);
    fn cuEventRecord(event: usize, stream: usize);
    fn cuEventQuery(event: usize);
    fn cuEventSynchronize(event: usize);
    fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize);
    fn cuLibraryLoadData(
        library: *mut usize, image: *const c_void, options: *const c_void, values: *const c_void, count: c_uint,
        library_options: *const c_void, library_values: *const c_void, library_count: c_uint
    );
    fn cuLibraryUnload(library: usize);
    fn cuLibraryGetKernel(kernel: *mut usize, library: usize, name: *const c_char);
}

/// The driver, initialised.
pub fn driver() -> Result<&'static Driver, CudaError> {
    static DRIVER: OnceLock<Result<Driver, CudaError>> = OnceLock::new();
    DRIVER.get_or_init(open).as_ref().map_err(|&error| error)
}

/// Tells the driver that something ran that may have written device memory: what it knew of the contents is stale.
pub fn launched() {
    crate::nccl::forget();
    if let Ok(driver) = driver() {
        // SAFETY: the function takes nothing and has no preconditions.
        unsafe { (driver.launched)() };
    }
}

impl Driver {
    /// Whether the driver knows the bytes of a device range.
    pub fn knows(&self, address: u64, bytes: usize) -> bool {
        // SAFETY: the question is about an address and a length.
        unsafe { (self.look)(address, bytes as u64, std::ptr::null_mut()) != 0 }
    }

    /// Number of visible devices.
    pub fn device_count(&self) -> Result<i32, CudaError> {
        let mut count = 0;
        // SAFETY: `count` is good for a write.
        unsafe { self.cuDeviceGetCount(&mut count)? };
        Ok(count)
    }

    /// Value of a device attribute (CUdevice_attribute, whose numbers are those of cudaDeviceAttr).
    pub fn attribute(&self, number: i32, device: i32) -> Result<i32, CudaError> {
        let mut value = 0;
        // SAFETY: `value` is good for a write.
        unsafe { self.cuDeviceGetAttribute(&mut value, number, device)? };
        Ok(value)
    }

    /// The CUDA version that the driver reports.
    pub fn version(&self) -> Result<i32, CudaError> {
        let mut version = 0;
        // SAFETY: `version` is good for a write.
        unsafe { self.cuDriverGetVersion(&mut version)? };
        Ok(version)
    }

    /// Looks a driver function up for the program: address (null if there is none) and the driver's word about it.
    ///
    /// # Safety
    /// `name` must be a terminated string.
    pub unsafe fn entry(&self, name: *const c_char, version: i32, flags: u64) -> (*mut c_void, c_int) {
        let (mut address, mut word) = (std::ptr::null_mut(), 1);
        // SAFETY: the outputs are good for a write; the caller vouches for the name.
        let result = unsafe { (self.look_up)(name, &mut address, version, flags, &mut word) };
        if result == 0 && !address.is_null() { (address, 0) } else { (std::ptr::null_mut(), word.max(1)) }
    }
}

fn open() -> Result<Driver, CudaError> {
    // SAFETY: the name is terminated; the library stays loaded.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return Err(CudaError::INSUFFICIENT_DRIVER);
    }
    // SAFETY: a handle of dlopen and terminated names.
    let symbol = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) };
    let look_up = symbol(c"cuGetProcAddress_v2");
    let [memory_only, launched, look, note] = [
        c"memscope_simulator_memory_only",
        c"memscope_simulator_launched",
        c"memscope_simulator_look",
        c"memscope_simulator_note",
    ]
    .map(symbol);
    if [look_up, memory_only, launched, look, note].iter().any(|address| address.is_null()) {
        eprintln!("memscope: the libcuda.so.1 that was found is not the simulated one; run the program with --device");
        return Err(CudaError::INSUFFICIENT_DRIVER);
    }
    // SAFETY: the simulated driver's functions of these types; and cuGetProcAddress as documented.
    let (look_up, memory_only, launched, look, note) = unsafe {
        (
            std::mem::transmute::<*mut c_void, GetProcAddress>(look_up),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(memory_only),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(launched),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64, u64, *mut u8) -> c_int>(look),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64, u64, *const u8)>(note),
        )
    };
    let driver = Driver::find(look_up, launched, look, note)?;
    // SAFETY: see above; cuInit takes no flags.
    unsafe {
        memory_only();
        driver.cuInit(0)?;
    }
    crate::calls::not_computed();
    Ok(driver)
}

impl Memory for Driver {
    fn look(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut found = vec![0; bytes];
        // SAFETY: there is room for so many bytes.
        let known = unsafe { (self.look)(address, bytes as u64, found.as_mut_ptr()) != 0 };
        known.then_some(found)
    }

    fn note(&self, address: u64, bytes: &[u8]) {
        // SAFETY: so many bytes are there.
        unsafe { (self.note)(address, bytes.len() as u64, bytes.as_ptr()) };
    }

    fn forget(&self, address: u64, bytes: usize) {
        // SAFETY: null stands for bytes that are not known.
        unsafe { (self.note)(address, bytes as u64, std::ptr::null()) };
    }
}

fn found(look_up: GetProcAddress, name: &'static str) -> Result<*mut c_void, CudaError> {
    let mut address = std::ptr::null_mut();
    // SAFETY: the name is terminated and `address` is good for a write; the last argument may be null.
    let result = unsafe { look_up(name.as_ptr().cast(), &mut address, VERSION, 0, std::ptr::null_mut()) };
    if result == 0 && !address.is_null() {
        return Ok(address);
    }
    eprintln!("memscope: the simulated driver has no {}", name.trim_end_matches('\0'));
    Err(CudaError::INSUFFICIENT_DRIVER)
}
