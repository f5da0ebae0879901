//! Libraries: modules that belong to no context in CUDA. Here a library is a module of the context that is current when
//! it is loaded, and a kernel handle is the function handle; the documentation lets a kernel be launched as a function.

use super::module::{load, load_file};
use super::{Out, given, store, store_if, text};
use crate::error::CUresult;
use crate::module;
use crate::process::process;
use crate::registry::Handle;
use std::ffi::{c_char, c_int, c_uint, c_void};

exports! {
    12000 fn cuLibraryLoadData(
        library: Out<'_, Handle>, image: *const c_char, _options: *const c_void, _values: *const c_void, _count: c_uint,
        _library_options: *const c_void, _library_values: *const c_void, _library_count: c_uint,
    ) {
        let library = given(library)?;
        // SAFETY: the program gives an image.
        library.write(unsafe { load(image)? });
        Ok(())
    }
    12000 fn cuLibraryLoadFromFile(
        library: Out<'_, Handle>, path: *const c_char, _options: *const c_void, _values: *const c_void, _count: c_uint,
        _library_options: *const c_void, _library_values: *const c_void, _library_count: c_uint,
    ) {
        let library = given(library)?;
        // SAFETY: the program gives a terminated string or null.
        library.write(unsafe { load_file(path)? });
        Ok(())
    }
    12000 fn cuLibraryUnload(library: Handle) { module::unload(library) }
    12000 fn cuLibraryGetModule(module: Out<'_, Handle>, library: Handle) {
        module::find(library)?;
        store(module, library)
    }
    12000 fn cuLibraryGetKernel(kernel: Out<'_, Handle>, library: Handle, name: *const c_char) {
        let found = module::find(library)?;
        // SAFETY: the program gives a terminated string or null.
        store(kernel, found.function(unsafe { text(name)? })?)
    }
    12040 fn cuLibraryGetKernelCount(count: Out<'_, c_uint>, library: Handle) {
        store(count, module::find(library)?.functions().count() as c_uint)
    }
    12040 fn cuLibraryEnumerateKernels(kernels: *mut Handle, count: c_uint, library: Handle) {
        if kernels.is_null() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        for (index, kernel) in module::find(library)?.functions().take(count as usize).enumerate() {
            // SAFETY: the program gives room for `count` handles.
            unsafe { kernels.add(index).write(kernel) };
        }
        Ok(())
    }
    12000 fn cuLibraryGetGlobal(address: Out<'_, u64>, bytes: Out<'_, usize>, library: Handle, name: *const c_char) {
        let found = module::find(library)?;
        // SAFETY: the program gives a terminated string or null.
        let (start, size) = found.global(unsafe { text(name)? })?;
        store_if(address, start);
        store_if(bytes, size as usize);
        Ok(())
    }
    12000 fn cuLibraryGetManaged(
        _address: Out<'_, u64>, _bytes: Out<'_, usize>, library: Handle, _name: *const c_char,
    ) {
        module::find(library)?;
        Err(CUresult::ERROR_NOT_FOUND)
    }
    12000 fn cuKernelGetFunction(function: Out<'_, Handle>, kernel: Handle) {
        module::function(kernel)?;
        store(function, kernel)
    }
    12050 fn cuKernelGetLibrary(library: Out<'_, Handle>, kernel: Handle) {
        store(library, module::function(kernel)?.module)
    }
    12000 fn cuKernelGetAttribute(value: Out<'_, c_int>, number: c_int, kernel: Handle, device: c_int) {
        process()?.device(device)?;
        store(value, module::function(kernel)?.attribute(number)?)
    }
    12000 fn cuKernelSetAttribute(number: c_int, value: c_int, kernel: Handle, device: c_int) {
        process()?.device(device)?;
        module::function(kernel)?.set_attribute(number, value)
    }
    12000 fn cuKernelSetCacheConfig(kernel: Handle, _configuration: c_int, device: c_int) {
        process()?.device(device)?;
        module::function(kernel).map(|_| ())
    }
    12030 fn cuKernelGetName(name: Out<'_, *const c_char>, kernel: Handle) {
        store(name, module::function(kernel)?.name.as_ptr())
    }
    12040 fn cuKernelGetParamInfo(kernel: Handle, index: usize, offset: Out<'_, usize>, size: Out<'_, usize>) {
        let function = module::function(kernel)?;
        let found = function.entry.parameters.get(index).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        store(offset, found.0)?;
        store_if(size, found.1);
        Ok(())
    }
    13000 fn cuKernelGetParamCount(kernel: Handle, count: Out<'_, usize>) {
        store(count, module::function(kernel)?.entry.parameters.len())
    }
}
