//! The line of Python that the calling thread is at.
//!
//! Owns: a look through Python's public C API, found with dlsym, in a process that has Python. The line is the innermost one
//! outside PyTorch's own package. Refuses: to wait for an interpreter that is being shut down.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

type Object = *mut c_void;

struct Python {
    is_initialised: unsafe extern "C" fn() -> c_int,
    is_finalising: Option<unsafe extern "C" fn() -> c_int>,
    take: unsafe extern "C" fn() -> c_int,
    give: unsafe extern "C" fn(c_int),
    frame: unsafe extern "C" fn() -> Object,
    back: unsafe extern "C" fn(Object) -> Object,
    line: unsafe extern "C" fn(Object) -> c_int,
    code: unsafe extern "C" fn(Object) -> Object,
    attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    text: unsafe extern "C" fn(Object) -> *const c_char,
    clear: unsafe extern "C" fn(),
    keep: unsafe extern "C" fn(Object),
    drop: unsafe extern "C" fn(Object),
}

/// Frames looked at.
const DEEPEST: usize = 64;

fn find() -> Option<Python> {
    let symbol = |name: &CStr| {
        // SAFETY: a terminated name, in the global scope.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    };
    macro_rules! function {
        ($name:literal) => {
            // SAFETY: Python's function of this name has the field's type.
            symbol($name).map(|address| unsafe { std::mem::transmute(address) })
        };
    }
    Some(Python {
        is_initialised: function!(c"Py_IsInitialized")?,
        is_finalising: function!(c"Py_IsFinalizing").or_else(|| function!(c"_Py_IsFinalizing")),
        take: function!(c"PyGILState_Ensure")?,
        give: function!(c"PyGILState_Release")?,
        frame: function!(c"PyEval_GetFrame")?,
        back: function!(c"PyFrame_GetBack")?,
        line: function!(c"PyFrame_GetLineNumber")?,
        code: function!(c"PyFrame_GetCode")?,
        attribute: function!(c"PyObject_GetAttrString")?,
        text: function!(c"PyUnicode_AsUTF8")?,
        clear: function!(c"PyErr_Clear")?,
        keep: function!(c"Py_IncRef")?,
        drop: function!(c"Py_DecRef")?,
    })
}

/// `file:line` of the calling thread; `None` without Python, and in a thread that runs none.
pub fn place() -> Option<String> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    let python = PYTHON.get_or_init(find).as_ref()?;
    // SAFETY: the functions have no preconditions.
    let alive = unsafe { (python.is_initialised)() != 0 && python.is_finalising.is_none_or(|ask| ask() == 0) };
    if !alive {
        return None;
    }
    // SAFETY: the interpreter is alive; the lock is given back below, by the same thread.
    let state = unsafe { (python.take)() };
    // SAFETY: the lock is held.
    let place = unsafe { python.innermost() };
    // SAFETY: see above.
    unsafe { (python.give)(state) };
    place
}

impl Python {
    /// # Safety
    /// The interpreter's lock must be held.
    unsafe fn innermost(&self) -> Option<String> {
        // SAFETY: the lock is held; every frame is kept while it is looked at, as the result of PyFrame_GetBack is.
        unsafe {
            let mut frame = (self.frame)();
            if frame.is_null() {
                return None;
            }
            (self.keep)(frame);
            let mut innermost = None;
            for _ in 0..DEEPEST {
                let file = self.file(frame);
                let place = file.map(|file| format!("{file}:{}", (self.line)(frame)));
                let own = place.as_ref().is_none_or(|place| place.contains("/torch/") || place.starts_with('<'));
                let back = (self.back)(frame);
                (self.drop)(frame);
                frame = back;
                if !own {
                    innermost = place;
                    break;
                }
                innermost = innermost.or(place);
                if frame.is_null() {
                    break;
                }
            }
            if !frame.is_null() {
                (self.drop)(frame);
            }
            innermost
        }
    }

    /// # Safety
    /// The interpreter's lock must be held, and `frame` be a frame.
    unsafe fn file(&self, frame: Object) -> Option<String> {
        let name = CString::from(c"co_filename");
        // SAFETY: as the caller says; what is new here is dropped here.
        unsafe {
            let code = (self.code)(frame);
            let file = (self.attribute)(code, name.as_ptr());
            (self.drop)(code);
            if file.is_null() {
                (self.clear)();
                return None;
            }
            let text = (self.text)(file);
            let text = (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
            (self.drop)(file);
            if text.is_none() {
                (self.clear)();
            }
            text
        }
    }
}
