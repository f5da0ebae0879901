//! Numbers of the kinds. 0 is never a kind: it marks a slot that is not committed.
//!
//! Owns: the numbers, which never change their meaning. Refuses: what a kind's words are ([`super::Event`]).

/// [`super::Event::Text`].
pub const TEXT: u16 = 1;
/// [`super::Event::Function`].
pub const FUNCTION: u16 = 2;
/// [`super::Event::Device`].
pub const DEVICE: u16 = 3;
/// [`super::Event::Thread`].
pub const THREAD: u16 = 4;
/// [`super::Event::Notice`].
pub const NOTICE: u16 = 5;
/// [`super::Event::NotComputed`].
pub const NOT_COMPUTED: u16 = 6;
/// [`super::Event::NotSimulated`].
pub const NOT_SIMULATED: u16 = 7;
/// [`super::Event::DeviceRead`].
pub const DEVICE_READ: u16 = 8;
/// [`super::Event::Framework`].
pub const FRAMEWORK: u16 = 9;
/// [`super::Event::Context`].
pub const CONTEXT: u16 = 10;
/// [`super::Event::Object`].
pub const OBJECT: u16 = 11;
/// [`super::Event::ObjectEnd`].
pub const OBJECT_END: u16 = 12;
/// [`super::Event::ProcessName`].
pub const PROCESS_NAME: u16 = 13;
/// [`super::Event::Alloc`].
pub const ALLOC: u16 = 16;
/// [`super::Event::Free`].
pub const FREE: u16 = 17;
/// [`super::Event::FreeRefused`].
pub const FREE_REFUSED: u16 = 18;
/// [`super::Event::AllocFailed`].
pub const ALLOC_FAILED: u16 = 19;
/// [`super::Event::Create`].
pub const CREATE: u16 = 20;
/// [`super::Event::Release`].
pub const RELEASE: u16 = 21;
/// [`super::Event::Map`].
pub const MAP: u16 = 22;
/// [`super::Event::Unmap`].
pub const UNMAP: u16 = 23;
/// [`super::Event::RefusedLine`].
pub const REFUSED_LINE: u16 = 24;
/// [`super::Event::Elsewhere`].
pub const ELSEWHERE: u16 = 25;
/// [`super::Event::Retain`].
pub const RETAIN: u16 = 26;
/// [`super::Event::GraphMemory`].
pub const GRAPH_MEMORY: u16 = 27;
/// [`super::Event::PoolReserve`].
pub const POOL_RESERVE: u16 = 28;
/// [`super::Event::GraphNode`].
pub const GRAPH_NODE: u16 = 29;
/// [`super::Event::BlockAlloc`].
pub const BLOCK_ALLOC: u16 = 32;
/// [`super::Event::BlockFree`].
pub const BLOCK_FREE: u16 = 33;
/// [`super::Event::Tag`].
pub const TAG: u16 = 48;
/// [`super::Event::ScopePush`].
pub const SCOPE_PUSH: u16 = 49;
/// [`super::Event::ScopePop`].
pub const SCOPE_POP: u16 = 50;
/// [`super::Event::Phase`].
pub const PHASE: u16 = 51;
/// [`super::Event::Step`].
pub const STEP: u16 = 52;
/// [`super::Event::Scope`].
pub const SCOPE: u16 = 53;
/// [`super::Event::StackNode`].
pub const STACK_NODE: u16 = 54;
/// [`super::Event::Stack`].
pub const STACK: u16 = 55;
/// [`super::Event::StackAddress`].
pub const STACK_ADDRESS: u16 = 56;
/// [`super::Event::Ranges`].
pub const RANGES: u16 = 57;
/// [`super::Event::Owner`].
pub const OWNER: u16 = 64;
