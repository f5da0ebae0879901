//! The one table of hooked functions: a function is one row.
//!
//! Owns: each row's names, its hook, and the real function behind it. Exports, look-ups by name, look-ups by pointer and the
//! log's Function records are all made from these rows. Refuses: functions whose pointers are 32-bit (`cuMemAlloc`,
//! `cuMemFree`, … without `_v2`, kept by drivers for programs built before CUDA 3.2): they are not exported from here, so
//! that such a program meets the driver alone.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use memscope_wire::Event;

use crate::{hooks, log, module, proc_address};

/// Calls the macro `$use` with all rows. In a row:
/// the exported name = the shape of the hook (the kind of memory it gives, or of what it makes), the name that cuGetProcAddress knows, the CUDA
/// version since which that name means this function, and whether it is the variant for per-thread default streams.
macro_rules! with_rows {
    ($use:ident) => {
        $use! {
            cuMemAlloc_v2                = linear(Device),        "cuMemAlloc",              3020, false;
            cuMemAllocPitch_v2           = pitched(Device),       "cuMemAllocPitch",         3020, false;
            cuMemAllocManaged            = flagged(Managed),      "cuMemAllocManaged",       6000, false;
            cuMemFree_v2                 = free(),                "cuMemFree",               3020, false;
            cuMemAllocAsync              = ordered(Pool),         "cuMemAllocAsync",        11020, false;
            cuMemAllocAsync_ptsz         = ordered(Pool),         "cuMemAllocAsync",        11020, true;
            cuMemAllocFromPoolAsync      = pooled(Pool),          "cuMemAllocFromPoolAsync", 11020, false;
            cuMemAllocFromPoolAsync_ptsz = pooled(Pool),          "cuMemAllocFromPoolAsync", 11020, true;
            cuMemFreeAsync               = ordered_free(),        "cuMemFreeAsync",         11020, false;
            cuMemFreeAsync_ptsz          = ordered_free(),        "cuMemFreeAsync",         11020, true;
            cuMemHostAlloc               = host_flagged(Host),    "cuMemHostAlloc",          2020, false;
            cuMemAllocHost_v2            = host(Host),            "cuMemAllocHost",          3020, false;
            cuMemFreeHost                = host_free(),           "cuMemFreeHost",           2000, false;
            cuMemHostRegister_v2         = registered(Host),      "cuMemHostRegister",       6050, false;
            cuMemHostUnregister          = host_free(),           "cuMemHostUnregister",     4000, false;
            cuMemCreate                  = created(),             "cuMemCreate",            10020, false;
            cuMemRelease                 = handle_release(),      "cuMemRelease",           10020, false;
            cuMemMap                     = mapped(),              "cuMemMap",               10020, false;
            cuMemUnmap                   = unmapped(),            "cuMemUnmap",             10020, false;
            cuArrayCreate_v2             = array(Flat),           "cuArrayCreate",           3020, false;
            cuArray3DCreate_v2           = array(Solid),          "cuArray3DCreate",         3020, false;
            cuArrayDestroy               = handle_release(),      "cuArrayDestroy",          2000, false;
            cuMipmappedArrayCreate       = levels(),              "cuMipmappedArrayCreate",  5000, false;
            cuMipmappedArrayDestroy      = handle_release(),      "cuMipmappedArrayDestroy", 5000, false;
            cuCtxCreate_v2               = context(),             "cuCtxCreate",             3020, false;
            cuCtxCreate_v3               = context_on(),          "cuCtxCreate",            11040, false;
            cuCtxCreate_v4               = context_of(),          "cuCtxCreate",            12050, false;
            cuCtxDestroy_v2              = context_end(),         "cuCtxDestroy",            4000, false;
            cuDevicePrimaryCtxRetain     = primary(),             "cuDevicePrimaryCtxRetain", 7000, false;
            cuDevicePrimaryCtxRelease    = primary_end(),         "cuDevicePrimaryCtxRelease", 7000, false;
            cuDevicePrimaryCtxRelease_v2 = primary_end(),         "cuDevicePrimaryCtxRelease", 11000, false;
            cuDevicePrimaryCtxReset      = primary_end(),         "cuDevicePrimaryCtxReset", 7000, false;
            cuDevicePrimaryCtxReset_v2   = primary_end(),         "cuDevicePrimaryCtxReset", 11000, false;
            cuMemRetainAllocationHandle  = retained(),            "cuMemRetainAllocationHandle", 11000, false;
            cuMemImportFromShareableHandle = received(),            "cuMemImportFromShareableHandle", 10020, false;
            cuIpcOpenMemHandle           = opened(),              "cuIpcOpenMemHandle", 4010, false;
            cuIpcOpenMemHandle_v2        = opened(),              "cuIpcOpenMemHandle", 11000, false;
            cuIpcCloseMemHandle          = free(),                "cuIpcCloseMemHandle", 4010, false;
            cuMemPoolCreate              = pool(Pool),            "cuMemPoolCreate", 11020, false;
            cuMemPoolDestroy             = pool_end(),            "cuMemPoolDestroy", 11020, false;
            cuMemPoolTrimTo              = pool_trim(),           "cuMemPoolTrimTo", 11020, false;
            cuMemPoolSetAttribute        = pool_setting(),        "cuMemPoolSetAttribute", 11020, false;
            cuStreamSynchronize          = wait_for(),            "cuStreamSynchronize", 2000, false;
            cuStreamSynchronize_ptsz     = wait_for(),            "cuStreamSynchronize", 7000, true;
            cuEventSynchronize           = wait_for(),            "cuEventSynchronize", 2000, false;
            cuCtxSynchronize             = wait(),                "cuCtxSynchronize", 2000, false;
            cuMemPoolImportFromShareableHandle = object_shared(Pool),   "cuMemPoolImportFromShareableHandle", 11020, false;
            cuMemPoolImportPointer       = pointed(),             "cuMemPoolImportPointer", 11020, false;
            cuImportExternalMemory       = object(External),      "cuImportExternalMemory", 10000, false;
            cuDestroyExternalMemory      = object_end(External),  "cuDestroyExternalMemory", 10000, false;
            cuExternalMemoryGetMappedBuffer = buffered(),            "cuExternalMemoryGetMappedBuffer", 10000, false;
            cuExternalMemoryGetMappedMipmappedArray = levels_of(),           "cuExternalMemoryGetMappedMipmappedArray", 10000, false;
            cuModuleLoad                 = object(Module),        "cuModuleLoad", 2000, false;
            cuModuleLoadData             = object(Module),        "cuModuleLoadData", 2000, false;
            cuModuleLoadDataEx           = object_with_options(Module), "cuModuleLoadDataEx", 2010, false;
            cuModuleLoadFatBinary        = object(Module),        "cuModuleLoadFatBinary", 2000, false;
            cuModuleUnload               = object_end(Module),    "cuModuleUnload", 2000, false;
            cuLibraryLoadData            = object_with_two_lists(Library), "cuLibraryLoadData", 12000, false;
            cuLibraryLoadFromFile        = object_with_two_lists(Library), "cuLibraryLoadFromFile", 12000, false;
            cuLibraryUnload              = object_end(Library),   "cuLibraryUnload", 12000, false;
            cuMulticastCreate            = object(Multicast),     "cuMulticastCreate", 12010, false;
            cuGraphInstantiate           = object_or_text(Graph), "cuGraphInstantiate", 10000, false;
            cuGraphInstantiate_v2        = object_or_text(Graph), "cuGraphInstantiate", 11000, false;
            cuGraphInstantiateWithFlags  = object_of(Graph),      "cuGraphInstantiate", 12000, false;
            cuGraphInstantiateWithParams = object_by(Graph),      "cuGraphInstantiateWithParams", 12000, false;
            cuGraphInstantiateWithParams_ptsz = object_by(Graph),      "cuGraphInstantiateWithParams", 12000, true;
            cuGraphExecDestroy           = object_end(Graph),     "cuGraphExecDestroy", 10000, false;
            cuGraphAddMemAllocNode       = alloc_node(),          "cuGraphAddMemAllocNode", 11040, false;
            cuGraphAddNode               = node(),                "cuGraphAddNode", 12020, false;
            cuGraphAddNode_v2            = node_with_edges(),     "cuGraphAddNode", 12030, false;
            cuGraphUpload                = launch(),              "cuGraphUpload", 11010, false;
            cuGraphUpload_ptsz           = launch(),              "cuGraphUpload", 11010, true;
            cuGraphLaunch                = launch(),              "cuGraphLaunch", 10000, false;
            cuGraphLaunch_ptsz           = launch(),              "cuGraphLaunch", 10000, true;
            cuDeviceGraphMemTrim         = graph_trim(),          "cuDeviceGraphMemTrim", 11040, false;
            cuStreamBeginCapture         = capture(),             "cuStreamBeginCapture", 10000, false;
            cuStreamBeginCapture_ptsz    = capture(),             "cuStreamBeginCapture", 10000, true;
            cuStreamBeginCapture_v2      = capture_in_mode(),     "cuStreamBeginCapture", 10010, false;
            cuStreamBeginCapture_v2_ptsz = capture_in_mode(),     "cuStreamBeginCapture", 10010, true;
            cuStreamBeginCaptureToGraph  = capture_into(),        "cuStreamBeginCaptureToGraph", 12030, false;
            cuStreamBeginCaptureToGraph_ptsz = capture_into(),        "cuStreamBeginCaptureToGraph", 12030, true;
            cuGetProcAddress             = look_up(),             "cuGetProcAddress",       11030, false;
            cuGetProcAddress_v2          = look_up_and_tell(),    "cuGetProcAddress",       12000, false;
        }
    };
}
pub(crate) use with_rows;

/// A hooked function.
pub struct Function {
    /// Exported name.
    pub name: &'static CStr,
    /// Name that cuGetProcAddress knows.
    pub base: &'static CStr,
    /// CUDA version since which `base` means this function.
    pub since: i32,
    /// The variant whose default stream is the thread's own.
    pub per_thread: bool,
    /// Our function of that name.
    hook: *const c_void,
    /// The real function: null before it was looked for, [`ABSENT`] when the driver has none.
    real: AtomicPtr<c_void>,
}

// SAFETY: all fields but `real` never change, and `real` is atomic.
unsafe impl Sync for Function {}

/// What stands for "the driver has no such function".
const ABSENT: *mut c_void = core::ptr::without_provenance_mut(1);

const fn terminated(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name in the table holds a NUL"),
    }
}

macro_rules! define_rows {
    ($($name:ident = $shape:ident($($what:ident)?), $base:literal, $since:literal, $per_thread:literal;)*) => {
        /// A row's number, as in the log.
        #[allow(non_camel_case_types, reason = "NVIDIA's spelling")]
        #[repr(u16)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Row { $($name),* }

        /// The rows.
        pub static FUNCTIONS: [Function; [$(Row::$name),*].len()] = [$(
            Function {
                name: terminated(concat!(stringify!($name), "\0")),
                base: terminated(concat!($base, "\0")),
                since: $since,
                per_thread: $per_thread,
                hook: define_rows!(@hook $shape $name) as *const c_void,
                real: AtomicPtr::new(null_mut()),
            }
        ),*];
    };
    (@hook look_up $name:ident) => { proc_address::$name };
    (@hook look_up_and_tell $name:ident) => { proc_address::$name };
    (@hook $shape:ident $name:ident) => { hooks::$name };
}
with_rows!(define_rows);

impl Row {
    /// The real function of this row, looked for at the first call; `None` when there is none.
    #[inline(always)]
    pub fn real(self) -> Option<*const c_void> {
        let function = &FUNCTIONS[self as usize];
        let real = function.real.load(Acquire);
        if real > ABSENT { Some(real) } else { function.search(module::next_then_driver) }
    }
}

impl Function {
    /// The real function, looked for in the driver itself if it is not known yet.
    pub fn driver_export(&self) -> Option<*const c_void> {
        self.search(module::driver_symbol)
    }

    /// The real function if it is known.
    pub fn known(&self) -> Option<*const c_void> {
        let real = self.real.load(Acquire);
        (real > ABSENT).then_some(real.cast_const())
    }

    #[cold]
    #[inline(never)]
    fn search(&self, look_up: fn(&CStr) -> *mut c_void) -> Option<*const c_void> {
        let real = self.real.load(Acquire);
        if real == ABSENT {
            return None;
        }
        if real.is_null() {
            let found = look_up(self.name);
            if !found.is_null() {
                self.adopt(found);
            } else if module::driver_is_loaded() {
                let _ = self.real.compare_exchange(null_mut(), ABSENT, AcqRel, Acquire);
            }
        }
        self.known()
    }

    /// What to give to a program that would get `real`: our hook, if `real` is what the hook calls. When the hook calls
    /// another function already (a second libcuda), that program is left alone, and a fault is counted.
    pub fn adopt(&self, real: *mut c_void) -> *mut c_void {
        let mut known = self.real.load(Acquire);
        while known <= ABSENT {
            match self.real.compare_exchange(known, real, AcqRel, Acquire) {
                Ok(_) => {
                    module::pin(real);
                    known = real;
                }
                Err(other) => known = other,
            }
        }
        if known == real {
            self.hook.cast_mut()
        } else {
            log::fault();
            real
        }
    }

    /// Our function of this name.
    pub fn hook(&self) -> *mut c_void {
        self.hook.cast_mut()
    }
}

/// The row with this exported name.
pub fn find(name: &CStr) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Gives `emit` the log's description of each row.
pub fn describe(emit: impl Fn(&Event)) {
    for (row, function) in FUNCTIONS.iter().enumerate() {
        emit(&description(row as u16, function.name));
    }
}

/// The log's description of a row: its name, cut to what fits.
pub fn description(row: u16, text: &CStr) -> Event {
    let mut name = [0; 40];
    for (place, byte) in name.iter_mut().zip(text.to_bytes()) {
        *place = *byte;
    }
    Event::Function { row, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_exact_names_only() {
        assert!(std::ptr::eq(find(c"cuMemFree_v2").unwrap(), &FUNCTIONS[Row::cuMemFree_v2 as usize]));
        for name in [c"cuMemFree", c"cuMemFree_v2x", c"cuMemFree_v", c"", c"cu", c"cudnnCreate"] {
            assert!(find(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn exported_names_begin_with_the_name_that_the_driver_knows() {
        for function in &FUNCTIONS {
            assert!(function.name.to_bytes().starts_with(function.base.to_bytes()), "{:?}", function.name);
            assert_eq!(function.per_thread, function.name.to_bytes().ends_with(b"_ptsz"), "{:?}", function.name);
            assert!(function.name.count_bytes() < 40, "{:?} does not fit into its record", function.name);
        }
    }
}
