//! The functions of a Python interpreter that are called here: all of its stable interface, so that one build of memscope
//! serves every CPython since 3.9.
//!
//! Owns: their names and signatures, and how they are found in the program. Refuses: what an object looks like in memory.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::transmute;
use core::ptr::null;

use crate::module;

/// A `PyObject *`.
pub type Object = *mut c_void;

/// A function of Python's that is made here: what it was made with, and its argument (null for none).
pub type Callable = unsafe extern "C" fn(Object, Object) -> Object;

/// `PyMethodDef`.
#[repr(C)]
pub struct Definition {
    pub name: *const c_char,
    function: Callable,
    kind: c_int,
    words: *const c_char,
}

// SAFETY: the strings are constants.
unsafe impl Sync for Definition {}

impl Definition {
    pub const fn new(name: &'static CStr, function: Callable, kind: c_int) -> Definition {
        Definition { name: name.as_ptr(), function, kind, words: null() }
    }
}

/// METH_NOARGS.
pub const NO_ARGUMENT: c_int = 4;
/// METH_O.
pub const ONE_ARGUMENT: c_int = 8;

/// Declares functions of the interpreter, and how they are found.
macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The interpreter of this process.
        #[derive(Clone, Copy)]
        pub struct Python {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// None.
            pub none: Object,
        }

        impl Python {
            /// The functions; `None` where one is missing.
            pub fn find() -> Option<Python> {
                let none = module::global_symbol(c"_Py_NoneStruct");
                if none.is_null() {
                    return None;
                }
                Some(Python {
                    $($field: {
                        let found = module::global_symbol($name);
                        if found.is_null() {
                            return None;
                        }
                        type Function = unsafe extern "C" fn($($argument),*) $(-> $result)?;
                        #[allow(clippy::undocumented_unsafe_blocks, reason = "said here, for every expansion")]
                        // SAFETY: the interpreter documents this function with this signature.
                        unsafe { transmute::<*mut c_void, Function>(found) }
                    },)*
                    none,
                })
            }
        }
    };
}

functions! {
    keep = c"Py_IncRef": fn(Object);
    release = c"Py_DecRef": fn(Object);
    kind_of = c"PyObject_Type": fn(Object) -> Object;
    attribute = c"PyObject_GetAttr": fn(Object, Object) -> Object;
    call = c"PyObject_CallObject": fn(Object, Object) -> Object;
    new_function = c"PyCFunction_NewEx": fn(*const Definition, Object, Object) -> Object;
    new_integer = c"PyLong_FromUnsignedLongLong": fn(u64) -> Object;
    new_address = c"PyLong_FromVoidPtr": fn(*mut c_void) -> Object;
    integer_of = c"PyLong_AsUnsignedLongLong": fn(Object) -> u64;
    small_integer_of = c"PyLong_AsLong": fn(Object) -> c_long;
    new_tuple = c"PyTuple_New": fn(isize) -> Object;
    set_tuple_item = c"PyTuple_SetItem": fn(Object, isize, Object) -> c_int;
    tuple_item = c"PyTuple_GetItem": fn(Object, isize) -> Object;
    new_text = c"PyUnicode_InternFromString": fn(*const c_char) -> Object;
    text_of = c"PyUnicode_AsUTF8": fn(Object) -> *const c_char;
    fetch = c"PyErr_Fetch": fn(*mut Object, *mut Object, *mut Object);
    restore = c"PyErr_Restore": fn(Object, Object, Object);
    clear = c"PyErr_Clear": fn();
    compile = c"Py_CompileString": fn(*const c_char, *const c_char, c_int) -> Object;
    evaluate = c"PyEval_EvalCode": fn(Object, Object, Object) -> Object;
    new_dictionary = c"PyDict_New": fn() -> Object;
    set_item = c"PyDict_SetItemString": fn(Object, *const c_char, Object) -> c_int;
    value_of = c"PyDict_GetItemWithError": fn(Object, Object) -> Object;
    builtins = c"PyEval_GetBuiltins": fn() -> Object;
    modules = c"PyImport_GetModuleDict": fn() -> Object;
    item = c"PyDict_GetItemString": fn(Object, *const c_char) -> Object;
}
