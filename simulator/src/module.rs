//! Modules, libraries and functions.
//!
//! Owns: loaded images, their kernels and variables; which kernels have a host reference. A kernel is recognised by its
//! image and its entry name: the loaded text must equal the checked-in one, byte for byte, which says at least as much
//! as an equal sha256. Refuses: machine code (cubin, fatbin), since there is nothing to run it on; in a memory-only process,
//! where nothing runs, it is taken unread, and every name is a kernel of it.

use crate::context::Context;
use crate::device::{SHARED_PER_BLOCK, THREADS_PER_BLOCK};
use crate::error::{CUresult, Status};
use crate::lock::Lock;
use crate::memory::{Kind, MEMORY};
use crate::process::{computes, process};
use crate::ptx::{Entry, Ptx};
use crate::registry::{Handle, Registry};
use memscope_kernels::Kernel;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Newest PTX that the driver takes: that of CUDA 13.0.
const NEWEST_PTX: (u32, u32) = (9, 0);

/// A loaded image.
pub struct Module {
    context: Handle,
    functions: Lock<Vec<(String, Handle)>>,
    /// Machine code that nobody looked into.
    opaque: bool,
    handle: Handle,
    globals: BTreeMap<String, (u64, u64)>,
}

/// A kernel of a loaded image.
pub struct Function {
    /// Its name.
    pub name: CString,
    /// The module that holds it.
    pub module: Handle,
    /// What its image declares.
    pub entry: Entry,
    /// What computes the same on the host, if we have it.
    pub kernel: Option<&'static Kernel>,
    /// Whether it is of machine code that nobody looked into.
    pub opaque: bool,
    /// Dynamic shared memory that a launch may ask for, bytes.
    pub dynamic_shared: AtomicI32,
    /// Preferred carve-out of shared memory, per cent; -1 is the default.
    pub carveout: AtomicI32,
    /// 10 × PTX target.
    pub target: u32,
    /// True once a launch without host reference was reported.
    pub reported: AtomicBool,
    context: Handle,
}

static MODULES: Registry<Module> = Registry::new();
static FUNCTIONS: Registry<Function> = Registry::new();
/// Handles of modules being made: a function knows its module's handle before the module is complete.
static LOADING: Lock<()> = Lock::new(());

/// Loads an image: PTX text without its terminating NUL.
pub fn load(context: &Context, image: &[u8]) -> Result<Handle, CUresult> {
    let state = process()?.state;
    let text = std::str::from_utf8(image).map_err(|_| CUresult::ERROR_INVALID_IMAGE)?;
    let ptx = Ptx::parse(text).map_err(|_| CUresult::ERROR_INVALID_PTX)?;
    if ptx.version > NEWEST_PTX {
        return Err(CUresult::ERROR_UNSUPPORTED_PTX_VERSION);
    }
    let (major, minor) = state.device().compute_capability;
    if ptx.target > u32::from(major) * 10 + u32::from(minor) {
        return Err(CUresult::ERROR_NO_BINARY_FOR_GPU);
    }
    let globals = place_globals(context, &ptx)?;
    let known = memscope_kernels::KERNELS
        .iter()
        .map(|kernel| kernel.image)
        .find(|known| known.ptx.trim_end_matches('\0') == text);
    let _loading = LOADING.lock();
    let module = crate::registry::new_handle();
    let mut functions = Vec::with_capacity(ptx.entries.len());
    for entry in ptx.entries {
        let kernel = known.and_then(|image| memscope_kernels::find(&image.sha256, &entry.name));
        let name = CString::new(entry.name.as_str()).map_err(|_| CUresult::ERROR_INVALID_PTX)?;
        let label = entry.name.clone();
        let room = SHARED_PER_BLOCK - entry.shared_bytes as i32;
        let function = Function {
            name,
            module,
            entry,
            kernel,
            opaque: false,
            dynamic_shared: AtomicI32::new(room.max(0)),
            carveout: AtomicI32::new(-1),
            target: ptx.target,
            reported: AtomicBool::new(false),
            context: context.handle,
        };
        functions.push((label, FUNCTIONS.insert(function)));
    }
    let functions = Lock::new(functions);
    MODULES.insert_at(module, Module { context: context.handle, functions, opaque: false, handle: module, globals });
    Ok(module)
}

/// Takes machine code in a memory-only process.
pub fn load_opaque(context: &Context) -> Handle {
    let handle = crate::registry::new_handle();
    let functions = Lock::new(Vec::new());
    let globals = BTreeMap::new();
    MODULES.insert_at(handle, Module { context: context.handle, functions, opaque: true, handle, globals });
    handle
}

/// Gives the image's variables their memory. It is not charged: it is part of what a context's modules take.
fn place_globals(context: &Context, ptx: &Ptx) -> Result<BTreeMap<String, (u64, u64)>, CUresult> {
    let process = process()?;
    let mut globals = BTreeMap::new();
    for global in ptx.globals.iter().filter(|global| global.bytes > 0) {
        let mut memory = MEMORY.lock();
        let address = memory.allocate(process, context, global.bytes as u64, Kind::Global)?;
        if computes() {
            // SAFETY: the range was just allocated, and the initial bytes are at most as many.
            unsafe { std::ptr::copy_nonoverlapping(global.initial.as_ptr(), address as *mut u8, global.initial.len()) };
        } else {
            memory.side_table.write(address, &global.initial);
        }
        globals.insert(global.name.clone(), (address, global.bytes as u64));
    }
    Ok(globals)
}

/// Unloads a module.
pub fn unload(handle: Handle) -> Status {
    let process = process()?;
    let module = MODULES.remove(handle)?;
    FUNCTIONS.remove_where(|function| function.module == handle);
    let mut memory = MEMORY.lock();
    for (address, _) in module.globals.values() {
        memory.free(process, *address, |kind| kind == Kind::Global)?;
    }
    Ok(())
}

/// Takes the modules of a dead context away; its memory goes with the context.
pub fn destroy_all(context: Handle) {
    MODULES.remove_where(|module| module.context == context);
    FUNCTIONS.remove_where(|function| function.context == context);
}

/// The module with this handle.
pub fn find(handle: Handle) -> Result<Arc<Module>, CUresult> {
    MODULES.find(handle)
}

/// The function with this handle.
pub fn function(handle: Handle) -> Result<Arc<Function>, CUresult> {
    FUNCTIONS.find(handle)
}

impl Module {
    /// Handle of the kernel with this name.
    pub fn function(&self, name: &str) -> Result<Handle, CUresult> {
        let mut functions = self.functions.lock();
        let found = functions.iter().find(|function| function.0 == name).map(|function| function.1);
        if found.is_some() || !self.opaque {
            return found.ok_or(CUresult::ERROR_NOT_FOUND);
        }
        let (major, minor) = process()?.state.device().compute_capability;
        let handle = FUNCTIONS.insert(Function {
            name: CString::new(name).map_err(|_| CUresult::ERROR_NOT_FOUND)?,
            module: self.handle,
            entry: Entry { name: name.to_owned(), parameters: Vec::new(), max_threads: None, shared_bytes: 0 },
            kernel: None,
            opaque: true,
            dynamic_shared: AtomicI32::new(SHARED_PER_BLOCK),
            carveout: AtomicI32::new(-1),
            target: u32::from(major) * 10 + u32::from(minor),
            reported: AtomicBool::new(false),
            context: self.context,
        });
        functions.push((name.to_owned(), handle));
        Ok(handle)
    }

    /// Handles of all kernels.
    pub fn functions(&self) -> impl Iterator<Item = Handle> {
        self.functions.lock().iter().map(|function| function.1).collect::<Vec<_>>().into_iter()
    }

    /// Address and bytes of a variable.
    pub fn global(&self, name: &str) -> Result<(u64, u64), CUresult> {
        self.globals.get(name).copied().ok_or(CUresult::ERROR_NOT_FOUND)
    }
}

impl Function {
    /// Most threads of a block.
    pub fn max_threads(&self) -> u32 {
        self.entry.max_threads.unwrap_or(THREADS_PER_BLOCK as u32).min(THREADS_PER_BLOCK as u32)
    }

    /// Value of a function attribute (CUfunction_attribute).
    pub fn attribute(&self, number: i32) -> Result<i32, CUresult> {
        let (major, minor) = process()?.state.device().compute_capability;
        Ok(match number {
            0 => self.max_threads() as i32,
            1 => self.entry.shared_bytes as i32,
            // Registers are assigned by a compiler that does not run here: a number at which 1024 threads fit.
            4 => 32,
            5 => self.target as i32,
            6 => i32::from(major) * 10 + i32::from(minor),
            8 => self.dynamic_shared.load(Ordering::Relaxed),
            9 => self.carveout.load(Ordering::Relaxed),
            2 | 3 | 7 | 10..=17 => 0,
            _ => return Err(CUresult::ERROR_INVALID_VALUE),
        })
    }

    /// Sets a function attribute.
    pub fn set_attribute(&self, number: i32, value: i32) -> Status {
        let capability = process()?.state.device().compute_capability;
        let most = crate::device::limits(capability).shared_per_block_optin - self.entry.shared_bytes as i32;
        match number {
            8 if (0..=most).contains(&value) => self.dynamic_shared.store(value, Ordering::Relaxed),
            9 if (-1..=100).contains(&value) => self.carveout.store(value, Ordering::Relaxed),
            10..=17 => {}
            _ => return Err(CUresult::ERROR_INVALID_VALUE),
        }
        Ok(())
    }
}
