//! Where the parts of CPython's objects lie, by version.
//!
//! Owns: the numbers, from the public headers of 3.11 and 3.12, and from 3.13 on from what the interpreter says of itself
//! (`_Py_DebugOffsets` at the beginning of `_PyRuntime`). Refuses: versions that nobody has tried, builds without the global lock,
//! and builds for debugging Python itself. `proof.rs` decides whether the numbers are right.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::module;

/// Offsets in bytes, and what else is needed to read a thread's frames.
#[derive(Clone, Copy)]
pub struct Layout {
    /// The thread's state, by the thread's own memory; takes no lock.
    pub thread_state: unsafe extern "C" fn() -> *const u8,
    /// Types that are read here: what is of another type is not read.
    pub code_type: *const u8,
    pub text_type: *const u8,
    pub bytes_type: *const u8,
    pub object_type: usize,
    /// In a thread's state: its innermost frame, or what holds that at `holder_frame`.
    pub thread_frame: usize,
    pub holder_frame: Option<usize>,
    pub frame_code: usize,
    pub frame_previous: usize,
    pub frame_instruction: usize,
    pub frame_owner: usize,
    pub code_first_line: usize,
    pub code_file: usize,
    pub code_function: usize,
    pub code_lines: usize,
    pub code_instructions: usize,
    pub text_length: usize,
    pub text_state: usize,
    /// Where the characters begin, of ASCII and of other text.
    pub text_ascii: usize,
    pub text_other: usize,
    pub bytes_length: usize,
    pub bytes_content: usize,
}

/// `FRAME_OWNED_BY_CSTACK`, since 3.12: a frame that is none of Python's.
pub const OWNED_BY_C: u8 = 3;

struct Shared {
    known: AtomicBool,
    layout: UnsafeCell<MaybeUninit<Layout>>,
}

// SAFETY: written once, by the thread that holds Python's lock, before `known` is set.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared { known: AtomicBool::new(false), layout: UnsafeCell::new(MaybeUninit::uninit()) };

/// The layout of this process's Python, once it is known.
#[inline(always)]
pub fn get() -> Option<&'static Layout> {
    // SAFETY: written before `known` was set, and not after it.
    SHARED.known.load(Acquire).then(|| unsafe { (*SHARED.layout.get()).assume_init_ref() })
}

/// Finds the layout of the version that `sys.hexversion` says; false when it is not known here.
///
/// # Safety
/// The caller holds Python's lock.
pub unsafe fn find(version: u32) -> bool {
    if SHARED.known.load(Acquire) {
        return true;
    }
    // SAFETY: the caller's promise; nobody reads it yet.
    match unsafe { of_version(version) } {
        Some(layout) => {
            // SAFETY: as above.
            unsafe { (*SHARED.layout.get()).write(layout) };
            SHARED.known.store(true, Release);
            true
        }
        None => false,
    }
}

/// # Safety
/// This process's Python has this version.
unsafe fn of_version(version: u32) -> Option<Layout> {
    let symbol = |name| Some(module::global_symbol(name)).filter(|found| !found.is_null());
    type ThreadState = unsafe extern "C" fn() -> *const u8;
    let shared = Layout {
        // SAFETY: PyThreadState *PyGILState_GetThisThreadState(void).
        thread_state: unsafe {
            core::mem::transmute::<*mut c_void, ThreadState>(symbol(c"PyGILState_GetThisThreadState")?)
        },
        code_type: symbol(c"PyCode_Type")?.cast(),
        text_type: symbol(c"PyUnicode_Type")?.cast(),
        bytes_type: symbol(c"PyBytes_Type")?.cast(),
        // PyObject, PyVarObject, PyASCIIObject and PyBytesObject of 3.11.
        object_type: 8,
        text_length: 16,
        text_state: 32,
        text_ascii: 48,
        text_other: 72,
        bytes_length: 16,
        bytes_content: 32,
        // PyThreadState and _PyCFrame.
        thread_frame: 56,
        holder_frame: Some(8),
        // _PyInterpreterFrame.
        frame_code: 32,
        frame_previous: 48,
        frame_instruction: 56,
        frame_owner: 69,
        // PyCodeObject.
        code_first_line: 72,
        code_file: 112,
        code_function: 128,
        code_lines: 136,
        code_instructions: 184,
    };
    match version >> 16 {
        0x030b => Some(shared),
        0x030c => Some(Layout {
            text_ascii: 40,
            text_other: 56,
            holder_frame: Some(0),
            frame_code: 0,
            frame_previous: 8,
            frame_owner: 70,
            code_first_line: 68,
            code_instructions: 192,
            ..shared
        }),
        // SAFETY: `_PyRuntime` begins with the offsets since 3.13, and is larger than they are.
        0x030d => unsafe { told(symbol(c"_PyRuntime")?.cast(), version, shared) },
        _ => None,
    }
}

/// What Python 3.13 says of itself.
///
/// # Safety
/// `_Py_DebugOffsets` of 3.13 lies there, if its first words say so.
unsafe fn told(offsets: *const u64, version: u32, shared: Layout) -> Option<Layout> {
    const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");
    // SAFETY: the caller's promise: 75 words.
    let word = |index: usize| unsafe { offsets.add(index).read() };
    let offset = |index: usize| word(index) as usize;
    if word(0) != COOKIE || word(1) != version as u64 || word(2) != 0 {
        return None;
    }
    Some(Layout {
        thread_frame: offset(23),
        holder_frame: None,
        frame_previous: offset(29),
        frame_code: offset(30),
        frame_instruction: offset(31),
        frame_owner: offset(33),
        code_file: offset(35),
        code_function: offset(37),
        code_lines: offset(38),
        code_first_line: offset(39),
        code_instructions: offset(43),
        object_type: offset(45),
        bytes_length: offset(65),
        bytes_content: offset(66),
        text_state: offset(68),
        text_length: offset(69),
        text_ascii: offset(70),
        // PyCompactUnicodeObject: two words more.
        text_other: offset(70) + 16,
        ..shared
    })
}
