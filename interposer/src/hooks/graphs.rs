//! The hooks of graphs: memory that a graph's nodes allocate, and capture of streams.
//!
//! Owns: what a launch has made the driver take. A node's address is fixed when the node is made, and has memory only while a launch
//! of its graph runs or the driver keeps it for the next; so the address is recorded as that of a node, and the bytes
//! that the driver holds for graphs of the device after each launch, which it tells. A capturing stream turns stream-ordered calls
//! into such nodes. Refuses: to ask anything in processes that never capture nor make such nodes.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use memscope_wire::Event;

use super::Properties;
use crate::driver::{self, SUCCESS};
use crate::owner;
use crate::state::State;
use crate::table::{FUNCTIONS, Row};

/// CU_STREAM_PER_THREAD.
const PER_THREAD: u64 = 2;
/// CU_GRAPH_NODE_TYPE_MEM_ALLOC.
const ALLOCATES: c_int = 10;

/// CUDA_MEM_ALLOC_NODE_PARAMS.
#[repr(C)]
pub struct Allocation {
    pool: Properties,
    rest_of_pool: [u64; 9],
    access: usize,
    access_count: usize,
    bytes: usize,
    address: u64,
}

const _: () = assert!(core::mem::offset_of!(Allocation, access) == 88);

/// The beginning of CUgraphNodeParams.
#[repr(C)]
pub struct Node {
    kind: c_int,
    reserved: [c_int; 3],
    allocation: Allocation,
}

/// The record of a node that allocates.
///
/// # Safety
/// After a success `allocation` points to what the driver has filled.
pub unsafe fn allocating(row: Row, state: &State, allocation: *const Allocation, result: c_int) -> Option<Event> {
    if result != SUCCESS {
        return None;
    }
    // SAFETY: the caller's promise.
    let Allocation { pool, bytes, address, .. } = unsafe { &*allocation };
    driver::preserving_errno(|| driver::introduce(state, pool.device()));
    Some(planned(row, state, *address, *bytes as u64, pool.device()))
}

/// The record of a node of any kind.
///
/// # Safety
/// After a success `node` points to what the driver has filled.
pub unsafe fn any_node(row: Row, state: &State, of: *const Node, result: c_int) -> Option<Event> {
    // SAFETY: the caller's promise; only a node that allocates is read further.
    unsafe {
        let allocates = result == SUCCESS && (*of).kind == ALLOCATES;
        allocates.then(|| allocating(row, state, &raw const (*of).allocation, result)).flatten()
    }
}

/// The record of an address at which a graph will have memory.
pub fn planned(row: Row, state: &State, address: u64, bytes: u64, device: u32) -> Event {
    state.graph_memory.store(1, Relaxed);
    Event::GraphNode { address, bytes, device, row: row as u16 }
}

/// A stream has begun to capture.
pub fn captures(state: &State, result: c_int) {
    if result == SUCCESS {
        state.captures.store(1, Relaxed);
    }
}

/// True when a stream-ordered call only adds a node to a graph.
#[inline(always)]
pub fn is_captured(row: Row, state: &State, stream: u64) -> bool {
    state.captures.load(Relaxed) != 0 && captures_now(row, stream)
}

#[cold]
#[inline(never)]
fn captures_now(row: Row, stream: u64) -> bool {
    let of_thread = stream == 0 && FUNCTIONS[row as usize].per_thread;
    driver::preserving_errno(|| driver::is_capturing(if of_thread { PER_THREAD } else { stream }))
}

/// The record of the bytes that the driver holds for graphs of the current device, if they are others than before.
#[inline(always)]
pub fn level(row: Row, state: &State, result: c_int) -> Option<Event> {
    if state.graph_memory.load(Relaxed) == 0 || result != SUCCESS {
        return None;
    }
    changed(row, state, driver::preserving_errno(|| driver::current_device(state)))
}

/// The same of a device.
pub fn level_of(row: Row, state: &State, device: c_int, result: c_int) -> Option<Event> {
    (result == SUCCESS).then(|| changed(row, state, device as u32)).flatten()
}

#[cold]
#[inline(never)]
fn changed(row: Row, state: &State, device: u32) -> Option<Event> {
    let known = state.graph_bytes.get(device as usize)?;
    let bytes = driver::preserving_errno(|| driver::graph_bytes(device))?;
    driver::preserving_errno(|| driver::introduce(state, device));
    if known.swap(bytes, Relaxed) == bytes {
        return None;
    }
    owner::settle();
    Some(Event::GraphMemory { bytes, device, row: row as u16 })
}

macro_rules! alloc_node {
    ($name:ident) => {
        hook! { $name(
            node: *mut u64, graph: *mut c_void, dependencies: *const c_void, count: usize, parameters: *mut graphs::Allocation
        ) |call| {
            // SAFETY: after a success the driver has filled `parameters`.
            observe(Row::$name, call, |state, result| unsafe { graphs::allocating(Row::$name, state, parameters, result) })
        } }
    };
}
pub(super) use alloc_node;

macro_rules! node {
    ($name:ident) => {
        hook! { $name(
            node: *mut u64, graph: *mut c_void, dependencies: *const c_void, count: usize, parameters: *mut graphs::Node
        ) |call| {
            // SAFETY: after a success the driver has read, and filled, `parameters`.
            observe(Row::$name, call, |state, result| unsafe { graphs::any_node(Row::$name, state, parameters, result) })
        } }
    };
}
pub(super) use node;

macro_rules! node_with_edges {
    ($name:ident) => {
        hook! { $name(
            node: *mut u64, graph: *mut c_void, dependencies: *const c_void, edges: *const c_void, count: usize,
            parameters: *mut graphs::Node
        ) |call| {
            // SAFETY: after a success the driver has read, and filled, `parameters`.
            observe(Row::$name, call, |state, result| unsafe { graphs::any_node(Row::$name, state, parameters, result) })
        } }
    };
}
pub(super) use node_with_edges;

macro_rules! launch {
    ($name:ident) => {
        hook! { $name(graph: *mut c_void, stream: *mut c_void) |call| {
            observe(Row::$name, call, |state, result| graphs::level(Row::$name, state, result))
        } }
    };
}
pub(super) use launch;

macro_rules! graph_trim {
    ($name:ident) => {
        hook! { $name(device: c_int) |call| {
            observe(Row::$name, call, |state, result| graphs::level_of(Row::$name, state, device, result))
        } }
    };
}
pub(super) use graph_trim;

macro_rules! capture {
    ($name:ident) => {
        hook! { $name(stream: *mut c_void) |call| {
            observe(Row::$name, call, |state, result| { graphs::captures(state, result); None })
        } }
    };
}
pub(super) use capture;

macro_rules! capture_in_mode {
    ($name:ident) => {
        hook! { $name(stream: *mut c_void, mode: c_int) |call| {
            observe(Row::$name, call, |state, result| { graphs::captures(state, result); None })
        } }
    };
}
pub(super) use capture_in_mode;

macro_rules! capture_into {
    ($name:ident) => {
        hook! { $name(
            stream: *mut c_void, graph: *mut c_void, dependencies: *const c_void, edges: *const c_void, count: usize, mode: c_int
        ) |call| {
            observe(Row::$name, call, |state, result| { graphs::captures(state, result); None })
        } }
    };
}
pub(super) use capture_into;
