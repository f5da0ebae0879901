//! Graphs as far as their memory: nodes that allocate and free, what the device holds for them, launches.
//!
//! Owns: the bytes of a device that are held for graphs: as many as the hungriest launch so far needs at once, until a trim. A
//! node's address is fixed when the node is made. Refuses: nodes that compute or copy, and the choice of a pool: one serves all
//! graphs of a device, as documented.

use crate::context::Context;
use crate::error::{CUresult, Status};
use crate::lock::Lock;
use crate::memory::{Kind, MEMORY};
use crate::process::{Process, process};
use crate::registry::{Handle, Registry};
use std::collections::BTreeMap;

/// What a node does.
#[derive(Clone, Copy)]
enum Deed {
    Nothing,
    Allocate { address: u64, bytes: u64 },
    Free { address: u64 },
}

/// A graph: its nodes in the order in which they were added, which every program's dependencies allow here.
struct Graph {
    nodes: Lock<Vec<Deed>>,
    device: i32,
}

/// A graph that can be launched.
struct Executable {
    graph: Handle,
    nodes: Vec<Deed>,
    device: i32,
    frees_first: bool,
}

/// CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.
const FREES_FIRST: u64 = 1;
/// CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, which does not go with the one above.
const FROM_DEVICE: u64 = 4;
/// All such flags.
const FLAGS: u64 = 0b1111;

/// What a device holds for graphs.
#[derive(Clone, Copy, Default)]
struct Held {
    physical: u32,
    /// Bytes that are allocated now: by nodes whose memory no node has freed.
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
}

static GRAPHS: Registry<Graph> = Registry::new();
static EXECUTABLES: Registry<Executable> = Registry::new();
static HELD: Lock<BTreeMap<i32, Held>> = Lock::new(BTreeMap::new());
/// What launches have allocated and nobody has freed, with its bytes and device.
static LIVE: Lock<BTreeMap<u64, (u64, i32)>> = Lock::new(BTreeMap::new());

/// Makes an empty graph.
pub fn create(context: &Context) -> Handle {
    GRAPHS.insert(Graph { nodes: Lock::new(Vec::new()), device: context.device.ordinal })
}

/// The graph if there is one of this handle, or CUDA_ERROR_INVALID_HANDLE.
pub fn known(graph: Handle) -> Result<Handle, CUresult> {
    GRAPHS.find(graph).map(|_| graph)
}

/// Destroys a graph; what was instantiated from it stays.
pub fn destroy(graph: Handle) -> Status {
    GRAPHS.remove(graph).map(|_| ())
}

fn add(graph: Handle, deed: Deed) -> Result<Handle, CUresult> {
    GRAPHS.find(graph)?.nodes.lock().push(deed);
    Ok(crate::registry::new_handle())
}

/// Adds a node that does nothing.
pub fn add_empty(graph: Handle) -> Result<Handle, CUresult> {
    add(graph, Deed::Nothing)
}

/// Adds a node that allocates; also the address.
pub fn add_allocation(context: &Context, graph: Handle, bytes: u64) -> Result<(Handle, u64), CUresult> {
    GRAPHS.find(graph)?;
    let address = MEMORY.lock().allocate(process()?, context, bytes, Kind::Graph)?;
    Ok((add(graph, Deed::Allocate { address, bytes })?, address))
}

/// Adds a node that frees what a node allocates: of this graph or another, and once in a graph.
pub fn add_free(graph: Handle, address: u64) -> Result<Handle, CUresult> {
    let region = MEMORY.lock().region(address).filter(|region| region.start == address);
    let is_planned = region.and_then(|region| region.allocation).is_some_and(|planned| planned.kind == Kind::Graph);
    let frees = |node: &Deed| matches!(*node, Deed::Free { address: freed } if freed == address);
    if !is_planned || GRAPHS.find(graph)?.nodes.lock().iter().any(frees) {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    add(graph, Deed::Free { address })
}

/// Makes a graph ready to be launched. Of one whose nodes allocate or free there is one such at a time, as documented.
pub fn instantiate(handle: Handle, flags: u64) -> Result<Handle, CUresult> {
    let graph = GRAPHS.find(handle)?;
    if flags & !FLAGS != 0 || flags & (FREES_FIRST | FROM_DEVICE) == FREES_FIRST | FROM_DEVICE {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let nodes = graph.nodes.lock().clone();
    let has_memory = nodes.iter().any(|node| !matches!(node, Deed::Nothing));
    if has_memory && EXECUTABLES.all().iter().any(|executable| executable.graph == handle) {
        return Err(CUresult::ERROR_NOT_SUPPORTED);
    }
    let frees_first = flags & FREES_FIRST != 0;
    Ok(EXECUTABLES.insert(Executable { graph: handle, nodes, device: graph.device, frees_first }))
}

/// Destroys what was instantiated; its memory stays until a trim.
pub fn destroy_executable(executable: Handle) -> Status {
    EXECUTABLES.remove(executable).map(|_| ())
}

/// Finds what was instantiated, or says CUDA_ERROR_INVALID_HANDLE.
pub fn find(executable: Handle) -> Status {
    EXECUTABLES.find(executable).map(|_| ())
}

/// Launches: takes what the device lacks for it.
pub fn launch(executable: Handle) -> Status {
    let process = process()?;
    let executable = EXECUTABLES.find(executable)?;
    let device = process.device(executable.device)?;
    let (mut held, mut live) = (HELD.lock(), LIVE.lock());
    let held = held.entry(executable.device).or_default();
    held.physical = device.physical;
    let (mut used, mut now) = (held.used, live.clone());
    for node in executable.nodes.iter().filter(|_| executable.frees_first) {
        if let Deed::Allocate { address, .. } = node {
            used -= now.remove(address).map_or(0, |(bytes, _)| bytes);
        }
    }
    let mut most = used;
    for node in &executable.nodes {
        match *node {
            Deed::Nothing => {}
            Deed::Allocate { address, .. } if now.contains_key(&address) => return Err(CUresult::ERROR_INVALID_VALUE),
            Deed::Allocate { address, bytes } => {
                now.insert(address, (bytes, executable.device));
                used += bytes;
                most = most.max(used);
            }
            Deed::Free { address } => used -= now.remove(&address).ok_or(CUresult::ERROR_INVALID_VALUE)?.0,
        }
    }
    if most > held.reserved {
        MEMORY.lock().charge(process, device.physical, most - held.reserved)?;
        held.reserved = most;
    }
    (held.used, *live) = (used, now);
    held.used_high = held.used_high.max(most);
    held.reserved_high = held.reserved_high.max(held.reserved);
    Ok(())
}

/// Frees what a launch has allocated and no node frees; false if `address` is none of these.
pub fn free(address: u64) -> bool {
    let (mut held, mut live) = (HELD.lock(), LIVE.lock());
    let Some((bytes, device)) = live.remove(&address) else { return false };
    held.entry(device).or_default().used -= bytes;
    true
}

/// Gives back what is held and not allocated.
pub fn trim(process: &Process, device: i32) {
    if let Some(held) = HELD.lock().get_mut(&device) {
        process.release(held.physical, held.reserved - held.used);
        held.reserved = held.used;
    }
}

/// Sets the mark of an attribute that says "at most" to what is now.
pub fn reset(device: i32, number: i32) -> Status {
    let mut all = HELD.lock();
    let held = all.entry(device).or_default();
    match number {
        1 => held.used_high = held.used,
        3 => held.reserved_high = held.reserved,
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    }
    Ok(())
}

/// Value of an attribute (CUgraphMem_attribute): used now and at most, reserved now and at most.
pub fn attribute(device: i32, number: i32) -> Result<u64, CUresult> {
    let held = HELD.lock().get(&device).copied().unwrap_or_default();
    match number {
        0 => Ok(held.used),
        1 => Ok(held.used_high),
        2 => Ok(held.reserved),
        3 => Ok(held.reserved_high),
        _ => Err(CUresult::ERROR_INVALID_VALUE),
    }
}
