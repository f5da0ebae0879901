//! The exported `execve` and `execv`: programs that are started without this library.
//!
//! A shell or a script may take LD_PRELOAD out of the environment of what it starts; that program is not recorded, and may be gone
//! before anybody looks. Who starts it has this library, and knows its name.
//!
//! Owns: the look at the environment that the new program gets, and the mark, where this library is not in it. Refuses: everything
//! else, by jumping to the real function: in the ordinary case no system call is made and nothing is written. It runs between
//! vfork and exec, and in handlers of signals: no lock, nothing allocated, little stack; the real functions are looked up at load. The C
//! library's other ways to start a program (execvp, posix_spawn, system) do not come by here, since an old one's real
//! function cannot be found; nor do programs that make the system call themselves.

use core::ffi::{CStr, c_char, c_int, c_void};

use crate::before::told_before;
use crate::linker::Function;
use crate::{creation, driver, marks, system};

/// How this library's file is called, in any folder.
const LIBRARY: &[u8] = b"libmemscope_interposer.so";

const PRELOAD: &[u8] = b"LD_PRELOAD=";

static EXECVE: Function = Function::next(c"execve");
static EXECV: Function = Function::next(c"execv");

unsafe extern "C" {
    static environ: *const *const c_char;
}

told_before! {
    /// Stands in the way of the C library's `execve`.
    fn execve(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int
        = "execve", of_execve, else direct
}

told_before! {
    /// Stands in the way of the C library's `execv`.
    fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int = "execv", of_execv, else direct_here
}

/// Finds the real functions, before anybody may need them where nothing may be looked up.
extern "C" fn get_ready() {
    EXECVE.find();
    EXECV.find();
}

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static GET_READY: extern "C" fn() = get_ready;

extern "C" fn of_execve(
    path: *const c_char,
    _arguments: *const *const c_char,
    environment: *const *const c_char,
) -> *mut c_void {
    look(path, environment);
    EXECVE.find()
}

extern "C" fn of_execv(path: *const c_char, _arguments: *const *const c_char) -> *mut c_void {
    // SAFETY: the C library's variable; a program that changes it in another thread breaks its own exec as well.
    look(path, unsafe { environ });
    EXECV.find()
}

fn look(path: *const c_char, environment: *const *const c_char) {
    if !path.is_null() && creation::is_asked_for() && !has_library(environment) {
        let errno = driver::preserving_errno;
        // SAFETY: the program asks the kernel to read the path, which ends there as it does here.
        errno(|| marks::leave_name(unsafe { CStr::from_ptr(path) }));
    }
}

/// True when the loader of a program with this environment is told to load this library. Of a variable that is there twice it takes
/// the last one.
fn has_library(environment: *const *const c_char) -> bool {
    let mut has = false;
    let mut next = environment;
    // SAFETY: as the kernel takes it: null, or pointers to terminated strings, the last one null.
    unsafe {
        while !next.is_null() && !(*next).is_null() {
            if let Some(value) = CStr::from_ptr(*next).to_bytes().strip_prefix(PRELOAD) {
                has = value.windows(LIBRARY.len()).any(|part| part == LIBRARY);
            }
            next = next.add(1);
        }
    }
    has
}

/// The call itself, where there is nothing by which the C library's function could be found: an old one without libdl.
extern "C" fn direct(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int {
    let error = system::execute(path as usize, arguments as usize, environment as usize);
    // SAFETY: the calling thread's errno.
    unsafe { *libc::__errno_location() = error.0 };
    -1
}

extern "C" fn direct_here(path: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: as in `of_execv`.
    direct(path, arguments, unsafe { environ })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null;

    #[test]
    fn an_environment_has_the_library_or_has_it_not() {
        let has = |variables: &[&CStr]| {
            let pointers: Vec<_> = variables.iter().map(|variable| variable.as_ptr()).chain([null()]).collect();
            has_library(pointers.as_ptr())
        };
        assert!(!has_library(null()));
        assert!(!has(&[]));
        assert!(!has(&[c"PATH=/bin", c"LD_PRELOAD=", c"X=libmemscope_interposer.so"]));
        assert!(!has(&[c"LD_PRELOAD=/lib/libjemalloc.so.2"]));
        assert!(!has(&[c"LD_PRELOAD=/x/libmemscope_interposer.so", c"LD_PRELOAD="]));
        assert!(has(&[c"PATH=/bin", c"LD_PRELOAD=/x/$LIB/libmemscope_interposer.so:/lib/libjemalloc.so.2"]));
    }

    #[test]
    fn the_call_itself_is_that_of_the_c_library() {
        assert_eq!(direct(c"/nowhere/at/all".as_ptr(), [null()].as_ptr(), null()), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(direct_here(c"/".as_ptr(), [null()].as_ptr()), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EACCES));
    }
}
