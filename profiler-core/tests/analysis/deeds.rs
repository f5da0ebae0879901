//! Random sessions: what programs may do, one after another in up to three places at a time, written as a journal.
//!
//! Owns: the deeds, and what is told of them in the order of slots and times. Refuses: to know what becomes of them (`reference`).

use memscope_core::allocation::Model;
use memscope_core::journal::entry::Entry;
use memscope_core::ledger::EventRows;
use memscope_wire::text::TextId;
use memscope_wire::{Category, Event, MemoryKind, Origin};
use proptest::prelude::*;

use crate::reference::{PHASES, Sums};
use crate::trace::Trace;

/// What may happen; numbers are made valid when it is carried out.
#[derive(Clone, Debug)]
pub enum Deed {
    Alloc { place: u64, offset: u64, bytes: u64, extra: u64, device: u32, memory: u8 },
    Free { place: u64, offset: u64 },
    Refuse { which: usize },
    RefuseAtOnce { place: u64, offset: u64 },
    Block { place: u64, offset: u64, bytes: u64, extra: u64 },
    BlockFree { place: u64, offset: u64 },
    Tag { place: u64, offset: u64, category: u8 },
    Step { number: u64 },
    Announce { device: u32 },
    Push { name: u64 },
    Pop,
    Phase { name: &'static str },
    End,
    Next,
}

pub fn deed() -> impl Strategy<Value = Deed> {
    // Few places and offsets, so that addresses meet: unknown frees, missing frees and overlaps come by themselves.
    let offset = prop_oneof![6 => Just(0u64), 1 => Just(128), 1 => Just(512), 1 => Just(768)];
    let place = 0u64..4;
    prop_oneof![
        6 => (place.clone(), offset.clone(), 1u64..2000, 0u64..200, 0u32..2, 0u8..6)
            .prop_map(|(place, offset, bytes, extra, device, memory)| Deed::Alloc { place, offset, bytes, extra, device, memory }),
        5 => (place.clone(), offset.clone()).prop_map(|(place, offset)| Deed::Free { place, offset }),
        3 => (0usize..4).prop_map(|which| Deed::Refuse { which }),
        3 => (place.clone(), offset.clone()).prop_map(|(place, offset)| Deed::RefuseAtOnce { place, offset }),
        5 => (place.clone(), offset.clone(), 0u64..400, 0u64..100)
            .prop_map(|(place, offset, bytes, extra)| Deed::Block { place, offset, bytes, extra }),
        3 => (place.clone(), offset.clone()).prop_map(|(place, offset)| Deed::BlockFree { place, offset }),
        5 => (place, offset, 0u8..7).prop_map(|(place, offset, category)| Deed::Tag { place, offset, category }),
        2 => (0u64..4).prop_map(|number| Deed::Step { number }),
        1 => (0u32..2).prop_map(|device| Deed::Announce { device }),
        2 => (1u64..4).prop_map(|name| Deed::Push { name }),
        1 => Just(Deed::Pop),
        3 => (0..PHASES.len()).prop_map(|name| Deed::Phase { name: PHASES[name] }),
        1 => Just(Deed::End),
        1 => Just(Deed::Next),
    ]
}

pub const UUIDS: [[u8; 16]; 2] = [*b"SIMULATED-GPU-00", *b"SIMULATED-GPU-01"];

/// Carries out the deeds: (process, time that passes, whether the clock is read late, deed).
pub fn session(deeds: &[(u32, u64, bool, Deed)], announced: bool) -> Vec<Entry> {
    let mut trace = Trace::new(&["random"], None);
    let mut frees: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 3];
    let (mut ended, mut programs, mut next) = ([false; 3], [0, 1, 2], 3);
    let announce = |trace: &mut Trace, process: u32| {
        for (ordinal, uuid) in (0..).zip(UUIDS).filter(|_| announced) {
            trace.device(process, ordinal, uuid, 1 << 30);
        }
    };
    for process in 0..3 {
        trace.process(process, 100 + process);
        announce(&mut trace, process);
    }
    for (place, passes, late, deed) in deeds.iter().cloned() {
        let place = place as usize;
        let process = programs[place];
        if ended[place] && !matches!(deed, Deed::Next) {
            continue;
        }
        trace.now += passes;
        let now = trace.now;
        if let Deed::Next = deed {
            if !ended[place] {
                trace.closed(process);
            }
            trace.now += passes;
            trace.program(next, 100 + next);
            announce(&mut trace, next);
            (programs[place], ended[place], next) = (next, false, next + 1);
            frees[place].clear();
            continue;
        }
        // A thread that read the clock before another one, and claimed its slot after it.
        trace.now -= if late { now.min(3) } else { 0 };
        let at = |place: u64, offset: u64| 0x10_000 + place * 1024 + offset;
        let (mine, over) = (&mut frees[place], &mut ended[place]);
        match deed {
            Deed::Alloc { place, offset, bytes, extra, device, memory } => {
                let memory = MemoryKind::from_number(memory);
                let address = at(place, offset);
                trace.event(
                    process,
                    Event::Alloc { address, bytes: bytes + extra, requested: bytes, stream: 0, device, row: 1, memory },
                );
            }
            Deed::Free { place, offset } => {
                let slot = trace.free(process, at(place, offset));
                mine.push((slot, at(place, offset)));
            }
            Deed::Refuse { which } => {
                if let Some(position) = mine.len().checked_sub(1 + which) {
                    let (slot, address) = mine.remove(position);
                    trace.event(process, Event::FreeRefused { address, slot, result: 1, row: 4 });
                }
            }
            Deed::RefuseAtOnce { place, offset } => {
                let (address, row) = (at(place, offset), 4);
                let slot = trace.free(process, address);
                trace.event(process, Event::FreeRefused { address, slot, result: 1, row });
            }
            Deed::Block { place, offset, bytes, extra } => {
                let (address, requested) = (at(place, offset), bytes);
                trace.event(
                    process,
                    Event::BlockAlloc { address, bytes: bytes + extra, requested, stream: 0, origin: Origin::Hooked },
                );
            }
            Deed::BlockFree { place, offset } => {
                trace.event(process, Event::BlockFree { address: at(place, offset), origin: Origin::Hooked });
            }
            Deed::Tag { place, offset, category } => {
                let (name, category) = (TextId::NONE, Category::from_number(category));
                trace.event(process, Event::Tag { address: at(place, offset), name, category, origin: Origin::Tagged });
            }
            Deed::Step { number } => trace.step(process, number),
            Deed::Announce { device } => trace.device(process, device, UUIDS[device as usize], 1 << 30),
            Deed::Push { name } => {
                trace.event(process, Event::ScopePush { name: TextId(name) });
            }
            Deed::Pop => trace.pop(process),
            Deed::Phase { name } => {
                trace.event(process, Event::Phase { name: TextId::of(name.as_bytes()) });
            }
            Deed::End => {
                trace.ended(process);
                *over = true;
            }
            Deed::Next => {}
        }
        trace.now = now;
    }
    trace.end(0);
    trace.entries
}

pub fn sums(rows: &EventRows) -> Sums {
    Sums { reserved: rows.reserved, live: rows.live, rounding: rows.rounding, cached: rows.cached }
}

pub fn key(uuid: [u8; 16]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn plain(uuid: &str) -> String {
    uuid.trim_start_matches("GPU-").replace('-', "")
}

/// The model of entries.
pub fn model_of(entries: &[Entry]) -> Model {
    let mut model = Model::new();
    entries.iter().for_each(|entry| drop(model.apply(entry)));
    model
}
