//! How NVTX finds this library, and the functions that it then calls.
//!
//! Owns: `InitializeInjectionNvtx2` (of programs with NVTX 3 in them, and of libnvToolsExt.so), as NVTX's public headers describe it:
//! `memscope run` names this library in NVTX_INJECTION64_PATH unless the program's environment names another one. And the same ranges
//! from the simulated CUDA libraries. Refuses: functions that say nothing of memory: NVTX does nothing for them.
//!
//! To the program, a push says that it has no depth, as it does without a profiler.

use core::ffi::{c_char, c_int, c_uint, c_void};
use memscope_wire::text::MAX_TEXT_BYTES;

use super::strings;
use crate::creation::bytes_of;

/// `NVTX_NO_PUSH_POP_TRACKING`.
const NO_DEPTH: c_int = -2;

/// `nvtxEventAttributes_t`, as far as its message.
#[repr(C)]
pub struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color: [u32; 2],
    payload: [u64; 2],
    message_type: i32,
    message: *const c_void,
}

const _: () = assert!(size_of::<Attributes>() == 48);

/// A text of at most [`MAX_TEXT_BYTES`], put together.
struct Text {
    bytes: [u8; MAX_TEXT_BYTES],
    used: usize,
}

impl Text {
    const fn new() -> Text {
        Text { bytes: [0; MAX_TEXT_BYTES], used: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.bytes.get_mut(self.used) {
                *place = *byte;
                self.used += 1;
            }
        }
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or(&[])
    }

    /// A terminated string of wide characters, as UTF-8.
    ///
    /// # Safety
    /// `text` is null or such a string.
    unsafe fn push_wide(&mut self, text: *const u32) {
        if text.is_null() {
            return;
        }
        for index in 0..MAX_TEXT_BYTES {
            // SAFETY: not beyond the terminator.
            let wide = unsafe { text.add(index).read() };
            if wide == 0 {
                break;
            }
            let mut room = [0; 4];
            self.push(char::from_u32(wide).unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut room).as_bytes());
        }
    }

    /// # Safety
    /// `text` is null or a terminated string.
    unsafe fn push_narrow(&mut self, text: *const c_char) {
        // SAFETY: the caller's promise.
        self.push(unsafe { bytes_of(text, MAX_TEXT_BYTES) });
    }

    /// # Safety
    /// As the program promises NVTX.
    unsafe fn push_message(&mut self, attributes: *const Attributes) {
        const NARROW: i32 = 1;
        const WIDE: i32 = 2;
        const REGISTERED: i32 = 3;
        // SAFETY: the caller's promise.
        unsafe {
            let Some(attributes) = attributes.as_ref() else { return };
            match attributes.message_type {
                NARROW => self.push_narrow(attributes.message.cast()),
                WIDE => self.push_wide(attributes.message.cast()),
                REGISTERED => self.push(strings::text(attributes.message).unwrap_or(b"registered string")),
                _ => {}
            }
        }
    }
}

/// A range's name: that of its domain before its own. Where the latter begins.
fn in_domain(domain: *const c_void) -> (Text, usize) {
    let mut name = Text::new();
    if let Some(domain) = strings::text(domain) {
        name.push(domain);
        name.push(b": ");
    }
    let begin = name.used;
    (name, begin)
}

/// # Safety
/// As the program promises NVTX.
unsafe fn push_in(domain: *const c_void, attributes: *const Attributes) -> c_int {
    let (mut name, message) = in_domain(domain);
    // SAFETY: the caller's promise.
    unsafe { name.push_message(attributes) };
    super::push(name.get(), name.get().get(message..).unwrap_or(&[]));
    NO_DEPTH
}

/// # Safety
/// As the program promises NVTX.
unsafe fn start_in(domain: *const c_void, attributes: *const Attributes) -> u64 {
    let (mut name, message) = in_domain(domain);
    // SAFETY: the caller's promise.
    unsafe { name.push_message(attributes) };
    super::start(name.get(), name.get().get(message..).unwrap_or(&[]), domain.is_null())
}

macro_rules! callbacks {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As NVTX's function.
        #[allow(clippy::undocumented_unsafe_blocks, unused_unsafe, reason = "said here, for every expansion")]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the program's promises to NVTX are those that are made here.
            unsafe { $body }
        }
    )*};
}

callbacks! {
    /// `int nvtxRangePushEx(const nvtxEventAttributes_t *)`.
    fn push_attributes(attributes: *const Attributes) -> c_int { push_in(core::ptr::null(), attributes) }
    /// `int nvtxRangePushA(const char *)`.
    fn push_narrow(message: *const c_char) -> c_int {
        let message = bytes_of(message, MAX_TEXT_BYTES);
        super::push(message, message);
        NO_DEPTH
    }
    /// `int nvtxRangePushW(const wchar_t *)`.
    fn push_wide(message: *const u32) -> c_int {
        let mut text = Text::new();
        text.push_wide(message);
        super::push(text.get(), text.get());
        NO_DEPTH
    }
    /// `int nvtxRangePop(void)`.
    fn pop() -> c_int { super::pop(); NO_DEPTH }
    /// `nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t *)`.
    fn start_attributes(attributes: *const Attributes) -> u64 { start_in(core::ptr::null(), attributes) }
    /// `nvtxRangeId_t nvtxRangeStartA(const char *)`.
    fn start_narrow(message: *const c_char) -> u64 {
        let message = bytes_of(message, MAX_TEXT_BYTES);
        super::start(message, message, true)
    }
    /// `nvtxRangeId_t nvtxRangeStartW(const wchar_t *)`.
    fn start_wide(message: *const u32) -> u64 {
        let mut text = Text::new();
        text.push_wide(message);
        super::start(text.get(), text.get(), true)
    }
    /// `void nvtxRangeEnd(nvtxRangeId_t)`.
    fn end(range: u64) { super::end(range); }
    /// `int nvtxDomainRangePushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t *)`.
    fn push_domain(domain: *const c_void, attributes: *const Attributes) -> c_int { push_in(domain, attributes) }
    /// `int nvtxDomainRangePop(nvtxDomainHandle_t)`.
    fn pop_domain(_domain: *const c_void) -> c_int { super::pop(); NO_DEPTH }
    /// `nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t, const nvtxEventAttributes_t *)`.
    fn start_domain(domain: *const c_void, attributes: *const Attributes) -> u64 { start_in(domain, attributes) }
    /// `void nvtxDomainRangeEnd(nvtxDomainHandle_t, nvtxRangeId_t)`.
    fn end_domain(_domain: *const c_void, range: u64) { super::end(range); }
    /// `nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t, const char *)`.
    fn register_narrow(_domain: *const c_void, text: *const c_char) -> *const c_void {
        strings::keep(bytes_of(text, MAX_TEXT_BYTES))
    }
    /// `nvtxStringHandle_t nvtxDomainRegisterStringW(nvtxDomainHandle_t, const wchar_t *)`.
    fn register_wide(_domain: *const c_void, text: *const u32) -> *const c_void {
        let mut wide = Text::new();
        wide.push_wide(text);
        strings::keep(wide.get())
    }
    /// `nvtxDomainHandle_t nvtxDomainCreateA(const char *)`.
    fn create_narrow(name: *const c_char) -> *const c_void { strings::keep(bytes_of(name, MAX_TEXT_BYTES)) }
    /// `nvtxDomainHandle_t nvtxDomainCreateW(const wchar_t *)`.
    fn create_wide(name: *const u32) -> *const c_void {
        let mut wide = Text::new();
        wide.push_wide(name);
        strings::keep(wide.get())
    }
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    bytes: usize,
    /// Gives the module's places of pointers to functions, and how many there are.
    functions: Option<unsafe extern "C" fn(c_uint, *mut *const *mut *const c_void, *mut c_uint) -> c_int>,
}

/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE` and `NVTX_CB_MODULE_CORE2`.
const CORE: c_uint = 1;
const DOMAINS: c_uint = 5;

/// Module, number of a callback, our function.
fn ours() -> [(c_uint, usize, *const c_void); 16] {
    [
        (CORE, 4, start_attributes as *const c_void),
        (CORE, 5, start_narrow as *const c_void),
        (CORE, 6, start_wide as *const c_void),
        (CORE, 7, end as *const c_void),
        (CORE, 8, push_attributes as *const c_void),
        (CORE, 9, push_narrow as *const c_void),
        (CORE, 10, push_wide as *const c_void),
        (CORE, 11, pop as *const c_void),
        (DOMAINS, 2, start_domain as *const c_void),
        (DOMAINS, 3, end_domain as *const c_void),
        (DOMAINS, 4, push_domain as *const c_void),
        (DOMAINS, 5, pop_domain as *const c_void),
        (DOMAINS, 10, register_narrow as *const c_void),
        (DOMAINS, 11, register_wide as *const c_void),
        (DOMAINS, 12, create_narrow as *const c_void),
        (DOMAINS, 13, create_wide as *const c_void),
    ]
}

/// `int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t)`: an instance of NVTX in this process wants to know what it shall call. 1 when
/// it was told, 0 when not.
///
/// # Safety
/// As NVTX's headers say.
#[allow(non_snake_case, reason = "NVIDIA's spelling")]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn InitializeInjectionNvtx2(table: Option<unsafe extern "C" fn(u32) -> *const c_void>) -> c_int {
    let Some(table) = table else { return 0 };
    // SAFETY: the caller's promise: null, or a table of this layout as far as its size says.
    let Some(callbacks) = (unsafe { table(CALLBACKS).cast::<Callbacks>().as_ref() }) else { return 0 };
    let Some(functions) = callbacks.functions.filter(|_| callbacks.bytes >= size_of::<Callbacks>()) else { return 0 };
    for (module, number, function) in ours() {
        let (mut places, mut count) = (core::ptr::null(), 0);
        // SAFETY: as above; each place is null or holds a pointer to a function of the callback's type.
        unsafe {
            if functions(module, &mut places, &mut count) == 0 || places.is_null() || number >= count as usize {
                continue;
            }
            let place = places.add(number).read();
            if !place.is_null() {
                place.write(function);
            }
        }
    }
    1
}

/// A range of the simulated libnvToolsExt.so begins in the thread.
///
/// # Safety
/// `message` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_simulation_range_push(message: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { push_narrow(message) };
}

/// It ends.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_simulation_range_pop() {
    super::pop();
}

/// A range of the simulated libnvToolsExt.so begins that any thread may end; what is to be said at its end.
///
/// # Safety
/// `message` is null or a terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memscope_simulation_range_start(message: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { start_narrow(message) }
}

/// It ends.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memscope_simulation_range_end(range: u64) {
    super::end(range);
}
