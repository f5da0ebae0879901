//! A CUDA device with our kernels loaded.
//!
//! Owns: the primary context, the modules, launches, and where memory comes from: the driver, or a pool (see
//! techniques/caching.rs). Refuses: tensors (see tensor.rs) and shapes (see operations/).
//!
//! Everything is on the default stream and on one thread. The driver is reached through cudarc's thin layer, one call of
//! ours for one call of the driver, so that a profile shows exactly what this code asks for.

use crate::ledger::Ledger;
use crate::techniques::{Budget, MemoryFraction, Pool, PoolCount, Source};
use crate::{Error, Tensor};
use cudarc::driver::{result, sys};
use memscope_client::Category;
use memscope_kernels::{IMAGES, KERNELS, Kernel, Launch, ParameterType};
use memscope_wire::env;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CString, c_void};

/// The environment of a simulated device, as `memscope run` sets it.
const SIMULATED: (&str, &str) = (env::SIMULATED, "1");
const WITHOUT_COMPUTE: (&str, &str) = (env::SIMULATOR_COMPUTE, "0");

/// A CUDA device.
pub struct Device {
    handle: sys::CUdevice,
    modules: Vec<sys::CUmodule>,
    functions: HashMap<&'static str, (sys::CUfunction, &'static Kernel)>,
    name: String,
    computes: bool,
    /// What tensors may hold, if that is less than the device; and what they hold.
    budget: Cell<Option<Budget>>,
    ledger: Ledger,
    pool: Option<RefCell<Pool>>,
    // The context is current on the thread that opened the device, and only there.
    not_send: std::marker::PhantomData<*const ()>,
}

impl Device {
    /// Opens device 0 and loads every kernel.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], or [`Error::Driver`] when the context or a module cannot be made.
    pub fn open() -> Result<Device, Error> {
        Device::open_at(0)
    }

    /// Opens the device with this CUDA ordinal and loads every kernel.
    ///
    /// # Errors
    /// As [`Device::open`], and [`Error::TooFewDevices`].
    pub fn open_at(ordinal: usize) -> Result<Device, Error> {
        // SAFETY: loads libcuda, whose initialisers any CUDA program trusts.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoDriver);
        }
        let failed = |call| move |error| driver_error(call, &format!("device {ordinal}"), error);
        match result::init() {
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => return Err(Error::NoDevice),
            other => other.map_err(failed("cuInit"))?,
        }
        let count = result::device::get_count().map_err(failed("cuDeviceGetCount"))? as usize;
        match count {
            0 => return Err(Error::NoDevice),
            count if ordinal >= count => return Err(Error::TooFewDevices { ordinal, count }),
            _ => {}
        }
        let handle = result::device::get(ordinal as i32).map_err(failed("cuDeviceGet"))?;
        let name = result::device::get_name(handle).map_err(failed("cuDeviceGetName"))?;
        // SAFETY: the handle comes from cuDeviceGet; the reference is given back in drop.
        let context = unsafe { result::primary_ctx::retain(handle) }.map_err(failed("cuDevicePrimaryCtxRetain"))?;
        let mut device = Device {
            handle,
            modules: Vec::new(),
            functions: HashMap::new(),
            name,
            computes: !(is_set(SIMULATED) && is_set(WITHOUT_COMPUTE)),
            budget: Cell::new(None),
            ledger: Ledger::default(),
            pool: None,
            not_send: std::marker::PhantomData,
        };
        // SAFETY: the context was retained above and lives as long as the device.
        unsafe { result::ctx::set_current(context) }.map_err(failed("cuCtxSetCurrent"))?;
        device.load_kernels()?;
        Ok(device)
    }

    fn load_kernels(&mut self) -> Result<(), Error> {
        for image in IMAGES {
            let text = CString::new(image.ptx).expect("PTX has no NUL inside");
            // SAFETY: terminated PTX text, which the driver copies.
            let module = unsafe { result::module::load_data(text.as_ptr().cast()) }
                .map_err(|error| driver_error("cuModuleLoadData", image.name, error))?;
            self.modules.push(module);
            for kernel in KERNELS.iter().filter(|kernel| kernel.image.sha256 == image.sha256) {
                let entry = CString::new(kernel.name).expect("an entry name has no NUL inside");
                // SAFETY: the module is loaded and stays so until drop.
                let function = unsafe { result::module::get_function(module, entry) }
                    .map_err(|error| driver_error("cuModuleGetFunction", kernel.name, error))?;
                self.functions.insert(kernel.name, (function, kernel));
            }
        }
        Ok(())
    }

    /// The device's name as the driver spells it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True when memscope simulates the device.
    pub fn is_simulated(&self) -> bool {
        is_set(SIMULATED)
    }

    /// False on a simulated device that skips kernels and copies: what is read back from it means nothing.
    pub fn computes(&self) -> bool {
        self.computes
    }

    /// From now on tensors may hold this fraction of the device's memory, and no more.
    ///
    /// # Errors
    /// [`Error::Driver`] when the driver does not tell how much there is.
    pub fn limit(&self, fraction: MemoryFraction) -> Result<(), Error> {
        let (_, total) = result::mem_get_info().map_err(|error| driver_error("cuMemGetInfo", "device 0", error))?;
        let total = total as u64;
        self.budget.set(Some(Budget { fraction, limit: fraction.of(total), total }));
        Ok(())
    }

    /// The budget that `bytes` more would exceed, and the bytes that are left in it.
    pub(crate) fn exceeded_by(&self, bytes: u64) -> Option<(Budget, u64)> {
        let budget = self.budget.get()?;
        let left = budget.limit.saturating_sub(self.ledger.sum());
        (bytes > left).then_some((budget, left))
    }

    /// Bytes that tensors of `category` hold on it now.
    pub fn live_bytes(&self, category: Category) -> u64 {
        self.ledger.live(category)
    }

    /// The most bytes that tensors of `category` have held since [`Device::forget_peaks`].
    pub fn peak_bytes(&self, category: Category) -> u64 {
        self.ledger.peak(category)
    }

    /// The most bytes that all tensors together have held since [`Device::forget_peaks`].
    pub fn peak_of_all_bytes(&self) -> u64 {
        self.ledger.largest_sum()
    }

    /// Lets peaks count from what tensors hold now.
    pub fn forget_peaks(&self) {
        self.ledger.forget_peaks();
    }

    /// The sums, for tensors to enter themselves.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// From now on memory comes from a caching pool. Nothing may have been allocated yet.
    pub(crate) fn use_pool(&mut self) {
        self.pool = Some(RefCell::default());
    }

    /// What the caching pool has, where there is one.
    pub fn pool(&self) -> Option<PoolCount> {
        self.pool.as_ref().map(|pool| pool.borrow().count())
    }

    /// Gives every segment of the caching pool back in which nothing is live.
    pub(crate) fn empty_cache(&self) {
        if let Some(pool) = &self.pool {
            pool.borrow_mut().empty_cache(&mut Driver);
        }
    }

    /// The address of `bytes` of device memory; none when there is no room.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Option<u64>, result::DriverError> {
        match &self.pool {
            None => Driver.take(bytes),
            Some(pool) => pool.borrow_mut().allocate(bytes, &mut Driver),
        }
    }

    /// Frees what [`Device::allocate`] gave, once.
    pub(crate) fn free(&self, address: u64) {
        match &self.pool {
            None => Driver.give_back(address),
            Some(pool) => pool.borrow_mut().free(address),
        }
    }

    /// Launches a kernel on the default stream.
    ///
    /// # Panics
    /// When the kernel is unknown or the arguments are not of its types: a fault in the caller.
    pub(crate) fn launch(&self, name: &str, launch: Launch, arguments: &[Argument]) -> Result<(), Error> {
        let (function, kernel) = self.functions[name];
        let given = arguments.iter().map(|argument| argument.kind);
        assert!(given.eq(kernel.parameters.iter().map(|parameter| parameter.kind)), "arguments of {name}");
        let mut cells: Vec<*mut c_void> =
            arguments.iter().map(|argument| (&raw const argument.cell).cast_mut().cast()).collect();
        let triple = |[x, y, z]: [u32; 3]| (x, y, z);
        // SAFETY: the types were checked against the kernel's parameters, each cell lives through the call, in which the
        // driver copies it, and a tensor is freed by cuMemFree, which waits for the kernels that use it.
        unsafe {
            result::launch_kernel(
                function,
                triple(launch.grid),
                triple(launch.block),
                launch.shared_bytes,
                result::stream::null(),
                &mut cells,
            )
        }
        .map_err(|error| driver_error("cuLaunchKernel", name, error))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Every tensor holds the device, so that no block is in use any more.
        self.empty_cache();
        for module in self.modules.drain(..) {
            // SAFETY: loaded by this device, and no function of it is used any more. An error changes nothing now.
            let _ = unsafe { result::module::unload(module) };
        }
        // SAFETY: retained in open, once.
        let _ = unsafe { result::primary_ctx::release(self.handle) };
    }
}

/// The driver as a source of memory, on the context of this thread: that of the one [`Device`] that calls it.
struct Driver;

impl Source for Driver {
    type Error = result::DriverError;

    fn take(&mut self, bytes: u64) -> Result<Option<u64>, result::DriverError> {
        // SAFETY: a context is current on this thread; the memory is freed in give_back.
        match unsafe { result::malloc_sync(bytes as usize) } {
            Ok(address) => Ok(Some(address)),
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn give_back(&mut self, address: u64) {
        // SAFETY: `address` came from take and is given back once; the driver waits for the kernels that use it. An error has
        // been reported by an earlier call already.
        let _ = unsafe { result::free_sync(address) };
    }
}

fn is_set((name, value): (&str, &str)) -> bool {
    std::env::var_os(name).is_some_and(|found| found == value)
}

/// A driver call's failure as an error of ours.
pub(crate) fn driver_error(call: &'static str, subject: &str, error: result::DriverError) -> Error {
    Error::Driver { call, subject: subject.to_owned(), result: format!("{:?}", error.0) }
}

/// One argument of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    kind: ParameterType,
    cell: u64,
}

impl From<u32> for Argument {
    fn from(value: u32) -> Self {
        Argument { kind: ParameterType::U32, cell: value.into() }
    }
}

impl From<u64> for Argument {
    fn from(value: u64) -> Self {
        Argument { kind: ParameterType::U64, cell: value }
    }
}

impl From<f32> for Argument {
    fn from(value: f32) -> Self {
        Argument { kind: ParameterType::F32, cell: value.to_bits().into() }
    }
}

impl From<&Tensor> for Argument {
    fn from(tensor: &Tensor) -> Self {
        Argument { kind: ParameterType::Pointer, cell: tensor.address() }
    }
}

impl From<Option<&Tensor>> for Argument {
    fn from(tensor: Option<&Tensor>) -> Self {
        Argument { kind: ParameterType::Pointer, cell: tensor.map_or(0, Tensor::address) }
    }
}
