//! NCCL: communicators and collectives.
//!
//! Owns: what stands behind NCCL's names and numbers, and the streams and events that come after it; what collectives carry is
//! [`crate::collective`]'s. Refuses: the device
//! memory that a real communicator takes for its channels.

use crate::api::{Out, store};
use crate::collective::arithmetic::{Kind, Operation};
use crate::collective::{Buffers, Call, Desk, Group, Mark, Order, Place, name_of};
use crate::cudart::is_capturing;
use crate::status::{CudaError, NcclResult};
use crate::thread::{device, ready};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The version whose interface we follow: 2.30.7.
const VERSION: c_int = 23_007;

/// `ncclUniqueId`
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

impl UniqueId {
    /// Another one each time, in every process.
    fn new() -> UniqueId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let words = [now, u64::from(std::process::id()), NEXT.fetch_add(1, Ordering::Relaxed)];
        let mut bytes = [0x6d; 128];
        bytes[..24].copy_from_slice(&words.map(u64::to_ne_bytes).concat());
        UniqueId(bytes)
    }
}

struct Communicator {
    group: &'static Group,
    device: c_int,
}

static DESK: Desk = Desk::new();
static ORDER: Order = Order::new();

/// Before device memory is read or written by other means: what collectives left there is settled.
pub fn settle(ranges: &[(u64, usize)]) {
    if let Ok(driver) = crate::driver::driver() {
        DESK.settle(ranges, driver);
    }
}

/// Something ran that may have written anywhere.
pub fn forget() {
    DESK.forget();
}

/// CU_STREAM_NON_BLOCKING.
const NON_BLOCKING: c_uint = 1;

/// A stream's place in the order. The default streams and those that wait for them are taken as one.
fn place(stream: usize) -> Place {
    // cudaStreamLegacy is 1, cudaStreamPerThread is 2.
    if stream <= 2 {
        return Place::Stream(0);
    }
    let mut flags = NON_BLOCKING;
    if let Ok(driver) = ready() {
        // SAFETY: `flags` is good for a write, and the driver checks the handle.
        let _ = unsafe { driver.cuStreamGetFlags(stream, &mut flags) };
    }
    Place::Stream(if flags & NON_BLOCKING == 0 { 0 } else { stream })
}

/// Puts a collective or a message on a stream. What a graph captures does not run.
fn put(stream: usize, mark: Mark) {
    if !is_capturing(stream) {
        ORDER.put(place(stream), mark);
    }
}

/// An event is recorded in a stream.
pub fn recorded(event: usize, stream: usize) {
    if ORDER.any() {
        ORDER.record(Place::Event(event), place(stream));
    }
}

/// A stream waits for an event.
pub fn joined_by(stream: usize, event: usize) {
    if ORDER.any() {
        ORDER.follow(place(stream), Place::Event(event));
    }
}

/// The program waits for a stream, and so for the ranks of other processes to come to what is on it.
pub fn wait_for_stream(stream: usize) {
    if ORDER.any() {
        ORDER.wait(place(stream));
    }
}

/// The program waits for an event, as for a stream.
pub fn wait_for_event(event: usize) {
    ORDER.wait(Place::Event(event));
}

/// The program waits for the device.
pub fn wait_for_all() {
    ORDER.wait_for_all();
}

/// Whether a stream is done, as far as other ranks go.
pub fn stream_is_done(stream: usize) -> Result<(), CudaError> {
    done(!ORDER.any() || ORDER.is_done(place(stream)))
}

/// Whether an event is, likewise.
pub fn event_is_done(event: usize) -> Result<(), CudaError> {
    done(ORDER.is_done(Place::Event(event)))
}

fn done(done: bool) -> Result<(), CudaError> {
    if done { Ok(()) } else { Err(CudaError::NOT_READY) }
}

/// A stream is no more.
pub fn stream_destroyed(stream: usize) {
    ORDER.forget(Place::Stream(stream));
}

/// An event is no more.
pub fn event_destroyed(event: usize) {
    ORDER.forget(Place::Event(event));
}

/// # Safety
/// The pointer must be null or a communicator of ours: they are never freed.
unsafe fn communicator(pointer: *const Communicator) -> Result<&'static Communicator, NcclResult> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.ok_or(NcclResult::INVALID_ARGUMENT)
}

fn made(group: Group, device: c_int) -> *const Communicator {
    let group: &'static Group = Box::leak(Box::new(group));
    Box::into_raw(Box::new(Communicator { group, device })).cast_const()
}

fn join(place: Out<'_, *const Communicator>, id: &UniqueId, ranks: c_int, rank: c_int) -> Result<(), NcclResult> {
    let device = device().map_err(|_| NcclResult::UNHANDLED_CUDA_ERROR)?;
    if rank < 0 || rank >= ranks {
        return Err(NcclResult::INVALID_ARGUMENT);
    }
    store(place, made(Group::join(name_of(&id.0), ranks as usize, rank as usize), device));
    Ok(())
}

/// Calls a collective on a stream; `count` are a rank's elements.
///
/// # Safety
/// As [`communicator`].
unsafe fn collective(
    pointer: *const Communicator,
    (send, receive): (u64, u64),
    count: usize,
    kind: c_int,
    call: Call,
    stream: usize,
) -> Result<(), NcclResult> {
    // SAFETY: as the caller says.
    let group = unsafe { communicator(pointer)? }.group;
    let (driver, bytes) = transfer(count, kind)?;
    if call.root().is_some_and(|root| root >= group.ranks) {
        return Err(NcclResult::INVALID_ARGUMENT);
    }
    put(stream, DESK.call(group, call, Buffers { send, receive, bytes }, driver));
    Ok(())
}

fn transfer(count: usize, kind: c_int) -> Result<(&'static crate::driver::Driver, usize), NcclResult> {
    let driver = ready().map_err(|_| NcclResult::UNHANDLED_CUDA_ERROR)?;
    let bytes = Kind(kind).bytes().and_then(|bytes| bytes.checked_mul(count)).ok_or(NcclResult::INVALID_ARGUMENT)?;
    Ok((driver, bytes))
}

/// A rank of the communicator that the program named.
fn peer(group: &Group, rank: c_int) -> Result<usize, NcclResult> {
    usize::try_from(rank).ok().filter(|&rank| rank < group.ranks).ok_or(NcclResult::INVALID_ARGUMENT)
}

api! {
    simulated fn ncclGetVersion(version: Out<'_, c_int>) -> NcclResult { store(version, VERSION); Ok(()) }
    simulated fn ncclGetUniqueId(id: Out<'_, UniqueId>) -> NcclResult { store(id, UniqueId::new()); Ok(()) }
    simulated fn ncclCommInitRank(
        place: Out<'_, *const Communicator>, ranks: c_int, id: UniqueId, rank: c_int,
    ) -> NcclResult { join(place, &id, ranks, rank) }
    simulated fn ncclCommInitRankConfig(
        place: Out<'_, *const Communicator>, ranks: c_int, id: UniqueId, rank: c_int, _configuration: *const c_void,
    ) -> NcclResult { join(place, &id, ranks, rank) }
    simulated fn ncclCommInitRankScalable(
        place: Out<'_, *const Communicator>, ranks: c_int, rank: c_int, _ids: c_int, ids: *const UniqueId,
        _configuration: *const c_void,
    ) -> NcclResult {
        // SAFETY: the program gives at least one, the same ones to all ranks.
        join(place, unsafe { ids.as_ref() }.ok_or(NcclResult::INVALID_ARGUMENT)?, ranks, rank)
    }
    simulated fn ncclCommInitAll(places: *mut *const Communicator, count: c_int, devices: *const c_int) -> NcclResult {
        let name = name_of(&UniqueId::new().0);
        for rank in 0..count {
            // SAFETY: the program gives room for `count` communicators, and as many devices or null.
            unsafe {
                let device = if devices.is_null() { rank } else { *devices.add(rank as usize) };
                places.add(rank as usize).write(made(Group::join(name, count as usize, rank as usize), device));
            }
        }
        Ok(())
    }
    simulated fn ncclCommSplit(
        pointer: *const Communicator, colour: c_int, key: c_int, place: Out<'_, *const Communicator>,
        _configuration: *const c_void,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        let parent = unsafe { communicator(pointer)? };
        let split = parent.group.split(colour, key);
        // If the others' colours are not known, the new communicator is as large as the old one, and carries nothing.
        let split = split.unwrap_or_else(|| Group::alone(parent.group.ranks, parent.group.rank));
        store(place, if colour < 0 { std::ptr::null() } else { made(split, parent.device) });
        Ok(())
    }
    simulated fn ncclCommCount(pointer: *const Communicator, ranks: Out<'_, c_int>) -> NcclResult {
        // SAFETY: the program gives its communicator.
        store(ranks, unsafe { communicator(pointer)? }.group.ranks as c_int);
        Ok(())
    }
    simulated fn ncclCommUserRank(pointer: *const Communicator, rank: Out<'_, c_int>) -> NcclResult {
        // SAFETY: the program gives its communicator.
        store(rank, unsafe { communicator(pointer)? }.group.rank as c_int);
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
    simulated fn ncclCommDestroy(pointer: *const Communicator) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { communicator(pointer)? }.group.leave();
        Ok(())
    }
    simulated fn ncclCommAbort(pointer: *const Communicator) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { communicator(pointer)? }.group.leave();
        Ok(())
    }
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
    simulated fn ncclAllReduce(
        send: u64, receive: u64, count: usize, kind: c_int, operation: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::AllReduce(Kind(kind), Operation(operation)), stream) }
    }
    simulated fn ncclReduceScatter(
        send: u64, receive: u64, count: usize, kind: c_int, operation: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::ReduceScatter(Kind(kind), Operation(operation)), stream) }
    }
    simulated fn ncclAllGather(
        send: u64, receive: u64, count: usize, kind: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::AllGather, stream) }
    }
    simulated fn ncclAlltoAll(
        send: u64, receive: u64, count: usize, kind: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::AllToAll, stream) }
    }
    simulated fn ncclReduce(
        send: u64, receive: u64, count: usize, kind: c_int, operation: c_int, root: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::Reduce(Kind(kind), Operation(operation), root as usize), stream) }
    }
    simulated fn ncclBroadcast(
        send: u64, receive: u64, count: usize, kind: c_int, root: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::Broadcast(root as usize), stream) }
    }
    simulated fn ncclBcast(
        buffer: u64, count: usize, kind: c_int, root: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (buffer, buffer), count, kind, Call::Broadcast(root as usize), stream) }
    }
    simulated fn ncclGather(
        send: u64, receive: u64, count: usize, kind: c_int, root: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::Gather(root as usize), stream) }
    }
    simulated fn ncclScatter(
        send: u64, receive: u64, count: usize, kind: c_int, root: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        unsafe { collective(pointer, (send, receive), count, kind, Call::Scatter(root as usize), stream) }
    }
    simulated fn ncclSend(
        buffer: u64, count: usize, kind: c_int, rank: c_int, pointer: *const Communicator, _stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        let group = unsafe { communicator(pointer)? }.group;
        let (driver, bytes) = transfer(count, kind)?;
        DESK.send(group, peer(group, rank)?, (buffer, bytes), driver);
        Ok(())
    }
    simulated fn ncclRecv(
        buffer: u64, count: usize, kind: c_int, rank: c_int, pointer: *const Communicator, stream: usize,
    ) -> NcclResult {
        // SAFETY: the program gives its communicator.
        let group = unsafe { communicator(pointer)? }.group;
        let (driver, bytes) = transfer(count, kind)?;
        put(stream, DESK.receive(group, peer(group, rank)?, (buffer, bytes), driver));
        Ok(())
    }
}

plain! {
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
