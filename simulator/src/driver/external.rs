//! Memory of another interface (Vulkan, …), which comes as a file descriptor: it is that interface's, and charged to nobody here.

use super::{Out, given};
use crate::context;
use crate::error::CUresult;
use crate::memory::{Import, MEMORY, shared};
use crate::process::process;
use crate::registry::{Handle, Registry};
use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

/// CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD.
const OPAQUE_DESCRIPTOR: c_int = 1;
/// CUDA_EXTERNAL_MEMORY_DEDICATED.
const DEDICATED: c_uint = 1;

/// CUDA_EXTERNAL_MEMORY_HANDLE_DESC.
#[repr(C)]
struct Description {
    kind: c_int,
    /// A union, whose descriptor is its first member.
    handle: [u64; 2],
    bytes: u64,
    flags: c_uint,
    reserved: [c_uint; 16],
}

const _: () = assert!(std::mem::offset_of!(Description, bytes) == 24);

/// CUDA_EXTERNAL_MEMORY_BUFFER_DESC.
#[repr(C)]
struct Buffer {
    offset: u64,
    bytes: u64,
    flags: c_uint,
    reserved: [c_uint; 16],
}

/// Memory that was imported.
struct External {
    file: File,
    bytes: u64,
}

static EXTERNALS: Registry<External> = Registry::new();

exports! {
    10000 fn cuImportExternalMemory(memory: Out<'_, Handle>, description: Option<&Description>) {
        let (memory, of) = (given(memory)?, given(description)?);
        context::current()?;
        if of.kind != OPAQUE_DESCRIPTOR {
            return Err(CUresult::NOT_SIMULATED);
        }
        let descriptor = of.handle[0] as c_int;
        if of.bytes == 0 || of.flags & !DEDICATED != 0 || descriptor < 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        // SAFETY: the descriptor is the program's until the import succeeds, and the driver's then. If it is none, fstat says so.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        let length = file.metadata().map_err(|_| CUresult::ERROR_INVALID_HANDLE)?.len();
        if length < of.bytes {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        memory.write(EXTERNALS.insert(External { file: ManuallyDrop::into_inner(file), bytes: of.bytes }));
        Ok(())
    }
    10000 fn cuExternalMemoryGetMappedBuffer(address: Out<'_, u64>, memory: Handle, buffer: Option<&Buffer>) {
        process()?;
        let (address, of) = (given(address)?, given(buffer)?);
        let (context, external) = (context::current()?, EXTERNALS.find(memory)?);
        let end = of.offset.checked_add(of.bytes).filter(|&end| of.bytes > 0 && of.flags == 0 && end <= external.bytes);
        end.ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let (mapped, reach) = shared::map_file(&external.file, of.offset, of.bytes)?;
        let whose = (context.device.physical, context.device.ordinal, context.handle);
        MEMORY.lock().enter(mapped, of.bytes, reach, Import::Buffer, whose);
        address.write(mapped);
        Ok(())
    }
    10000 fn cuDestroyExternalMemory(memory: Handle) { process()?; EXTERNALS.remove(memory).map(|_| ()) }
}
