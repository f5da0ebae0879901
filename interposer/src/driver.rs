//! What the hooks ask the driver themselves: the device of an allocation, free memory, a device's identity.
//!
//! Owns: those calls, made to the driver's own functions and not through our exports, with `errno` as the program's call left
//! it. Refuses: to ask anything in the hook of a free (some programs free without a current context), and to guess: a device
//! that the driver does not tell is [`NO_DEVICE`].

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use memscope_wire::Event;
use memscope_wire::event::NO_DEVICE;

use crate::state::State;
use crate::{log, module, thread};

/// CUDA_SUCCESS.
pub const SUCCESS: c_int = 0;
/// CUDA_ERROR_OUT_OF_MEMORY.
pub const OUT_OF_MEMORY: c_int = 2;
/// CUDA_ERROR_NOT_FOUND: the answer of a hook behind which there is no driver.
pub const NOT_FOUND: c_int = 500;

/// A function of the driver that we call and do not hook.
struct Question {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

const ABSENT: *mut c_void = core::ptr::without_provenance_mut(1);

impl Question {
    const fn new(name: &'static CStr) -> Question {
        Question { name, address: AtomicPtr::new(null_mut()) }
    }

    #[inline(always)]
    fn function(&self) -> Option<*const c_void> {
        let known = self.address.load(Acquire);
        if known > ABSENT { Some(known) } else { self.search(known) }
    }

    #[cold]
    #[inline(never)]
    fn search(&self, known: *mut c_void) -> Option<*const c_void> {
        if known == ABSENT {
            return None;
        }
        let found = module::driver_symbol(self.name);
        self.address.store(if found.is_null() { ABSENT } else { found }, Release);
        (!found.is_null()).then_some(found.cast_const())
    }
}

static CURRENT_CONTEXT: Question = Question::new(c"cuCtxGetCurrent");
static PRIMARY_STATE: Question = Question::new(c"cuDevicePrimaryCtxGetState");
static ADDRESS_RANGE: Question = Question::new(c"cuMemGetAddressRange_v2");
static IS_CAPTURING: Question = Question::new(c"cuStreamIsCapturing");
static GRAPH_ATTRIBUTE: Question = Question::new(c"cuDeviceGetGraphMemAttribute");
static CURRENT_POOL: Question = Question::new(c"cuDeviceGetMemPool");
static POOL_ATTRIBUTE: Question = Question::new(c"cuMemPoolGetAttribute");
static CONTEXT_DEVICE: Question = Question::new(c"cuCtxGetDevice");
static POINTER_ATTRIBUTE: Question = Question::new(c"cuPointerGetAttribute");
static MEMORY_INFO: Question = Question::new(c"cuMemGetInfo_v2");
static DEVICE_UUID: [Question; 2] = [Question::new(c"cuDeviceGetUuid_v2"), Question::new(c"cuDeviceGetUuid")];
static DEVICE_BYTES: Question = Question::new(c"cuDeviceTotalMem_v2");

/// Runs `ask` and puts `errno` back.
#[inline(always)]
pub fn preserving_errno<T>(ask: impl FnOnce() -> T) -> T {
    // SAFETY: the address of the thread's errno is valid as long as the thread lives.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let answer = ask();
        *place = before;
        answer
    }
}

/// Ordinal of the calling thread's current device. The log is told of the thread's context when it is another than at its last
/// allocation; as long as it is the same, its device is known.
#[inline(always)]
pub fn current_device(state: &State) -> u32 {
    let Some(function) = CURRENT_CONTEXT.function() else { return device_of_context() };
    let mut context = 0_u64;
    // SAFETY: CUresult cuCtxGetCurrent(CUcontext *pctx); a context is a pointer.
    let result = unsafe { transmute::<*const c_void, unsafe extern "C" fn(*mut u64) -> c_int>(function)(&mut context) };
    if result != SUCCESS || context == 0 {
        return NO_DEVICE;
    }
    let thread = thread::current();
    if context == thread.context.get() && state.contexts_ended.load(Relaxed) == thread.contexts_ended.get() {
        return thread.context_device.get();
    }
    enter_context(state, context)
}

#[cold]
#[inline(never)]
fn enter_context(state: &State, context: u64) -> u32 {
    let ended = state.contexts_ended.load(Relaxed);
    let device = device_of_context();
    introduce(state, device);
    // The first event of a thread in a log forgets what was said in another one.
    if log::append(&Event::Context { context, device }).is_some() {
        let thread = thread::current();
        thread.context.set(context);
        thread.context_device.set(device);
        thread.contexts_ended.set(ended);
    }
    device
}

/// True when the primary context of a device is alive; also when the driver does not tell.
pub fn primary_is_alive(device: c_int) -> bool {
    let Some(function) = PRIMARY_STATE.function() else { return true };
    let (mut flags, mut active) = (0_u32, 0);
    // SAFETY: CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active).
    let result = unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(c_int, *mut u32, *mut c_int) -> c_int>(function)(
            device,
            &mut flags,
            &mut active,
        )
    };
    result != SUCCESS || active != 0
}

/// Bytes of the memory that holds `address`; 0 when the driver does not tell.
pub fn bytes_at(address: u64) -> u64 {
    let Some(function) = ADDRESS_RANGE.function() else { return 0 };
    let (mut base, mut bytes) = (0_u64, 0_usize);
    // SAFETY: CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr).
    let result = unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(*mut u64, *mut usize, u64) -> c_int>(function)(
            &mut base, &mut bytes, address,
        )
    };
    if result == SUCCESS { bytes as u64 } else { 0 }
}

/// True when the stream makes a graph of what it is given. The legacy stream cannot be asked while another one captures: it
/// captures nothing itself then.
pub fn is_capturing(stream: u64) -> bool {
    let Some(function) = IS_CAPTURING.function() else { return false };
    let mut status: c_int = 0;
    // SAFETY: CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus), which is an enumeration.
    let result = unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(u64, *mut c_int) -> c_int>(function)(stream, &mut status)
    };
    result == SUCCESS && status != 0
}

/// Bytes that the driver holds for graphs on a device; `None` when it does not tell.
pub fn graph_bytes(device: u32) -> Option<u64> {
    const RESERVED_MEM_CURRENT: c_int = 2;
    let function = GRAPH_ATTRIBUTE.function()?;
    let mut bytes = 0_u64;
    // SAFETY: CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value); the value is a
    // cuuint64_t.
    let result = unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(c_int, c_int, *mut u64) -> c_int>(function)(
            device as c_int,
            RESERVED_MEM_CURRENT,
            &mut bytes,
        )
    };
    (result == SUCCESS).then_some(bytes)
}

/// The pool from which cuMemAllocAsync takes on a device; 0 when the driver does not tell.
pub fn current_pool(device: u32) -> u64 {
    let Some(function) = CURRENT_POOL.function() else { return 0 };
    let mut pool = 0_u64;
    // SAFETY: CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev); a pool is a pointer.
    let result = unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(*mut u64, c_int) -> c_int>(function)(&mut pool, device as c_int)
    };
    if result == SUCCESS { pool } else { 0 }
}

/// Bytes that a pool keeps beyond those that are allocated from it; `None` when the driver does not tell.
pub fn kept_by_pool(pool: u64) -> Option<u64> {
    const RESERVED_MEM_CURRENT: c_int = 5;
    const USED_MEM_CURRENT: c_int = 7;
    let function = POOL_ATTRIBUTE.function()?;
    let ask = |attribute| {
        let mut bytes = 0_u64;
        // SAFETY: CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value); the values of these
        // attributes are a cuuint64_t.
        let result = unsafe {
            transmute::<*const c_void, unsafe extern "C" fn(u64, c_int, *mut u64) -> c_int>(function)(
                pool, attribute, &mut bytes,
            )
        };
        (result == SUCCESS).then_some(bytes)
    };
    // In between another thread may allocate.
    Some(ask(RESERVED_MEM_CURRENT)?.saturating_sub(ask(USED_MEM_CURRENT)?))
}

/// Ordinal of the device of the thread's current context.
fn device_of_context() -> u32 {
    let Some(function) = CONTEXT_DEVICE.function() else { return NO_DEVICE };
    let mut device: c_int = -1;
    // SAFETY: CUresult cuCtxGetDevice(CUdevice *device).
    let result =
        unsafe { transmute::<*const c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(function)(&mut device) };
    ordinal(result, device)
}

/// Ordinal of the device that the memory at `address` is on.
pub fn device_of(address: u64) -> u32 {
    const DEVICE_ORDINAL: c_int = 9;
    let Some(function) = POINTER_ATTRIBUTE.function() else { return NO_DEVICE };
    let mut device: c_int = -1;
    // SAFETY: CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr); the attribute is an
    // int.
    let result = unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(*mut c_int, c_int, u64) -> c_int>(function)(
            &mut device,
            DEVICE_ORDINAL,
            address,
        )
    };
    ordinal(result, device)
}

#[inline(always)]
fn ordinal(result: c_int, device: c_int) -> u32 {
    if result == SUCCESS && device >= 0 { device as u32 } else { NO_DEVICE }
}

/// Free and total bytes of the current device; zeroes when the driver does not tell.
pub fn memory_info() -> (u64, u64) {
    let Some(function) = MEMORY_INFO.function() else { return (0, 0) };
    let (mut free, mut total) = (0_usize, 0_usize);
    // SAFETY: CUresult cuMemGetInfo_v2(size_t *free, size_t *total).
    let result = unsafe {
        transmute::<*const c_void, unsafe extern "C" fn(*mut usize, *mut usize) -> c_int>(function)(
            &mut free, &mut total,
        )
    };
    if result == SUCCESS { (free as u64, total as u64) } else { (0, 0) }
}

/// Makes sure that the log says which device `ordinal` is, before anything in it refers to it.
#[inline(always)]
pub fn introduce(state: &State, ordinal: u32) {
    if ordinal < u64::BITS && state.devices.load(Relaxed) & 1 << ordinal == 0 {
        describe(state, ordinal);
    }
}

#[cold]
#[inline(never)]
fn describe(state: &State, ordinal: u32) {
    let mut uuid = [0_u8; 16];
    for question in &DEVICE_UUID {
        let Some(function) = question.function() else { continue };
        // SAFETY: CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device); a CUuuid is 16 bytes.
        let result = unsafe {
            transmute::<*const c_void, unsafe extern "C" fn(*mut [u8; 16], c_int) -> c_int>(function)(
                &mut uuid,
                ordinal as c_int,
            )
        };
        if result == SUCCESS {
            break;
        }
    }
    let mut total_bytes = 0_usize;
    if let Some(function) = DEVICE_BYTES.function() {
        // SAFETY: CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device).
        unsafe {
            transmute::<*const c_void, unsafe extern "C" fn(*mut usize, c_int) -> c_int>(function)(
                &mut total_bytes,
                ordinal as c_int,
            )
        };
    }
    // Two threads may both come here: the second record says the same.
    if log::append(&Event::Device { ordinal, total_bytes: total_bytes as u64, uuid }).is_some() {
        state.devices.fetch_or(1 << ordinal, Relaxed);
    }
}
