//! Modules.

use super::{Out, given, store, store_if, text};
use crate::context;
use crate::error::{CUresult, Status};
use crate::module;
use crate::registry::Handle;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

const ELF: [u8; 4] = *b"\x7fELF";
const FAT_BINARY: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
const FAT_BINARY_WRAPPER: [u8; 4] = 0x4662_43b1_u32.to_le_bytes();

/// Loads an image from memory; machine code is refused, since there is nothing to run it on, unless nothing runs anyway.
///
/// # Safety
/// The image must be a terminated text, or begin with the magic of a binary.
pub(super) unsafe fn load(image: *const c_char) -> Result<Handle, CUresult> {
    let context = context::current()?;
    if image.is_null() {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    // SAFETY: an image is longer than its magic, and shorter texts are read no further than their terminator.
    let bytes = unsafe { CStr::from_ptr(image) }.to_bytes();
    let magic = |magic: [u8; 4]| bytes.starts_with(&magic);
    if (magic(ELF) || magic(FAT_BINARY) || magic(FAT_BINARY_WRAPPER)) && !crate::process::computes() {
        return Ok(module::load_opaque(&context));
    }
    if magic(ELF) || magic(FAT_BINARY) || magic(FAT_BINARY_WRAPPER) {
        crate::trace::note(|| "a cubin or fatbin was refused: the simulated device takes PTX text".to_owned());
        return Err(CUresult::ERROR_NO_BINARY_FOR_GPU);
    }
    module::load(&context, bytes)
}

/// Loads an image from a file.
///
/// # Safety
/// The path must be a terminated string or null.
pub(super) unsafe fn load_file(path: *const c_char) -> Result<Handle, CUresult> {
    // SAFETY: as the caller says.
    let path = unsafe { text(path)? };
    context::current()?;
    let mut bytes = std::fs::read(path).map_err(|_| CUresult::ERROR_FILE_NOT_FOUND)?;
    bytes.push(0);
    // SAFETY: the text is terminated.
    unsafe { load(bytes.as_ptr().cast()) }
}

fn store_module(module: Out<'_, Handle>, load: impl FnOnce() -> Result<Handle, CUresult>) -> Status {
    let module = given(module)?;
    module.write(load()?);
    Ok(())
}

exports! {
    11070 fn cuModuleGetLoadingMode(mode: Out<'_, c_int>) { store(mode, 2) } // lazy
    2000 fn cuModuleLoad(module: Out<'_, Handle>, path: *const c_char) {
        // SAFETY: the program gives a terminated string or null.
        store_module(module, || unsafe { load_file(path) })
    }
    2000 fn cuModuleLoadData(module: Out<'_, Handle>, image: *const c_char) {
        // SAFETY: the program gives an image.
        store_module(module, || unsafe { load(image) })
    }
    2010 fn cuModuleLoadDataEx(
        module: Out<'_, Handle>, image: *const c_char, _count: c_uint, _options: *const c_void, _values: *const c_void,
    ) {
        // Options concern a compiler that does not run here.
        // SAFETY: the program gives an image.
        store_module(module, || unsafe { load(image) })
    }
    2000 fn cuModuleLoadFatBinary(_module: Out<'_, Handle>, _image: *const c_void) {
        context::current()?;
        crate::trace::note(|| "a fatbin was refused: the simulated device takes PTX text".to_owned());
        Err(CUresult::ERROR_NO_BINARY_FOR_GPU)
    }
    2000 fn cuModuleUnload(module: Handle) { module::unload(module) }
    2000 fn cuModuleGetFunction(function: Out<'_, Handle>, module: Handle, name: *const c_char) {
        let found = module::find(module)?;
        // SAFETY: the program gives a terminated string or null.
        store(function, found.function(unsafe { text(name)? })?)
    }
    3020 fn cuModuleGetGlobal_v2(address: Out<'_, u64>, bytes: Out<'_, usize>, module: Handle, name: *const c_char) {
        let found = module::find(module)?;
        // SAFETY: the program gives a terminated string or null.
        let (start, size) = found.global(unsafe { text(name)? })?;
        store_if(address, start);
        store_if(bytes, size as usize);
        Ok(())
    }
    12040 fn cuModuleGetFunctionCount(count: Out<'_, c_uint>, module: Handle) {
        store(count, module::find(module)?.functions().count() as c_uint)
    }
    12040 fn cuModuleEnumerateFunctions(functions: *mut Handle, count: c_uint, module: Handle) {
        if functions.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        for (index, function) in module::find(module)?.functions().take(count as usize).enumerate() {
            // SAFETY: the program gives room for `count` handles.
            unsafe { functions.add(index).write(function) };
        }
        Ok(())
    }
}
