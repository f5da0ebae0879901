//! The hooks of PyTorch's allocators: functions of libc10 that every allocation of a tensor passes.
//!
//! Owns: those exported names, with PyTorch's own mangling, and what is recorded of a call: CPU tensors as pageable host
//! memory, tensors on a device as blocks inside what the driver granted, a refusal as the report of out-of-memory. Refuses:
//! Python (`python.rs`), and to stand in the way: a C++ exception may leave any of these functions, so that no Rust frame may
//! be on the stack below the real one. Each hook is therefore a few instructions that call Rust before or after it.
//!
//! Names and signatures are PyTorch's since 2.1; a version without them is not hooked, which memscope's report says.
//! The reports run under the lock of PyTorch's allocator: nothing here waits, allocates or takes Python's lock.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};
use memscope_wire::event::NO_DEVICE;
use memscope_wire::{Category, Event, MemoryKind, Origin, TextId};

use crate::before::told_before;
use crate::driver::{self, OUT_OF_MEMORY};
use crate::table::{self, FUNCTIONS};
use crate::{log, module, scope, state, thread};

/// Names in the log: they follow the rows of the driver's functions.
const NAMES: [&CStr; 3] = [c"c10::alloc_cpu", c"c10::free_cpu", c"c10::reportOutOfMemoryToProfiler"];

/// Number of a row of [`NAMES`] in the log.
const fn row(index: usize) -> u16 {
    (FUNCTIONS.len() + index) as u16
}

/// `c10::Device`, as it travels in a register: a type and an index.
#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i8,
    index: i8,
}

/// `c10::DeviceType::CUDA`.
const CUDA: i8 = 1;

/// The real function behind a hook.
struct Real {
    symbol: &'static CStr,
    library: &'static CStr,
    address: AtomicPtr<c_void>,
}

const C10: &CStr = c"libc10.so";

impl Real {
    const fn new(library: &'static CStr, symbol: &'static CStr) -> Real {
        Real { symbol, library, address: AtomicPtr::new(null_mut()) }
    }

    /// The function; null when PyTorch is not loaded, which nobody who calls can see.
    #[inline(always)]
    fn get(&self) -> *mut c_void {
        let known = self.address.load(Acquire);
        if known.is_null() { self.search() } else { known }
    }

    #[cold]
    #[inline(never)]
    fn search(&self) -> *mut c_void {
        // Python loads its modules outside the global scope, where "the next one" is not found.
        let mut found = module::next_symbol(self.symbol);
        if found.is_null() {
            found = module::symbol_of(self.library, self.symbol);
        }
        self.address.store(found, Release);
        found
    }
}

static ALLOC_CPU: Real = Real::new(C10, c"_ZN3c109alloc_cpuEm");
static FREE_CPU: Real = Real::new(C10, c"_ZN3c108free_cpuEPv");
static REPORT_MEMORY: Real = Real::new(C10, c"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
static REPORT_OUT_OF_MEMORY: Real = Real::new(C10, c"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
static CURRENT_STREAM: Real = Real::new(c"libc10_cuda.so", c"_ZN3c104cuda20getCurrentCUDAStreamEa");

/// `void *c10::alloc_cpu(size_t bytes)`.
///
/// # Safety
/// As PyTorch's.
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(export_name = "_ZN3c109alloc_cpuEm"))]
pub unsafe extern "C" fn alloc_cpu(bytes: usize) -> *mut c_void {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbx, -16",
        "mov rbx, rdi",
        "call {find}",
        "test rax, rax",
        "jz 2f",
        "mov rdi, rbx",
        "call rax",
        "mov rdi, rax",
        "mov rsi, rbx",
        "mov rbx, rax",
        "call {record}",
        "mov rax, rbx",
        "2:",
        "pop rbx",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        find = sym find_alloc_cpu,
        record = sym cpu_allocated,
    )
}

extern "C" fn find_alloc_cpu() -> *mut c_void {
    ALLOC_CPU.get()
}

extern "C" fn cpu_allocated(address: u64, bytes: u64) {
    if address == 0 || state::recording().is_none() {
        return;
    }
    scope::settle();
    log::append(&Event::Alloc {
        address,
        bytes,
        requested: bytes,
        stream: 0,
        device: NO_DEVICE,
        row: row(0),
        memory: MemoryKind::Pageable,
    });
    tell(address);
}

/// What the thread has just made is what the shim says that it makes, if it does.
#[inline(always)]
fn tell(address: u64) {
    let thread = thread::current();
    if thread.making.get() != 0 {
        let category = Category::from_number(thread.making.get() as u8);
        log::append(&Event::Tag { address, name: TextId(thread.making_name.get()), category, origin: Origin::Hooked });
    }
}

/// In the place of a function that is nowhere: nobody who calls it can see that.
extern "C" fn nothing() {}

told_before! {
    /// `void c10::free_cpu(void *address)`.
    fn free_cpu() = "_ZN3c108free_cpuEPv", cpu_freed, else nothing
}

extern "C" fn cpu_freed(address: u64) -> *mut c_void {
    if address != 0 {
        log::append(&Event::Free { address, stream: 0, row: row(1) });
    }
    FREE_CPU.get()
}

told_before! {
    /// `void c10::reportMemoryUsageToProfiler(void *address, int64_t bytes, size_t allocated, size_t reserved, Device device)`:
    /// `bytes` is negative for a free.
    fn report_memory() = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", reported, else nothing
}

extern "C" fn reported(address: u64, bytes: i64, _allocated: u64, _reserved: u64, device: Device) -> *mut c_void {
    // CPU tensors come through alloc_cpu, also when no profiler of PyTorch's is on.
    if device.kind == CUDA && address != 0 {
        let origin = Origin::Hooked;
        if bytes < 0 {
            log::append(&Event::BlockFree { address, origin });
        } else if state::recording().is_some() {
            scope::settle();
            let (bytes, stream) = (bytes as u64, driver::preserving_errno(|| current_stream(device.index)));
            log::append(&Event::BlockAlloc { address, bytes, requested: bytes, stream, origin });
            tell(address);
        }
    }
    REPORT_MEMORY.get()
}

told_before! {
    /// `void c10::reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated, size_t reserved, Device device)`.
    fn report_out_of_memory() = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", out_of_memory, else nothing
}

extern "C" fn out_of_memory(requested: i64, _allocated: u64, _reserved: u64, device: Device) -> *mut c_void {
    if device.kind == CUDA
        && let Some((state, _)) = state::recording()
    {
        scope::settle();
        let ordinal = u32::from(device.index.unsigned_abs());
        let (free, total) = driver::preserving_errno(driver::memory_info);
        driver::introduce(state, ordinal);
        log::append(&Event::AllocFailed {
            requested: requested.unsigned_abs(),
            free,
            total,
            device: ordinal,
            result: OUT_OF_MEMORY,
            row: row(2),
            memory: MemoryKind::Device,
        });
    }
    REPORT_OUT_OF_MEMORY.get()
}

/// Number of the stream that PyTorch works on in this thread.
fn current_stream(device: i8) -> u64 {
    /// `c10::cuda::CUDAStream`: device, and the stream's id.
    #[repr(C)]
    struct Stream {
        device: u64,
        id: i64,
    }
    let function = CURRENT_STREAM.get();
    if function.is_null() {
        return 0;
    }
    // SAFETY: CUDAStream getCurrentCUDAStream(DeviceIndex), which gives two words in registers.
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn(i8) -> Stream>(function)(device) }.id as u64
}

/// Gives `emit` the log's description of each row.
pub fn describe(emit: impl Fn(&Event)) {
    for (index, name) in NAMES.iter().enumerate() {
        emit(&table::description(row(index), name));
    }
}

/// True when PyTorch is there and lacks a function that is hooked here.
pub fn is_incomplete() -> bool {
    [&ALLOC_CPU, &FREE_CPU, &REPORT_MEMORY, &REPORT_OUT_OF_MEMORY].iter().any(|real| real.get().is_null())
}
