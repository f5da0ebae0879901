//! NCCL: what ranks do together, from device to device, without the host.
//!
//! Owns: the library, which is loaded when it is asked for, and a communicator of all ranks. Refuses: to choose between NCCL and
//! the host's memory, which is [`super::exchange`].
//!
//! Types and constants are cudarc's, from NCCL's header. The library is looked for here, since cudarc asks for `libnccl.so` alone,
//! and an installation without headers has only `libnccl.so.2`.
//!
//! Parts of tensors need not be of one size, for which NCCL's reduce-scatter and all-gather have no form: they are one reduction,
//! and one broadcast, a rank, all in one group. Everything is on the default stream, as the trainer's kernels are.
//!
//! Not yet run on a GPU: the calls and their arguments are tested, the library's part of it is not.

use super::Group;
use crate::Error;
use crate::tensor::Element;
use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId};
use libloading::Library;
use std::ffi::{c_int, c_void};
use std::ops::Range;

/// Where it is looked for, by the loader's rules.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

type GetUniqueId = unsafe extern "C" fn(*mut ncclUniqueId) -> ncclResult_t;
type CommInitRank = unsafe extern "C" fn(*mut ncclComm_t, c_int, ncclUniqueId, c_int) -> ncclResult_t;
type CommDestroy = unsafe extern "C" fn(ncclComm_t) -> ncclResult_t;
type OfGroup = unsafe extern "C" fn() -> ncclResult_t;
type AllReduce = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    usize,
    ncclDataType_t,
    ncclRedOp_t,
    ncclComm_t,
    cudaStream_t,
) -> ncclResult_t;
type Reduce = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    usize,
    ncclDataType_t,
    ncclRedOp_t,
    c_int,
    ncclComm_t,
    cudaStream_t,
) -> ncclResult_t;
type Broadcast = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    usize,
    ncclDataType_t,
    c_int,
    ncclComm_t,
    cudaStream_t,
) -> ncclResult_t;

/// The library's functions that are used here.
pub(crate) struct Functions {
    get_unique_id: GetUniqueId,
    comm_init_rank: CommInitRank,
    comm_destroy: CommDestroy,
    group_start: OfGroup,
    group_end: OfGroup,
    all_reduce: AllReduce,
    reduce: Reduce,
    broadcast: Broadcast,
    /// Loaded for as long as they may be called.
    _library: Option<Library>,
}

impl Functions {
    /// Loads the library.
    ///
    /// # Errors
    /// In words, when there is none, or one that lacks a function.
    pub fn load() -> Result<Functions, String> {
        Functions::of(&NAMES)
    }

    fn of(names: &[&str]) -> Result<Functions, String> {
        // SAFETY: its initialisers are those of NCCL, which any program that trains on several GPUs trusts.
        let library = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        let library =
            library.ok_or_else(|| format!("NCCL cannot be loaded: the loader finds no {}", names.join(" and no ")))?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the function has had this signature since NCCL 2.0, and is called only while the library is loaded.
                *unsafe { library.get(concat!($name, "\0")) }
                    .map_err(|error| format!(concat!("the NCCL that is installed has no ", $name, ": {}"), error))?
            };
        }
        Ok(Functions {
            get_unique_id: function!("ncclGetUniqueId"),
            comm_init_rank: function!("ncclCommInitRank"),
            comm_destroy: function!("ncclCommDestroy"),
            group_start: function!("ncclGroupStart"),
            group_end: function!("ncclGroupEnd"),
            all_reduce: function!("ncclAllReduce"),
            reduce: function!("ncclReduce"),
            broadcast: function!("ncclBroadcast"),
            _library: Some(library),
        })
    }
}

/// A communicator of all ranks, of which this is one.
pub(crate) struct Nccl {
    functions: Functions,
    communicator: ncclComm_t,
    rank: usize,
}

fn checked(call: &str, result: ncclResult_t) -> Result<(), Error> {
    match result {
        ncclResult_t::ncclSuccess => Ok(()),
        error => Err(Error::Ranks(format!("{call} failed: {error:?}; NCCL_DEBUG=INFO has it say why"))),
    }
}

fn data_type(element: Element) -> ncclDataType_t {
    match element {
        Element::Fp32 => ncclDataType_t::ncclFloat32,
        Element::Fp16 => ncclDataType_t::ncclFloat16,
        Element::Bf16 => ncclDataType_t::ncclBfloat16,
    }
}

impl Nccl {
    /// Joins the other ranks, which all do so at this moment. The device of this rank is current.
    ///
    /// # Errors
    /// [`Error::Ranks`].
    pub fn join(functions: Functions, group: &Group) -> Result<Nccl, Error> {
        let id = shared_id(group, |id| {
            // SAFETY: room for an id.
            checked("ncclGetUniqueId", unsafe { (functions.get_unique_id)(id) })
        })?;
        let mut communicator = std::ptr::null_mut();
        let (world, rank) = (group.world(), group.rank());
        // SAFETY: all ranks call it with the id that one of them made, each with its own number.
        let result = unsafe { (functions.comm_init_rank)(&mut communicator, world as c_int, id, rank as c_int) };
        checked("ncclCommInitRank", result)?;
        Ok(Nccl { functions, communicator, rank })
    }

    /// Elements at `address` become their sums over the ranks.
    ///
    /// # Errors
    /// [`Error::Ranks`].
    pub fn all_reduce(&self, address: u64, elements: u64, element: Element) -> Result<(), Error> {
        let (at, sum, stream) = (address as *mut c_void, ncclRedOp_t::ncclSum, std::ptr::null_mut());
        let (count, kind) = (elements as usize, data_type(element));
        // SAFETY: the caller's tensor has so many elements there; a tensor is freed only after its stream's work.
        let result = unsafe { (self.functions.all_reduce)(at, at, count, kind, sum, self.communicator, stream) };
        checked("ncclAllReduce", result)
    }

    /// What is at `part` becomes this rank's part of the sums of what is at `whole`. `parts` are those of all ranks.
    ///
    /// # Errors
    /// [`Error::Ranks`].
    pub fn reduce_scatter(&self, whole: u64, part: u64, parts: &[Range<u64>], element: Element) -> Result<(), Error> {
        let (sum, stream, kind) = (ncclRedOp_t::ncclSum, std::ptr::null_mut(), data_type(element));
        self.for_each(parts, |root, of_root| {
            let from = (whole + element.bytes() * of_root.start) as *const c_void;
            // Only the root's is written.
            let to = if root == self.rank { part as *mut c_void } else { from.cast_mut() };
            let count = (of_root.end - of_root.start) as usize;
            // SAFETY: the parts lie in the whole, and the root's is as large as what it gets.
            let result = unsafe {
                (self.functions.reduce)(from, to, count, kind, sum, root as c_int, self.communicator, stream)
            };
            checked("ncclReduce", result)
        })
    }

    /// What is at `whole` becomes the ranks' parts, this one's from `part`.
    ///
    /// # Errors
    /// [`Error::Ranks`].
    pub fn all_gather(&self, part: u64, whole: u64, parts: &[Range<u64>], element: Element) -> Result<(), Error> {
        let (stream, kind) = (std::ptr::null_mut(), data_type(element));
        self.for_each(parts, |root, of_root| {
            let to = (whole + element.bytes() * of_root.start) as *mut c_void;
            // Only the root's is read.
            let from = if root == self.rank { part as *const c_void } else { to.cast_const() };
            let count = (of_root.end - of_root.start) as usize;
            // SAFETY: as in reduce_scatter, the other way round.
            let result =
                unsafe { (self.functions.broadcast)(from, to, count, kind, root as c_int, self.communicator, stream) };
            checked("ncclBroadcast", result)
        })
    }

    /// One call a rank, all in one group.
    fn for_each(
        &self,
        parts: &[Range<u64>],
        mut call: impl FnMut(usize, &Range<u64>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // SAFETY: a group has no arguments; it is ended below.
        checked("ncclGroupStart", unsafe { (self.functions.group_start)() })?;
        let called = parts.iter().enumerate().try_for_each(|(root, of_root)| call(root, of_root));
        // SAFETY: started above.
        let ended = checked("ncclGroupEnd", unsafe { (self.functions.group_end)() });
        called.and(ended)
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // SAFETY: joined once, and nothing uses it any more. An error changes nothing now.
        let _ = unsafe { (self.functions.comm_destroy)(self.communicator) };
    }
}

/// The id that rank 0 makes, in all ranks: a float for each of its bytes goes through the host's memory.
fn shared_id(group: &Group, make: impl FnOnce(&mut ncclUniqueId) -> Result<(), Error>) -> Result<ncclUniqueId, Error> {
    let mut id = ncclUniqueId { internal: [0; 128] };
    if group.rank() == 0 {
        make(&mut id)?;
    }
    let mut bytes = id.internal.map(f32::from);
    group.all_reduce(&mut bytes)?;
    Ok(ncclUniqueId { internal: bytes.map(|byte| byte as _) })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn record(call: String) -> ncclResult_t {
        CALLS.with_borrow_mut(|calls| calls.push(call));
        ncclResult_t::ncclSuccess
    }

    fn calls() -> Vec<String> {
        CALLS.with_borrow_mut(std::mem::take)
    }

    unsafe extern "C" fn get_unique_id(id: *mut ncclUniqueId) -> ncclResult_t {
        let internal = std::array::from_fn(|index| index as u8 as _);
        // SAFETY: the caller has room for it.
        unsafe { id.write(ncclUniqueId { internal }) };
        record("id".to_owned())
    }

    unsafe extern "C" fn comm_init_rank(
        communicator: *mut ncclComm_t,
        world: c_int,
        id: ncclUniqueId,
        rank: c_int,
    ) -> ncclResult_t {
        // SAFETY: the caller has room for it.
        unsafe { communicator.write(std::ptr::dangling_mut()) };
        let whole = id.internal.iter().enumerate().all(|(index, &byte)| byte == index as u8 as std::ffi::c_char);
        record(format!("join {rank} of {world}, id {whole}"))
    }

    unsafe extern "C" fn comm_destroy(_: ncclComm_t) -> ncclResult_t {
        record("destroy".to_owned())
    }

    unsafe extern "C" fn group_start() -> ncclResult_t {
        record("(".to_owned())
    }

    unsafe extern "C" fn group_end() -> ncclResult_t {
        record(")".to_owned())
    }

    unsafe extern "C" fn all_reduce(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: ncclDataType_t,
        operation: ncclRedOp_t,
        _: ncclComm_t,
        stream: cudaStream_t,
    ) -> ncclResult_t {
        assert!(stream.is_null() && operation == ncclRedOp_t::ncclSum);
        record(format!("all-reduce {:#x} to {:#x}, {count} {kind:?}", from as u64, to as u64))
    }

    unsafe extern "C" fn reduce(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: ncclDataType_t,
        operation: ncclRedOp_t,
        root: c_int,
        _: ncclComm_t,
        stream: cudaStream_t,
    ) -> ncclResult_t {
        assert!(stream.is_null() && operation == ncclRedOp_t::ncclSum);
        if count == 13 {
            return ncclResult_t::ncclSystemError;
        }
        record(format!("reduce {:#x} to {:#x} of {root}, {count} {kind:?}", from as u64, to as u64))
    }

    unsafe extern "C" fn broadcast(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: ncclDataType_t,
        root: c_int,
        _: ncclComm_t,
        stream: cudaStream_t,
    ) -> ncclResult_t {
        assert!(stream.is_null());
        record(format!("broadcast {:#x} of {root} to {:#x}, {count} {kind:?}", from as u64, to as u64))
    }

    /// Functions that write down how they are called.
    pub fn recorded() -> Functions {
        Functions {
            get_unique_id,
            comm_init_rank,
            comm_destroy,
            group_start,
            group_end,
            all_reduce,
            reduce,
            broadcast,
            _library: None,
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let Err(text) = Functions::of(&["libmemscope-none.so.2", "libmemscope-none.so"]) else {
            panic!("it is loaded")
        };
        assert_eq!(text, "NCCL cannot be loaded: the loader finds no libmemscope-none.so.2 and no libmemscope-none.so");
        // A library that is another one.
        let Err(text) = Functions::of(&["libc.so.6"]) else { panic!("libc has NCCL's functions") };
        assert!(text.starts_with("the NCCL that is installed has no ncclGetUniqueId: "), "{text}");
    }

    #[test]
    fn ranks_join_with_the_id_of_the_first() {
        let group = Group::create(3).unwrap();
        let joined: Vec<Vec<String>> = std::thread::scope(|scope| {
            let join = |rank| {
                let member = group.member(rank);
                scope.spawn(move || {
                    drop(Nccl::join(recorded(), &member).unwrap());
                    calls()
                })
            };
            let threads: Vec<_> = (0..3).map(join).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(joined[0], ["id", "join 0 of 3, id true", "destroy"]);
        assert_eq!(joined[2], ["join 2 of 3, id true", "destroy"]);
    }

    #[test]
    fn parts_of_any_size_go_where_they_belong() {
        let nccl = Nccl { functions: recorded(), communicator: std::ptr::dangling_mut(), rank: 1 };
        let parts = [0..3, 3..6, 6..10];
        nccl.all_reduce(0x1000, 10, Element::Bf16).unwrap();
        assert_eq!(calls(), ["all-reduce 0x1000 to 0x1000, 10 ncclBfloat16"]);
        // The part lies elsewhere; then in the whole, where it is in place.
        for part in [0x9000, 0x100c] {
            nccl.reduce_scatter(0x1000, part, &parts, Element::Fp32).unwrap();
            let expected = [
                "(".to_owned(),
                "reduce 0x1000 to 0x1000 of 0, 3 ncclFloat32".to_owned(),
                format!("reduce 0x100c to {part:#x} of 1, 3 ncclFloat32"),
                "reduce 0x1018 to 0x1018 of 2, 4 ncclFloat32".to_owned(),
                ")".to_owned(),
            ];
            assert_eq!(calls(), expected);
        }
        nccl.all_gather(0x9000, 0x1000, &parts, Element::Fp16).unwrap();
        let expected = [
            "(",
            "broadcast 0x1000 of 0 to 0x1000, 3 ncclFloat16",
            "broadcast 0x9000 of 1 to 0x1006, 3 ncclFloat16",
            "broadcast 0x100c of 2 to 0x100c, 4 ncclFloat16",
            ")",
        ];
        assert_eq!(calls(), expected);

        let error = nccl.reduce_scatter(0, 0, &[0..13, 13..14], Element::Fp32).unwrap_err().to_string();
        assert_eq!(error, "ncclReduce failed: ncclSystemError; NCCL_DEBUG=INFO has it say why");
        assert_eq!(calls(), ["(", ")"], "the group is ended");
    }
}
