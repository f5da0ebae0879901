//! CUDA arrays.

use super::{Out, given, store};
use crate::context;
use crate::memory::array;
use crate::process::process;
use crate::registry::Handle;
use std::ffi::{c_int, c_uint};

/// CUDA_ARRAY_DESCRIPTOR.
#[repr(C)]
struct Description2 {
    width: usize,
    height: usize,
    format: c_uint,
    channels: c_uint,
}

/// CUDA_ARRAY3D_DESCRIPTOR.
#[repr(C)]
struct Description3 {
    width: usize,
    height: usize,
    depth: usize,
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

/// CUDA_ARRAY_MEMORY_REQUIREMENTS.
#[repr(C)]
struct Requirements {
    size: usize,
    alignment: usize,
    reserved: [c_uint; 4],
}

exports! {
    3020 fn cuArrayCreate_v2(handle: Out<'_, Handle>, description: Option<&Description2>) {
        let (handle, of) = (given(handle)?, given(description)?);
        let context = context::current()?;
        handle.write(array::create(&context, [of.width, of.height, 0], of.format, of.channels, 0)?);
        Ok(())
    }
    3020 fn cuArray3DCreate_v2(handle: Out<'_, Handle>, description: Option<&Description3>) {
        let (handle, of) = (given(handle)?, given(description)?);
        let context = context::current()?;
        handle.write(array::create(&context, [of.width, of.height, of.depth], of.format, of.channels, of.flags)?);
        Ok(())
    }
    3020 fn cuArrayGetDescriptor_v2(description: Out<'_, Description2>, handle: Handle) {
        process()?;
        let array = array::find(handle)?;
        let [width, height, _] = array.extent;
        store(description, Description2 { width, height, format: array.format, channels: array.channels })
    }
    3020 fn cuArray3DGetDescriptor_v2(description: Out<'_, Description3>, handle: Handle) {
        process()?;
        let array = array::find(handle)?;
        let [width, height, depth] = array.extent;
        let (format, channels, flags) = (array.format, array.channels, array.flags);
        store(description, Description3 { width, height, depth, format, channels, flags })
    }
    11060 fn cuArrayGetMemoryRequirements(requirements: Out<'_, Requirements>, handle: Handle, device: c_int) {
        process()?.device(device)?;
        let array = array::find(handle)?;
        let size = array.pitch * array.extent[1].max(1) * array.extent[2].max(1);
        store(requirements, Requirements { size, alignment: 512, reserved: [0; 4] })
    }
    2000 fn cuArrayDestroy(handle: Handle) { process()?; array::destroy(handle) }
    5000 fn cuMipmappedArrayCreate(handle: Out<'_, Handle>, description: Option<&Description3>, levels: c_uint) {
        let (handle, of) = (given(handle)?, given(description)?);
        let context = context::current()?;
        let extent = [of.width, of.height, of.depth];
        handle.write(array::create_mipmapped(&context, extent, of.format, of.channels, (of.flags, levels))?);
        Ok(())
    }
    5000 fn cuMipmappedArrayGetLevel(array: Out<'_, Handle>, handle: Handle, level: c_uint) {
        process()?;
        store(array, array::level(handle, level)?)
    }
    5000 fn cuMipmappedArrayDestroy(handle: Handle) { process()?; array::destroy_mipmapped(handle) }
}
