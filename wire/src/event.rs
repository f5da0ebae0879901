//! What a record says: kinds, their words, and the typed [`Event`] that both sides use.
//!
//! One variant is one kind. [`Event::encode`] and [`Event::decode`] are inverses; a record of an unknown kind decodes to
//! `None` and is kept by readers as it is.

pub mod kind;

use crate::log::Record;
use crate::text::{PART_BYTES, TextId};

/// What bytes are for. The number is the one in records, in the C API and in profiles.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Category {
    /// Not known; shown as such, never spread over the others.
    #[default]
    Unknown = 0,
    /// Parameters (and buffers) of the model.
    Weights = 1,
    /// Gradients of parameters.
    Gradients = 2,
    /// Kept from forward for backward.
    Activations = 3,
    /// State of the optimizer.
    Optimizer = 4,
    /// Batches: data, labels, masks.
    Inputs = 5,
    /// Temporaries, in forward too.
    Workspace = 6,
}

impl Category {
    /// All categories in the order of their numbers.
    pub const ALL: [Category; 7] = [
        Category::Unknown,
        Category::Weights,
        Category::Gradients,
        Category::Activations,
        Category::Optimizer,
        Category::Inputs,
        Category::Workspace,
    ];

    /// The category with this number; an unassigned number is [`Category::Unknown`].
    pub const fn from_number(number: u8) -> Category {
        if (number as usize) < Category::ALL.len() { Category::ALL[number as usize] } else { Category::Unknown }
    }

    /// Name in reports, in lower case.
    pub const fn name(self) -> &'static str {
        ["unknown", "weights", "gradients", "activations", "optimizer", "inputs", "workspace"][self as usize]
    }
}

/// How a category is known.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Origin {
    /// Not known at all: goes with [`Category::Unknown`].
    #[default]
    None = 0,
    /// The program said so through the C API.
    Tagged = 1,
    /// A framework hook saw it.
    Hooked = 2,
    /// Concluded from circumstances.
    Inferred = 3,
}

impl Origin {
    /// The origin with this number; an unassigned one is [`Origin::None`].
    pub const fn from_number(number: u8) -> Origin {
        match number {
            1 => Origin::Tagged,
            2 => Origin::Hooked,
            3 => Origin::Inferred,
            _ => Origin::None,
        }
    }

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        ["none", "tagged", "hooked", "inferred"][self as usize]
    }
}

/// Where an allocation of the driver lives.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum MemoryKind {
    /// Device memory (cuMemAlloc, cuMemAllocPitch).
    #[default]
    Device = 0,
    /// Device memory from a stream-ordered pool (cuMemAllocAsync, cuMemAllocFromPoolAsync).
    Pool = 1,
    /// Managed memory: may live on the host, may exceed the device.
    Managed = 2,
    /// Pinned host memory.
    Host = 3,
    /// Pageable host memory of a framework's CPU tensors.
    Pageable = 4,
}

impl MemoryKind {
    /// The kind with this number; an unassigned one is [`MemoryKind::Device`].
    pub const fn from_number(number: u8) -> MemoryKind {
        match number {
            1 => MemoryKind::Pool,
            2 => MemoryKind::Managed,
            3 => MemoryKind::Host,
            4 => MemoryKind::Pageable,
            _ => MemoryKind::Device,
        }
    }

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        ["device", "pool", "managed", "host", "pageable"][self as usize]
    }

    /// True for memory of the host, which belongs to no device.
    pub const fn on_host(self) -> bool {
        matches!(self, MemoryKind::Host | MemoryKind::Pageable)
    }
}

/// What the driver makes for a program and takes memory for without telling how much.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Object {
    /// A context. Its end frees what was allocated in it.
    #[default]
    Context = 0,
    /// A module: code, and variables of the device.
    Module = 1,
    /// A library: the same, for all contexts.
    Library = 2,
    /// A pool of stream-ordered memory: what it keeps beyond what is allocated from it.
    Pool = 3,
    /// A graph that can be launched.
    Graph = 4,
    /// Memory of another interface (Vulkan, a file descriptor of another process) that was imported.
    External = 5,
    /// A multicast object, to which memory of several devices is bound.
    Multicast = 6,
    /// Something of a later version.
    Other = 7,
}

impl Object {
    /// All objects in the order of their numbers.
    pub const ALL: [Object; 8] = [
        Object::Context,
        Object::Module,
        Object::Library,
        Object::Pool,
        Object::Graph,
        Object::External,
        Object::Multicast,
        Object::Other,
    ];

    /// The object with this number; an unassigned one is [`Object::Other`].
    pub const fn from_number(number: u8) -> Object {
        if (number as usize) < Object::ALL.len() { Object::ALL[number as usize] } else { Object::Other }
    }

    /// Name in reports, in lower case.
    pub const fn name(self) -> &'static str {
        ["context", "module", "library", "pool", "graph", "external", "multicast", "other"][self as usize]
    }
}

/// How the bytes of memory without an address of its own are known.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Measure {
    /// The program asked for so many, or the driver says so.
    #[default]
    Told = 0,
    /// Computed from the description of an array: at least so many.
    Computed = 1,
    /// Not known; the bytes are 0.
    Unknown = 2,
}

impl Measure {
    /// The measure with this number; an unassigned one is [`Measure::Unknown`].
    pub const fn from_number(number: u64) -> Measure {
        match number {
            0 => Measure::Told,
            1 => Measure::Computed,
            _ => Measure::Unknown,
        }
    }
}

/// Device ordinal of memory that belongs to no device (pinned host memory), and of one that could not be told.
pub const NO_DEVICE: u32 = u32::MAX;

/// One event. Addresses are those of the profiled process; bytes are bytes; `device` is the CUDA ordinal in that process.
#[expect(missing_docs, reason = "fields are explained by the sentence on their variant")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A part of a name: bytes `part * 32 ..` of the text of `total_bytes` bytes whose hash is `id`. A text is complete when
    /// all its parts were seen; parts may be repeated.
    Text { id: TextId, total_bytes: u32, part: u32, bytes: [u8; PART_BYTES] },
    /// The function whose row number is `row` in later records: its name, padded with NUL.
    Function { row: u16, name: [u8; 40] },
    /// A device ordinal of this process is the device with this UUID.
    Device { ordinal: u32, total_bytes: u64, uuid: [u8; 16] },
    /// The first event of a thread: it has no open scope.
    Thread,
    /// The driver gave memory. Recorded after the call. `bytes` is what was given, `requested` what was asked for (they
    /// differ for pitched memory).
    Alloc { address: u64, bytes: u64, requested: u64, stream: u64, device: u32, row: u16, memory: MemoryKind },
    /// What the thread allocates from now on, it allocates in this context.
    Context { context: u64, device: u32 },
    /// The driver made something whose bytes it does not tell. Recorded after the call.
    Object { object: Object, handle: u64, device: u32, row: u16 },
    /// It is there no more. Recorded after the call: what a context held is free then.
    ObjectEnd { object: Object, handle: u64, row: u16 },
    /// The program gives memory back. Recorded before the call, since another thread may own the address after it.
    Free { address: u64, stream: u64, row: u16 },
    /// The driver gave memory that has no address (yet): cuMemCreate, arrays. Recorded after the call.
    Create { handle: u64, bytes: u64, measure: Measure, device: u32, row: u16, memory: MemoryKind },
    /// The program gives such memory back; it stays while it is mapped. Recorded before the call.
    Release { handle: u64, row: u16 },
    /// `bytes` of such memory, from `offset` on, are at `address` from now on. Recorded after the call.
    Map { address: u64, bytes: u64, offset: u64, handle: u64, row: u16 },
    /// Nothing is mapped at these addresses any more. Recorded before the call.
    Unmap { address: u64, bytes: u64, row: u16 },
    /// Memory that was imported, so that its bytes count at its exporter. `handle` is 0 for memory at an address, `address` for
    /// memory that may be mapped. Recorded after the call.
    Elsewhere { address: u64, bytes: u64, handle: u64, device: u32, row: u16 },
    /// One more reference to memory that was created: as many releases give it back. Recorded after the call.
    Retain { handle: u64, row: u16 },
    /// A node of a graph will have memory at this address, at each launch anew. Its bytes count in [`Event::GraphMemory`]. Recorded
    /// after the call.
    GraphNode { address: u64, bytes: u64, device: u32, row: u16 },
    /// So many bytes does the driver hold for graphs on this device from now on.
    GraphMemory { bytes: u64, device: u32, row: u16 },
    /// So many bytes does a pool of stream-ordered memory keep from now on, beyond those that are allocated from it.
    PoolReserve { pool: u64, bytes: u64, device: u32, row: u16 },
    /// The driver refused the free (release, unmapping) recorded at `slot` with `result`: that memory is still there.
    FreeRefused { address: u64, slot: u64, result: i32, row: u16 },
    /// The driver refused an allocation. `free` and `total` are cuMemGetInfo's answer right after, 0/0 when it failed too.
    AllocFailed { requested: u64, free: u64, total: u64, device: u32, result: i32, row: u16, memory: MemoryKind },
    /// The line of the program that asked for what was refused last on this device in this process, as text.
    RefusedLine { line: TextId, device: u32 },
    /// A block inside an allocation: `requested` as asked for, `bytes` as taken from the container (at least `requested`).
    BlockAlloc { address: u64, bytes: u64, requested: u64, stream: u64, origin: Origin },
    /// The block at `address` is free again; its memory stays with the container.
    BlockFree { address: u64, origin: Origin },
    /// The block (or allocation) live at `address` is of this category and has this name. The last tag wins, for its whole
    /// life.
    Tag { address: u64, name: TextId, category: Category, origin: Origin },
    /// The thread enters a scope.
    ScopePush { name: TextId },
    /// The thread leaves its innermost scope.
    ScopePop,
    /// The process is in this phase from now on.
    Phase { name: TextId },
    /// Step `number` begins now, in the whole process.
    Step { number: u64 },
    /// The thread is in the scope of this path, whose parts are joined by dots, and in none that it entered before; `NONE` is
    /// outside of all.
    Scope { path: TextId },
    /// A place on a stack of the program's own language: `function`, at `line` of `file`, called from node `parent` (0: from
    /// nowhere). Told before its first use, and possibly again. A node without a file is a remark, which `function` is.
    StackNode { node: u64, parent: u64, file: TextId, function: TextId, line: u32 },
    /// A place on a stack of machine code: `offset` in the address space of the file `module` (where its segments say that they
    /// belong), called from node `parent` (0: from nowhere). Of a caller, it is the last byte of the call. `module` is a path and what
    /// identifies its content, see [`crate::module`]. Told before its first use, and possibly again.
    StackAddress { node: u64, parent: u64, module: TextId, offset: u64 },
    /// What the thread allocates from now on, it allocates at this node; 0 is nowhere. Not `whole`: the real place is deeper, and
    /// there was no room for its nodes.
    Stack { node: u64, whole: bool },
    /// The phase that follows is named by an NVTX range, and not by the program itself or a framework's shim: what the driver gives in
    /// it may be concluded from it.
    Ranges,
    /// What the thread asks the driver for from now on, code of the file at this path asks for, as the kernel writes it; `NONE` is code
    /// of no file.
    Owner { owner: TextId },
    /// What a hook could not do in this process, as a sentence for the report.
    Notice { text: TextId },
    /// A framework (PyTorch) is in this process, with a shim that follows it.
    Framework,
    /// What this process is called among those of the program: `SpawnProcess-1`. The last one counts.
    ProcessName { name: TextId },
    /// The CUDA libraries that this process uses are simulated: none of its values are computed.
    NotComputed,
    /// The program called a function that the simulation does not have, and got an error from it.
    NotSimulated { function: TextId },
    /// The program's line `line` read `bytes` of a simulated device; `known` if they are what the program wrote there, and not
    /// zeros in the place of what a GPU would have computed.
    DeviceRead { line: TextId, bytes: u64, known: bool },
}

const fn pack(low: u32, row: u16, small: u8) -> u64 {
    low as u64 | (row as u64) << 32 | (small as u64) << 48
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}

impl Event {
    /// Kind and words of the event.
    #[inline(always)]
    pub fn encode(&self) -> (u16, [u64; 6]) {
        match *self {
            Event::Text { id, total_bytes, part, bytes } => (
                kind::TEXT,
                [
                    id.0,
                    total_bytes as u64 | (part as u64) << 32,
                    eight(&bytes, 0),
                    eight(&bytes, 8),
                    eight(&bytes, 16),
                    eight(&bytes, 24),
                ],
            ),
            Event::Function { row, name } => (
                kind::FUNCTION,
                [row as u64, eight(&name, 0), eight(&name, 8), eight(&name, 16), eight(&name, 24), eight(&name, 32)],
            ),
            Event::Device { ordinal, total_bytes, uuid } => {
                (kind::DEVICE, [ordinal as u64, total_bytes, eight(&uuid, 0), eight(&uuid, 8), 0, 0])
            }
            Event::Thread => (kind::THREAD, [0; 6]),
            Event::Context { context, device } => (kind::CONTEXT, [context, 0, 0, 0, pack(device, 0, 0), 0]),
            Event::Object { object, handle, device, row } => {
                (kind::OBJECT, [handle, 0, 0, 0, pack(device, row, object as u8), 0])
            }
            Event::ObjectEnd { object, handle, row } => {
                (kind::OBJECT_END, [handle, 0, 0, 0, pack(0, row, object as u8), 0])
            }
            Event::Alloc { address, bytes, requested, stream, device, row, memory } => {
                (kind::ALLOC, [address, bytes, requested, stream, pack(device, row, memory as u8), 0])
            }
            Event::Free { address, stream, row } => (kind::FREE, [address, 0, 0, stream, pack(0, row, 0), 0]),
            Event::FreeRefused { address, slot, result, row } => {
                (kind::FREE_REFUSED, [address, slot, result as u32 as u64, 0, pack(0, row, 0), 0])
            }
            Event::AllocFailed { requested, free, total, device, result, row, memory } => {
                (kind::ALLOC_FAILED, [requested, free, total, result as u32 as u64, pack(device, row, memory as u8), 0])
            }
            Event::RefusedLine { line, device } => (kind::REFUSED_LINE, [0, line.0, 0, 0, pack(device, 0, 0), 0]),
            Event::Create { handle, bytes, measure, device, row, memory } => {
                (kind::CREATE, [handle, bytes, measure as u64, 0, pack(device, row, memory as u8), 0])
            }
            Event::Release { handle, row } => (kind::RELEASE, [handle, 0, 0, 0, pack(0, row, 0), 0]),
            Event::Map { address, bytes, offset, handle, row } => {
                (kind::MAP, [address, bytes, offset, handle, pack(0, row, 0), 0])
            }
            Event::Unmap { address, bytes, row } => (kind::UNMAP, [address, bytes, 0, 0, pack(0, row, 0), 0]),
            Event::Elsewhere { address, bytes, handle, device, row } => {
                (kind::ELSEWHERE, [address, bytes, 0, handle, pack(device, row, 0), 0])
            }
            Event::GraphNode { address, bytes, device, row } => {
                (kind::GRAPH_NODE, [address, bytes, 0, 0, pack(device, row, 0), 0])
            }
            Event::Retain { handle, row } => (kind::RETAIN, [handle, 0, 0, 0, pack(0, row, 0), 0]),
            Event::GraphMemory { bytes, device, row } => {
                (kind::GRAPH_MEMORY, [0, bytes, 0, 0, pack(device, row, 0), 0])
            }
            Event::PoolReserve { pool, bytes, device, row } => {
                (kind::POOL_RESERVE, [pool, bytes, 0, 0, pack(device, row, 0), 0])
            }
            Event::BlockAlloc { address, bytes, requested, stream, origin } => {
                (kind::BLOCK_ALLOC, [address, bytes, requested, stream, pack(0, 0, origin as u8), 0])
            }
            Event::BlockFree { address, origin } => (kind::BLOCK_FREE, [address, 0, 0, 0, pack(0, 0, origin as u8), 0]),
            Event::Tag { address, name, category, origin } => {
                (kind::TAG, [address, name.0, category as u64, 0, pack(0, 0, origin as u8), 0])
            }
            Event::ScopePush { name } => (kind::SCOPE_PUSH, [0, name.0, 0, 0, 0, 0]),
            Event::ScopePop => (kind::SCOPE_POP, [0; 6]),
            Event::Phase { name } => (kind::PHASE, [0, name.0, 0, 0, 0, 0]),
            Event::Step { number } => (kind::STEP, [number, 0, 0, 0, 0, 0]),
            Event::Scope { path } => (kind::SCOPE, [0, path.0, 0, 0, 0, 0]),
            Event::StackNode { node, parent, file, function, line } => {
                (kind::STACK_NODE, [node, parent, file.0, function.0, line as u64, 0])
            }
            Event::StackAddress { node, parent, module, offset } => {
                (kind::STACK_ADDRESS, [node, parent, module.0, 0, offset, 0])
            }
            Event::Stack { node, whole } => (kind::STACK, [node, !whole as u64, 0, 0, 0, 0]),
            Event::Ranges => (kind::RANGES, [0; 6]),
            Event::Owner { owner } => (kind::OWNER, [0, owner.0, 0, 0, 0, 0]),
            Event::Notice { text } => (kind::NOTICE, [0, text.0, 0, 0, 0, 0]),
            Event::NotComputed => (kind::NOT_COMPUTED, [0; 6]),
            Event::Framework => (kind::FRAMEWORK, [0; 6]),
            Event::ProcessName { name } => (kind::PROCESS_NAME, [0, name.0, 0, 0, 0, 0]),
            Event::NotSimulated { function } => (kind::NOT_SIMULATED, [0, function.0, 0, 0, 0, 0]),
            Event::DeviceRead { line, bytes, known } => {
                (kind::DEVICE_READ, [0, line.0, bytes, 0, pack(0, 0, known as u8), 0])
            }
        }
    }

    /// The event in a record; `None` for an uncommitted slot and for kinds of a later version.
    pub fn decode(record: &Record) -> Option<Event> {
        let w = record.words;
        let device = w[4] as u32;
        let row = (w[4] >> 32) as u16;
        let small = (w[4] >> 48) as u8;
        Some(match record.kind() {
            kind::TEXT => {
                let mut bytes = [0; PART_BYTES];
                for (index, word) in w[2..6].iter().enumerate() {
                    bytes[index * 8..index * 8 + 8].copy_from_slice(&word.to_le_bytes());
                }
                Event::Text { id: TextId(w[0]), total_bytes: w[1] as u32, part: (w[1] >> 32) as u32, bytes }
            }
            kind::FUNCTION => {
                let mut name = [0; 40];
                for (index, word) in w[1..6].iter().enumerate() {
                    name[index * 8..index * 8 + 8].copy_from_slice(&word.to_le_bytes());
                }
                Event::Function { row: w[0] as u16, name }
            }
            kind::DEVICE => {
                let mut uuid = [0; 16];
                uuid[..8].copy_from_slice(&w[2].to_le_bytes());
                uuid[8..].copy_from_slice(&w[3].to_le_bytes());
                Event::Device { ordinal: w[0] as u32, total_bytes: w[1], uuid }
            }
            kind::THREAD => Event::Thread,
            kind::CONTEXT => Event::Context { context: w[0], device },
            kind::OBJECT => Event::Object { object: Object::from_number(small), handle: w[0], device, row },
            kind::OBJECT_END => Event::ObjectEnd { object: Object::from_number(small), handle: w[0], row },
            kind::ALLOC => Event::Alloc {
                address: w[0],
                bytes: w[1],
                requested: w[2],
                stream: w[3],
                device,
                row,
                memory: MemoryKind::from_number(small),
            },
            kind::FREE => Event::Free { address: w[0], stream: w[3], row },
            kind::FREE_REFUSED => Event::FreeRefused { address: w[0], slot: w[1], result: w[2] as u32 as i32, row },
            kind::ALLOC_FAILED => Event::AllocFailed {
                requested: w[0],
                free: w[1],
                total: w[2],
                device,
                result: w[3] as u32 as i32,
                row,
                memory: MemoryKind::from_number(small),
            },
            kind::REFUSED_LINE => Event::RefusedLine { line: TextId(w[1]), device },
            kind::CREATE => Event::Create {
                handle: w[0],
                bytes: w[1],
                measure: Measure::from_number(w[2]),
                device,
                row,
                memory: MemoryKind::from_number(small),
            },
            kind::RELEASE => Event::Release { handle: w[0], row },
            kind::MAP => Event::Map { address: w[0], bytes: w[1], offset: w[2], handle: w[3], row },
            kind::UNMAP => Event::Unmap { address: w[0], bytes: w[1], row },
            kind::ELSEWHERE => Event::Elsewhere { address: w[0], bytes: w[1], handle: w[3], device, row },
            kind::GRAPH_NODE => Event::GraphNode { address: w[0], bytes: w[1], device, row },
            kind::RETAIN => Event::Retain { handle: w[0], row },
            kind::GRAPH_MEMORY => Event::GraphMemory { bytes: w[1], device, row },
            kind::POOL_RESERVE => Event::PoolReserve { pool: w[0], bytes: w[1], device, row },
            kind::BLOCK_ALLOC => Event::BlockAlloc {
                address: w[0],
                bytes: w[1],
                requested: w[2],
                stream: w[3],
                origin: Origin::from_number(small),
            },
            kind::BLOCK_FREE => Event::BlockFree { address: w[0], origin: Origin::from_number(small) },
            kind::TAG => Event::Tag {
                address: w[0],
                name: TextId(w[1]),
                category: Category::from_number(w[2] as u8),
                origin: Origin::from_number(small),
            },
            kind::SCOPE_PUSH => Event::ScopePush { name: TextId(w[1]) },
            kind::SCOPE_POP => Event::ScopePop,
            kind::PHASE => Event::Phase { name: TextId(w[1]) },
            kind::STEP => Event::Step { number: w[0] },
            kind::SCOPE => Event::Scope { path: TextId(w[1]) },
            kind::STACK_NODE => Event::StackNode {
                node: w[0],
                parent: w[1],
                file: TextId(w[2]),
                function: TextId(w[3]),
                line: w[4] as u32,
            },
            kind::STACK_ADDRESS => Event::StackAddress { node: w[0], parent: w[1], module: TextId(w[2]), offset: w[4] },
            kind::STACK => Event::Stack { node: w[0], whole: w[1] == 0 },
            kind::RANGES => Event::Ranges,
            kind::OWNER => Event::Owner { owner: TextId(w[1]) },
            kind::NOTICE => Event::Notice { text: TextId(w[1]) },
            kind::NOT_COMPUTED => Event::NotComputed,
            kind::FRAMEWORK => Event::Framework,
            kind::PROCESS_NAME => Event::ProcessName { name: TextId(w[1]) },
            kind::NOT_SIMULATED => Event::NotSimulated { function: TextId(w[1]) },
            kind::DEVICE_READ => Event::DeviceRead { line: TextId(w[1]), bytes: w[2], known: small != 0 },
            _ => return None,
        })
    }

    /// The event as a record with the given thread and clock reading.
    pub fn record(&self, thread: u32, ticks: u64) -> Record {
        let (kind, words) = self.encode();
        Record { head: kind as u32, thread, ticks, words }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    #[test]
    fn every_kind_decodes_to_what_was_encoded() {
        let name = TextId::of(b"encoder.layers.3");
        let all = vec![
            Event::Text { id: name, total_bytes: 40, part: 1, bytes: *b"0123456789abcdef0123456789abcdef" },
            Event::Function { row: 7, name: *b"cuMemAllocFromPoolAsync_ptsz\0\0\0\0\0\0\0\0\0\0\0\0" },
            Event::Device { ordinal: 3, total_bytes: 80 << 30, uuid: crate::device::uuid(3) },
            Event::Thread,
            Event::Alloc {
                address: u64::MAX,
                bytes: 1 << 40,
                requested: 5,
                stream: 9,
                device: NO_DEVICE,
                row: 65_535,
                memory: MemoryKind::Host,
            },
            Event::Context { context: u64::MAX, device: 3 },
            Event::Object { object: Object::Library, handle: 7, device: NO_DEVICE, row: 9 },
            Event::ObjectEnd { object: Object::Context, handle: 7, row: 10 },
            Event::Free { address: 1, stream: 2, row: 3 },
            Event::FreeRefused { address: 1, slot: 1 << 50, result: -1, row: 2 },
            Event::AllocFailed {
                requested: 1,
                free: 2,
                total: 3,
                device: 4,
                result: 2,
                row: 5,
                memory: MemoryKind::Managed,
            },
            Event::RefusedLine { line: name, device: 6 },
            Event::Create {
                handle: 1,
                bytes: 2 << 20,
                measure: Measure::Computed,
                device: 7,
                row: 3,
                memory: MemoryKind::Device,
            },
            Event::Release { handle: u64::MAX, row: 9 },
            Event::Map { address: 1, bytes: 2, offset: 3, handle: 4, row: 5 },
            Event::Unmap { address: 1, bytes: 2, row: 3 },
            Event::Elsewhere { address: 1, bytes: 2, handle: 3, device: 4, row: 5 },
            Event::GraphNode { address: u64::MAX, bytes: 2, device: 4, row: 5 },
            Event::Retain { handle: u64::MAX, row: 6 },
            Event::GraphMemory { bytes: 1 << 40, device: 7, row: 8 },
            Event::PoolReserve { pool: u64::MAX, bytes: 1 << 40, device: 7, row: 8 },
            Event::BlockAlloc { address: 1, bytes: 512, requested: 3, stream: 4, origin: Origin::Hooked },
            Event::BlockFree { address: 1, origin: Origin::Tagged },
            Event::Tag { address: 1, name, category: Category::Workspace, origin: Origin::Inferred },
            Event::ScopePush { name },
            Event::ScopePop,
            Event::Phase { name },
            Event::Step { number: u64::MAX },
            Event::Scope { path: name },
            Event::StackNode { node: u64::MAX, parent: 1, file: name, function: TextId(7), line: u32::MAX },
            Event::StackAddress { node: u64::MAX, parent: 1, module: name, offset: u64::MAX - 7 },
            Event::Stack { node: 1, whole: false },
            Event::Ranges,
            Event::Stack { node: u64::MAX, whole: true },
            Event::Owner { owner: name },
            Event::Notice { text: name },
            Event::NotComputed,
            Event::Framework,
            Event::ProcessName { name },
            Event::NotSimulated { function: name },
            Event::DeviceRead { line: name, bytes: 1 << 40, known: true },
        ];
        for event in all {
            let record = event.record(11, 12);
            assert_eq!(Event::decode(&record), Some(event));
            assert_eq!(Record::from_bytes(&record.to_bytes()), record);
        }
    }

    #[test]
    fn a_kind_of_a_later_version_is_not_guessed() {
        assert_eq!(Event::decode(&Record { head: 999, ..Record::default() }), None);
        assert_eq!(Event::decode(&Record::default()), None);
    }
}
