//! Memory of the program's own that the driver pins in place: no byte of the host counts twice, however tensors, pinned memory
//! and registrations come and go. Held against a list of bytes.

use std::collections::BTreeMap;

use memscope_core::allocation::flag;
use memscope_core::report::Instant;
use memscope_wire::event::NO_DEVICE;
use memscope_wire::{Event, MemoryKind};
use proptest::prelude::*;

use crate::trace::Trace;

const REGISTER: u16 = 60;
const UNREGISTER: u16 = 61;
const TENSOR: u16 = 62;
const BASE: u64 = 0x7f00_0000_0000;
/// Bytes of the host that are played with.
const ROOM: usize = 64;

fn program() -> Trace {
    let mut trace = Trace::new(&["python", "train.py"], None);
    trace.process(0, 31);
    for (row, text) in
        [(REGISTER, "cuMemHostRegister_v2"), (UNREGISTER, "cuMemHostUnregister"), (TENSOR, "c10::alloc_cpu")]
    {
        let mut name = [0; 40];
        name[..text.len()].copy_from_slice(text.as_bytes());
        trace.event(0, Event::Function { row, name });
    }
    trace
}

fn take(trace: &mut Trace, row: u16, offset: u64, bytes: u64) {
    let memory = if row == TENSOR { MemoryKind::Pageable } else { MemoryKind::Host };
    let address = BASE + offset;
    trace.event(0, Event::Alloc { address, bytes, requested: bytes, stream: 0, device: NO_DEVICE, row, memory });
}

fn give(trace: &mut Trace, row: u16, offset: u64) -> u64 {
    trace.event(0, Event::Free { address: BASE + offset, stream: 0, row })
}

fn host(trace: &Trace) -> u64 {
    trace.model().host().live_bytes()
}

#[test]
fn a_tensor_that_is_pinned_in_place_counts_once_and_outlives_it() {
    let mut trace = program();
    take(&mut trace, TENSOR, 0, 1000);
    take(&mut trace, REGISTER, 0, 1000);
    assert_eq!(host(&trace), 1000);
    // The driver refuses what is not registered: the tensor is there all the same.
    let slot = give(&mut trace, UNREGISTER, 0);
    let refused = trace.clone_with(Event::FreeRefused { address: BASE, slot, result: 713, row: UNREGISTER });
    assert_eq!((host(&trace), host(&refused)), (1000, 1000));
    give(&mut trace, TENSOR, 0);
    assert_eq!(host(&trace), 0);
    trace.ended(0);
    trace.end(0);
    let model = trace.model();
    let ends: Vec<_> = model.allocations().iter().map(|one| (one.bytes, one.is(flag::DEAD))).collect();
    assert_eq!(ends, [(1000, true), (0, true)], "the registration has no bytes of its own");
    let findings = model.report(Instant::Peak).expect("a report").findings;
    assert!(!findings.iter().any(|one| matches!(one.detail.kind(), "missed_free" | "free_of_unknown")), "{findings:?}");
}

#[test]
fn what_of_a_registration_is_in_no_known_memory_counts() {
    let mut trace = program();
    take(&mut trace, TENSOR, 10, 20);
    take(&mut trace, REGISTER, 0, 100);
    assert_eq!(host(&trace), 100, "10 before the tensor, the tensor's 20, 70 behind it");
    give(&mut trace, UNREGISTER, 0);
    assert_eq!(host(&trace), 20);
    // Of memory that memscope knows nothing of, all counts, and blocks may lie in it.
    take(&mut trace, REGISTER, 1000, 100);
    assert_eq!(host(&trace), 120);
    give(&mut trace, UNREGISTER, 1000);
    assert_eq!(host(&trace), 20);
}

#[derive(Clone, Debug)]
enum Deed {
    Tensor { offset: usize, bytes: usize },
    TensorFree { which: usize },
    Register { offset: usize, bytes: usize },
    Unregister { which: usize },
}

fn deed() -> impl Strategy<Value = Deed> {
    let span = || (0..ROOM, 1usize..24);
    prop_oneof![
        3 => span().prop_map(|(offset, bytes)| Deed::Tensor { offset, bytes }),
        2 => (0usize..8).prop_map(|which| Deed::TensorFree { which }),
        3 => span().prop_map(|(offset, bytes)| Deed::Register { offset, bytes }),
        2 => (0usize..8).prop_map(|which| Deed::Unregister { which }),
    ]
}

/// By its first byte: how many bytes it has, and which bytes count as its own.
type Lives = BTreeMap<usize, (usize, Vec<usize>)>;

fn meets(lives: &Lives, offset: usize, bytes: usize) -> Vec<usize> {
    let meets =
        |(start, (length, _)): &(&usize, &(usize, Vec<usize>))| **start < offset + bytes && offset < **start + length;
    lives.iter().filter(meets).map(|(start, _)| *start).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_byte_of_the_host_counts_twice(deeds in proptest::collection::vec(deed(), 0..60)) {
        let mut trace = program();
        let (mut tensors, mut pinned) = (Lives::new(), Lives::new());
        for deed in deeds {
            match deed {
                // As from malloc: where nothing is live, and nothing is pinned that counts for itself.
                Deed::Tensor { offset, bytes } => {
                    let own = |start: &usize| pinned[start].1.is_empty();
                    if !meets(&tensors, offset, bytes).is_empty() || !meets(&pinned, offset, bytes).iter().all(own) {
                        continue;
                    }
                    take(&mut trace, TENSOR, offset as u64, bytes as u64);
                    tensors.insert(offset, (bytes, (offset..offset + bytes).collect()));
                }
                Deed::TensorFree { which } => {
                    let Some(offset) = tensors.keys().nth(which).copied() else { continue };
                    tensors.remove(&offset);
                    give(&mut trace, TENSOR, offset as u64);
                }
                // The driver pins no byte twice.
                Deed::Register { offset, bytes } => {
                    if !meets(&pinned, offset, bytes).is_empty() {
                        continue;
                    }
                    let known = |byte: &usize| tensors.values().any(|(_, bytes)| bytes.contains(byte));
                    let own = (offset..offset + bytes).filter(|byte| !known(byte)).collect();
                    take(&mut trace, REGISTER, offset as u64, bytes as u64);
                    pinned.insert(offset, (bytes, own));
                }
                Deed::Unregister { which } => {
                    let Some(offset) = pinned.keys().nth(which).copied() else { continue };
                    pinned.remove(&offset);
                    give(&mut trace, UNREGISTER, offset as u64);
                }
            }
            let mut bytes: Vec<usize> = tensors.values().chain(pinned.values()).flat_map(|(_, own)| own.clone()).collect();
            let counted = bytes.len();
            bytes.sort_unstable();
            bytes.dedup();
            prop_assert_eq!(counted, bytes.len(), "the list itself counts no byte twice");
            prop_assert_eq!(host(&trace), counted as u64);
        }
        trace.ended(0);
        trace.end(0);
        prop_assert_eq!(host(&trace), 0);
        let findings = trace.model().report(Instant::Peak).expect("a report").findings;
        let lost = findings.iter().any(|one| matches!(one.detail.kind(), "missed_free" | "free_of_unknown"));
        prop_assert!(!lost, "{:?}", findings);
    }
}
