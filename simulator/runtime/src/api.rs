//! How an exported function is written: one row with its class, name, arguments, result and body.
//!
//! Owns: the classes and the macro. A row's body returns `Result<(), STATUS>` where the function returns a library's status
//! (see [`crate::status`]); `plain` rows return their value. A panic ends at the row as the status's "internal error".
//! `simulator/runtime/generate` reads the rows for the table in docs/dry-run.md: keep `CLASS fn NAME(` on one line.

use std::mem::MaybeUninit;

/// An output pointer: null, or good for one write.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Writes to an output pointer unless it is null.
pub fn store<T>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// What a function does.
#[allow(non_camel_case_types, reason = "written before `fn` in a row, like a keyword")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Does what its documentation says, as far as memory can tell.
    simulated,
    /// Succeeds and does nothing.
    no_op,
    /// Answers how many bytes the program has to provide.
    size,
}

macro_rules! api {
    ($($class:ident fn $name:ident ($($argument:ident: $type:ty),* $(,)?) -> $status:ty $body:block)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $status {
            const _: $crate::api::Class = $crate::api::Class::$class;
            $crate::status::guard(stringify!($name), move || -> Result<(), $status> { $body })
        }
    )*};
}

macro_rules! plain {
    ($($class:ident fn $name:ident ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            const _: $crate::api::Class = $crate::api::Class::$class;
            $crate::calls::trace(stringify!($name), 0);
            $body
        }
    )*};
}
