//! Functions of the C library that this library calls or stands before: those of the dynamic linker's interface above all.
//!
//! Owns: how they are found: one of them, dlvsym, by its oldest version, and through it the others, so that the library loads
//! where the C library is old (since 2.34 they are in libc, before that in libdl, with other versions). Refuses: to need them: in
//! a program of an old C library without libdl nobody can look up or open anything, and nothing is found here either.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

// Weak, because the library that has it may not be there; by its oldest version, which newer ones still have.
core::arch::global_asm!(
    ".weak memscope_dlvsym",
    ".symver memscope_dlvsym, dlvsym@GLIBC_2.2.5",
    ".section .data.rel.ro.memscope_linker,\"aw\",@progbits",
    ".balign 8",
    ".globl memscope_dlvsym_address",
    ".hidden memscope_dlvsym_address",
    "memscope_dlvsym_address:",
    ".quad memscope_dlvsym",
    ".text",
);

type VersionedLookUp = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

unsafe extern "C" {
    #[link_name = "memscope_dlvsym_address"]
    static DLVSYM: Option<VersionedLookUp>;
}

/// The next library's function of this name and version in the order of look-up; null when there is none.
fn next_version(name: &CStr, version: &CStr) -> *mut c_void {
    // SAFETY: the word is written by the loader, before anything here runs; the strings are terminated.
    let found = unsafe { DLVSYM.map_or(null_mut(), |find| find(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr())) };
    // The call must not become a jump: the caller counts.
    core::hint::black_box(found)
}

/// A function of the C library.
pub struct Function {
    name: &'static CStr,
    /// The versions that it has; none to take whatever is next in the order of look-up.
    versions: &'static [&'static CStr],
    address: AtomicPtr<c_void>,
}

impl Function {
    /// What the program would call under this name if this library were not there: the function of another preloaded library,
    /// if that has one, else the C library's.
    pub const fn next(name: &'static CStr) -> Function {
        Function::of_versions(name, &[])
    }

    /// The C library's, since 2.34, and before that on x86-64 and aarch64.
    const fn new(name: &'static CStr) -> Function {
        Function::of_versions(name, &[c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"])
    }

    const fn of_versions(name: &'static CStr, versions: &'static [&'static CStr]) -> Function {
        Function { name, versions, address: AtomicPtr::new(null_mut()) }
    }

    /// Its address; null when there is none.
    #[inline(always)]
    pub fn find(&self) -> *mut c_void {
        let known = self.address.load(Acquire);
        if known.is_null() { self.search() } else { known }
    }

    #[cold]
    #[inline(never)]
    fn search(&self) -> *mut c_void {
        let mut found = if self.versions.is_empty() { look_up(libc::RTLD_NEXT, self.name) } else { null_mut() };
        for version in self.versions {
            if found.is_null() {
                found = next_version(self.name, version);
            }
        }
        self.address.store(found, Release);
        found
    }
}

/// The C library's dlsym, in the name of this library.
#[inline(never)]
pub fn look_up(handle: *mut c_void, name: &CStr) -> *mut c_void {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    let function = DLSYM.find();
    if function.is_null() {
        return null_mut();
    }
    // SAFETY: as dlsym(3); the name is terminated.
    let found = unsafe { transmute::<*mut c_void, Dlsym>(function)(handle, name.as_ptr()) };
    // The call must not become a jump: RTLD_NEXT would see our caller's return address, which is in this library too only as
    // long as nobody inlines or exports it.
    core::hint::black_box(found)
}

static DLSYM: Function = Function::new(c"dlsym");
static DLADDR: Function = Function::new(c"dladdr");
static DLADDR1: Function = Function::of_versions(c"dladdr1", &[c"GLIBC_2.34", c"GLIBC_2.3.3", c"GLIBC_2.17"]);
static DLERROR: Function = Function::new(c"dlerror");
static DLINFO: Function = Function::of_versions(c"dlinfo", &[c"GLIBC_2.34", c"GLIBC_2.3.3", c"GLIBC_2.17"]);
static DLMOPEN: Function = Function::of_versions(c"dlmopen", &[c"GLIBC_2.34", c"GLIBC_2.3.4", c"GLIBC_2.17"]);

/// Base address and file name of the module that holds `address`; `None` when no module does.
pub fn owner(address: usize) -> Option<(usize, *const c_char)> {
    let found = find(address)?;
    Some((found.dli_fbase as usize, found.dli_fname))
}

/// The name under which a module exports exactly this address. The module must stay loaded.
pub fn export_at<'a>(address: *const c_void) -> Option<&'a CStr> {
    let found = find(address as usize)?;
    let exact = found.dli_saddr.cast_const() == address && !found.dli_sname.is_null();
    // SAFETY: dladdr gives a terminated name that lives as long as the module.
    exact.then(|| unsafe { CStr::from_ptr(found.dli_sname) })
}

fn find(address: usize) -> Option<libc::Dl_info> {
    type Dladdr = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;
    let function = DLADDR.find();
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr takes any address and fills the struct when it returns non-zero; all-zero is valid too.
    unsafe {
        if function.is_null()
            || transmute::<*mut c_void, Dladdr>(function)(address as *const c_void, found.as_mut_ptr()) == 0
        {
            return None;
        }
        Some(found.assume_init())
    }
}

/// A failed look-up of ours must not be what the program's next dlerror() reports.
pub fn forget_error() {
    let function = DLERROR.find();
    if !function.is_null() {
        // SAFETY: char *dlerror(void); its result is not used.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_char>(function)() };
    }
}

/// A handle on a module that is loaded already, in the namespace of `space`; null when it is not. Runs no constructors.
pub fn loaded(space: libc::Lmid_t, file: *const c_char) -> *mut c_void {
    const HOW: c_int = libc::RTLD_NOLOAD | libc::RTLD_NOW;
    type Dlmopen = unsafe extern "C" fn(libc::Lmid_t, *const c_char, c_int) -> *mut c_void;
    let handle = if space == libc::LM_ID_BASE {
        // SAFETY: a terminated name.
        unsafe { crate::dlopen::ask(file, HOW) }
    } else {
        let function = DLMOPEN.find();
        if function.is_null() {
            return null_mut();
        }
        // SAFETY: as dlmopen(3); a terminated name.
        unsafe { transmute::<*mut c_void, Dlmopen>(function)(space, file, HOW) }
    };
    let handle = core::hint::black_box(handle);
    if handle.is_null() {
        forget_error();
    }
    handle
}

/// The namespace of the module that holds `address`: that of the program where it cannot be told.
pub fn space(address: usize) -> libc::Lmid_t {
    const RTLD_DL_LINKMAP: c_int = 2;
    type Dladdr1 = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *mut c_void, c_int) -> c_int;
    type Dlinfo = unsafe extern "C" fn(*mut c_void, c_int, *mut libc::Lmid_t) -> c_int;
    let (locate, ask) = (DLADDR1.find(), DLINFO.find());
    let mut space = libc::LM_ID_BASE;
    if locate.is_null() || ask.is_null() {
        return space;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let mut map = null_mut();
    // SAFETY: as dladdr1(3) and dlinfo(3): a module's link map is a handle on it.
    unsafe {
        let locate = transmute::<*mut c_void, Dladdr1>(locate);
        if locate(address as *const c_void, info.as_mut_ptr(), &mut map, RTLD_DL_LINKMAP) != 0 && !map.is_null() {
            transmute::<*mut c_void, Dlinfo>(ask)(map, libc::RTLD_DI_LMID, &mut space);
        }
    }
    space
}
