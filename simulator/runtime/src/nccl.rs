//! NCCL: communicators that know their rank and size, and collectives that move nothing.
//!
//! Owns: what ranks on one machine need to go on. No rank waits for another, and every rank reads zeros. Refuses: the device
//! memory that a real communicator takes for its channels.

use crate::api::{Out, store};
use crate::calls;
use crate::status::NcclResult;
use crate::thread::{device, ready};
use std::ffi::{c_char, c_int, c_void};

/// The version whose interface we follow: 2.30.7.
const VERSION: c_int = 23_007;

/// `ncclUniqueId`
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

#[derive(Clone, Copy)]
struct Communicator {
    ranks: c_int,
    rank: c_int,
    device: c_int,
}

/// # Safety
/// The pointer must be null or a communicator of ours: they are never freed.
unsafe fn communicator<'a>(pointer: *const Communicator) -> Result<&'a Communicator, NcclResult> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.ok_or(NcclResult::INVALID_ARGUMENT)
}

fn join(place: Out<'_, *const Communicator>, ranks: c_int, rank: c_int) -> Result<(), NcclResult> {
    let device = device().map_err(|_| NcclResult::UNHANDLED_CUDA_ERROR)?;
    if rank < 0 || rank >= ranks {
        return Err(NcclResult::INVALID_ARGUMENT);
    }
    store(place, Box::into_raw(Box::new(Communicator { ranks, rank, device })).cast_const());
    Ok(())
}

api! {
    simulated fn ncclGetVersion(version: Out<'_, c_int>) -> NcclResult { store(version, VERSION); Ok(()) }
    simulated fn ncclGetUniqueId(id: Out<'_, UniqueId>) -> NcclResult {
        // Not zero, and another for each process: programs compare them.
        let mut bytes = [0x6d; 128];
        bytes[..4].copy_from_slice(&std::process::id().to_ne_bytes());
        store(id, UniqueId(bytes));
        Ok(())
    }
    simulated fn ncclCommInitRank(
        place: Out<'_, *const Communicator>, ranks: c_int, _id: UniqueId, rank: c_int,
    ) -> NcclResult { join(place, ranks, rank) }
    simulated fn ncclCommInitRankConfig(
        place: Out<'_, *const Communicator>, ranks: c_int, _id: UniqueId, rank: c_int, _configuration: *const c_void,
    ) -> NcclResult { join(place, ranks, rank) }
    simulated fn ncclCommInitRankScalable(
        place: Out<'_, *const Communicator>, ranks: c_int, rank: c_int, _ids: c_int, _id: *const UniqueId,
        _configuration: *const c_void,
    ) -> NcclResult { join(place, ranks, rank) }
    simulated fn ncclCommInitAll(places: *mut *const Communicator, count: c_int, devices: *const c_int) -> NcclResult {
        for rank in 0..count {
            // SAFETY: the program gives room for `count` communicators, and as many devices or null.
            unsafe {
                let device = if devices.is_null() { rank } else { *devices.add(rank as usize) };
                let made = Box::new(Communicator { ranks: count, rank, device });
                places.add(rank as usize).write(Box::into_raw(made).cast_const());
            }
        }
        Ok(())
    }
    simulated fn ncclCommSplit(
        pointer: *const Communicator, colour: c_int, _key: c_int, place: Out<'_, *const Communicator>,
        _configuration: *const c_void,
    ) -> NcclResult {
        // Which other ranks take the same colour is not known: the new communicator is as large as the old one.
        // SAFETY: the program gives its communicator.
        let parent = unsafe { communicator(pointer)? };
        let made = if colour < 0 { std::ptr::null() } else { Box::into_raw(Box::new(*parent)).cast_const() };
        store(place, made);
        Ok(())
    }
    simulated fn ncclCommCount(pointer: *const Communicator, ranks: Out<'_, c_int>) -> NcclResult {
        // SAFETY: the program gives its communicator.
        store(ranks, unsafe { communicator(pointer)? }.ranks);
        Ok(())
    }
    simulated fn ncclCommUserRank(pointer: *const Communicator, rank: Out<'_, c_int>) -> NcclResult {
        // SAFETY: the program gives its communicator.
        store(rank, unsafe { communicator(pointer)? }.rank);
        Ok(())
    }
    simulated fn ncclCommCuDevice(pointer: *const Communicator, device: Out<'_, c_int>) -> NcclResult {
        // SAFETY: the program gives its communicator.
        store(device, unsafe { communicator(pointer)? }.device);
        Ok(())
    }
    simulated fn ncclCommGetAsyncError(_pointer: *const Communicator, error: Out<'_, c_int>) -> NcclResult {
        store(error, 0);
        Ok(())
    }
    no_op fn ncclCommDestroy(_pointer: *const Communicator) -> NcclResult { Ok(()) }
    no_op fn ncclCommAbort(_pointer: *const Communicator) -> NcclResult { Ok(()) }
    no_op fn ncclCommFinalize(_pointer: *const Communicator) -> NcclResult { Ok(()) }
    no_op fn ncclCommRegister(
        _pointer: *const Communicator, _buffer: *mut c_void, _bytes: usize, handle: Out<'_, usize>,
    ) -> NcclResult {
        store(handle, 1);
        Ok(())
    }
    no_op fn ncclCommDeregister(_pointer: *const Communicator, _handle: usize) -> NcclResult { Ok(()) }
    no_op fn ncclGroupStart() -> NcclResult { Ok(()) }
    no_op fn ncclGroupEnd() -> NcclResult { Ok(()) }
    no_op fn ncclRedOpCreatePreMulSum(operation: Out<'_, c_int>) -> NcclResult {
        // The first number after the built-in operations.
        store(operation, 5);
        Ok(())
    }
    no_op fn ncclRedOpDestroy() -> NcclResult { Ok(()) }
    simulated fn ncclMemAlloc(address: *mut u64, bytes: usize) -> NcclResult {
        let driver = ready().map_err(|_| NcclResult::UNHANDLED_CUDA_ERROR)?;
        // SAFETY: the program gives a place for an address.
        unsafe { driver.cuMemAlloc(address, bytes) }.map_err(|_| NcclResult::UNHANDLED_CUDA_ERROR)
    }
    simulated fn ncclMemFree(address: u64) -> NcclResult {
        let driver = ready().map_err(|_| NcclResult::UNHANDLED_CUDA_ERROR)?;
        // SAFETY: the driver checks the address.
        unsafe { driver.cuMemFree(address) }.map_err(|_| NcclResult::UNHANDLED_CUDA_ERROR)
    }
}

plain! {
    no_op fn ncclAllReduce() -> NcclResult { calls::computed("ncclAllReduce") }
    no_op fn ncclAllGather() -> NcclResult { calls::computed("ncclAllGather") }
    no_op fn ncclReduceScatter() -> NcclResult { calls::computed("ncclReduceScatter") }
    no_op fn ncclBroadcast() -> NcclResult { calls::computed("ncclBroadcast") }
    no_op fn ncclBcast() -> NcclResult { calls::computed("ncclBcast") }
    no_op fn ncclReduce() -> NcclResult { calls::computed("ncclReduce") }
    no_op fn ncclSend() -> NcclResult { calls::computed("ncclSend") }
    no_op fn ncclRecv() -> NcclResult { calls::computed("ncclRecv") }
    no_op fn ncclAlltoAll() -> NcclResult { calls::computed("ncclAlltoAll") }
    no_op fn ncclGather() -> NcclResult { calls::computed("ncclGather") }
    no_op fn ncclScatter() -> NcclResult { calls::computed("ncclScatter") }
    simulated fn ncclGetErrorString(result: c_int) -> *const c_char {
        match result {
            0 => c"no error",
            1 => c"unhandled cuda error",
            4 => c"invalid argument",
            5 => c"invalid usage (not simulated by memscope)",
            _ => c"internal error",
        }.as_ptr()
    }
    simulated fn ncclGetLastError(_pointer: *const Communicator) -> *const c_char { c"".as_ptr() }
}
