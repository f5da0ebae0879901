//! The facts about one allocation, compact: a session has millions of them.
//!
//! Owns: the fields and their meaning. Refuses: text; names, scopes and phases are numbers of `names`.

use serde::{Deserialize, Serialize};

use super::written::Row;
use memscope_wire::{Category, MemoryKind, Origin};

/// Number of an allocation in its session, in the order in which memscope learned of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct AllocationId(pub u32);

/// Bits of [`Allocation::flags`].
pub mod flag {
    /// A block inside an allocation of the driver, reported by a framework hook or the C API.
    pub const BLOCK: u16 = 1;
    /// Holds blocks, or held one once: its free part is cache.
    pub const CONTAINER: u16 = 2;
    /// A block that lies in no known allocation: in no ledger.
    pub const OUTSIDE: u16 = 4;
    /// Ended because its address was given again: its free was never seen.
    pub const MISSED_FREE: u16 = 8;
    /// A block that ended because its container was freed.
    pub const WITH_CONTAINER: u16 = 16;
    /// Ended because its process ended.
    pub const AT_EXIT: u16 = 32;
    /// Has ended.
    pub const DEAD: u16 = 64;
    /// Memory of a handle (cuMemCreate), which has an address only while it is mapped: [`super::Allocation::address`] is that
    /// of its last mapping.
    pub const PHYSICAL: u16 = 128;
    /// Ended because its context was destroyed or reset.
    pub const WITH_CONTEXT: u16 = 256;
    /// No allocation, but what a pool of the driver keeps beyond what is allocated from it; a container without blocks.
    pub const POOL_RESERVE: u16 = 512;
}

/// One allocation of the driver, or one block inside one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Allocation {
    /// Address in its process.
    pub address: u64,
    /// Bytes granted: what the driver gave, or what the block takes from its container.
    pub bytes: u64,
    /// Bytes asked for; never more than [`Allocation::bytes`].
    pub requested: u64,
    /// Clock of its process at birth, in ticks; never before an earlier record of the process.
    pub birth_ticks: u64,
    /// The same at death; meaningful with [`flag::DEAD`].
    pub death_ticks: u64,
    /// Number of the CUDA stream in the session's table of streams.
    pub stream: u32,
    /// The allocation that holds this block.
    pub container: Option<Container>,
    /// Step at birth, as a number of the table of steps plus 1; 0 before the first step.
    pub step: u32,
    /// Phase at birth, a name.
    pub phase: u32,
    /// Scope at birth, a node of the scope tree.
    pub scope: u32,
    /// Where in the program it was made, a node of the tree of stacks.
    pub stack: u32,
    /// Name from the last tag.
    pub name: u32,
    /// Thread at birth.
    pub thread: u32,
    /// Position of its process in the session.
    pub process: u32,
    /// Name of the function that made it; empty for blocks.
    pub function: u32,
    /// Position of its device in the session; [`Allocation::NO_DEVICE`] for host memory.
    pub device: u16,
    /// What its bytes are for.
    pub category: Category,
    /// How the category is known.
    pub origin: Origin,
    /// Where it lives; a block lives where its container does.
    pub memory: MemoryKind,
    /// Bits of [`flag`].
    pub flags: u16,
}

/// An [`AllocationId`] with a niche, so that an optional one takes four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Container(std::num::NonZeroU32);

impl Container {
    pub(crate) fn new(id: AllocationId) -> Option<Self> {
        std::num::NonZeroU32::new(id.0.wrapping_add(1)).map(Self)
    }

    /// The number.
    pub fn id(self) -> AllocationId {
        AllocationId(self.0.get() - 1)
    }
}

impl Allocation {
    /// [`Allocation::device`] of memory that belongs to no device.
    pub const NO_DEVICE: u16 = u16::MAX;

    /// True when all these bits are set.
    pub const fn is(&self, bits: u16) -> bool {
        self.flags & bits == bits
    }

    /// True for what counts as live bytes: a block in a container, or an allocation that never held blocks.
    pub const fn is_leaf(&self) -> bool {
        self.flags & (flag::CONTAINER | flag::OUTSIDE) == 0
    }

    /// True for device memory, from a pool or not: what a device's main rows count.
    pub const fn on_device(&self) -> bool {
        matches!(self.memory, MemoryKind::Device | MemoryKind::Pool)
    }

    /// The allocation that holds this block, if it is one and lies in a known allocation.
    pub fn container(&self) -> Option<AllocationId> {
        self.container.map(Container::id)
    }

    /// An allocation without any circumstances.
    pub(crate) const fn vacant() -> Allocation {
        Allocation {
            address: 0,
            bytes: 0,
            requested: 0,
            birth_ticks: 0,
            death_ticks: 0,
            stream: 0,
            container: None,
            step: 0,
            phase: 0,
            scope: 0,
            stack: 0,
            name: 0,
            thread: 0,
            process: 0,
            function: 0,
            device: 0,
            category: Category::Unknown,
            origin: Origin::None,
            memory: MemoryKind::Device,
            flags: 0,
        }
    }
}
