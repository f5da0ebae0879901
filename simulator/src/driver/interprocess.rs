//! Memory of one process in another: handles of allocations, and what pools share. Events of other processes are not simulated.

use super::pool::DESCRIPTOR;
use super::{Out, given};
use crate::context;
use crate::error::{CUresult, Status};
use crate::memory::shared::{self, Share};
use crate::memory::{Import, MEMORY};
use crate::process::process;
use crate::registry::Handle;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;

/// CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, which the documentation demands.
const LAZY_ENABLE_PEER_ACCESS: c_uint = 1;

/// Bytes of a [`Share`].
type Bytes = [u8; size_of::<Share>()];

/// The share in the bytes that another process wrote.
fn read(bytes: Bytes) -> Result<Share, CUresult> {
    // SAFETY: every pattern of bits is a Share, which is checked before it is believed.
    unsafe { std::mem::transmute::<Bytes, Share>(bytes) }.checked()
}

fn written(share: Share) -> Bytes {
    // SAFETY: a Share has no padding between its fields.
    unsafe { std::mem::transmute::<Share, Bytes>(share) }
}

exports! {
    4010 fn cuIpcGetMemHandle(handle: Out<'_, Share>, address: u64) {
        process()?;
        let handle = given(handle)?;
        handle.write(MEMORY.lock().share(address, Import::Handle)?);
        Ok(())
    }
    4010 fn cuIpcOpenMemHandle(address: Out<'_, u64>, handle: Share, flags: c_uint) { open(address, handle, flags) }
    11000 fn cuIpcOpenMemHandle_v2(address: Out<'_, u64>, handle: Share, flags: c_uint) { open(address, handle, flags) }
    4010 fn cuIpcCloseMemHandle(address: u64) { MEMORY.lock().close(process()?, address) }
    4010 fn cuIpcGetEventHandle(_handle: *mut c_void, _event: Handle) { process()?; Err(CUresult::NOT_SIMULATED) }
    4010 fn cuIpcOpenEventHandle(_event: Out<'_, Handle>, _handle: Share) { process()?; Err(CUresult::NOT_SIMULATED) }
    11020 fn cuMemPoolExportToShareableHandle(shared: Out<'_, c_int>, pool: Handle, kind: c_int, flags: c_ulonglong) {
        process()?;
        let shared = given(shared)?;
        let share = MEMORY.lock().pools.share(pool)?;
        match (kind, flags) {
            (DESCRIPTOR, 0) => shared.write(descriptor_of(share)?),
            _ => return Err(CUresult::ERROR_INVALID_VALUE),
        };
        Ok(())
    }
    11020 fn cuMemPoolImportFromShareableHandle(
        pool: Out<'_, Handle>, shared: usize, kind: c_int, flags: c_ulonglong,
    ) {
        let (process, pool) = (process()?, given(pool)?);
        let number = c_int::try_from(shared).ok().filter(|number| kind == DESCRIPTOR && flags == 0 && *number >= 0);
        let number = number.ok_or(CUresult::ERROR_INVALID_VALUE)?;
        // SAFETY: the descriptor is the program's and stays so: it is not closed here. If it is none, the read says so.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(number) });
        let mut bytes = [0; size_of::<Share>()];
        file.read_exact_at(&mut bytes, 0).map_err(|_| CUresult::ERROR_INVALID_VALUE)?;
        let origin = read(bytes)?;
        let device = process.physical_device(origin.physical)?;
        pool.write(MEMORY.lock().pools.import(device.ordinal, device.physical, origin));
        Ok(())
    }
    11020 fn cuMemPoolExportPointer(data: Out<'_, Share>, address: u64) {
        process()?;
        let data = given(data)?;
        data.write(MEMORY.lock().share(address, Import::Pointer)?);
        Ok(())
    }
    11020 fn cuMemPoolImportPointer(address: Out<'_, u64>, pool: Handle, data: Option<&Share>) {
        let (address, share) = (given(address)?, read(written(*given(data)?))?);
        let context = context::current()?;
        address.write(MEMORY.lock().import_pointer(process()?, &context, pool, share)?);
        Ok(())
    }
}

fn open(address: Out<'_, u64>, handle: Share, flags: c_uint) -> Status {
    let address = given(address)?;
    let context = context::current()?;
    if flags != LAZY_ENABLE_PEER_ACCESS {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    address.write(MEMORY.lock().open(process()?, &context, handle.checked()?)?);
    Ok(())
}

/// A descriptor with which another process can take a pool in: a file that says whose it is.
fn descriptor_of(share: Share) -> Result<c_int, CUresult> {
    let file = shared::make_file(c"memscope-simulator-pool", 0)?;
    file.write_all_at(&written(share), 0).map_err(|_| CUresult::ERROR_OPERATING_SYSTEM)?;
    // The program's from here on.
    Ok(file.into_raw_fd())
}
