//! Containers, block by block, and their fragmentation over time: random sessions against a naive reference, byte by byte.

use memscope_core::explorer::{
    At, Explorer, FragmentationPoint, Limits, Pick, Query, SegmentOrder, SegmentsQuery, SegmentsView, WindowQuery,
};
use memscope_core::journal::entry::Nanoseconds;
use memscope_wire::{Category, Event, Measure, MemoryKind, Object, Origin};
use proptest::prelude::*;

use super::ended::explorer;
use super::live::{FRESH, Part, of_all_processes, targets};
use crate::deeds::{UUIDS, session};
use crate::reference::{Life, World};
use crate::trace::Trace;

/// A container at a moment, with its blocks.
struct Naive<'w> {
    around: &'w Life,
    blocks: Vec<&'w Life>,
}

impl Naive<'_> {
    /// Byte by byte: sizes are small.
    fn holes(&self) -> Vec<u64> {
        let mut bytes = vec![false; self.around.bytes as usize];
        for block in &self.blocks {
            let begin = (block.address - self.around.address) as usize;
            bytes[begin..begin + block.bytes as usize].fill(true);
        }
        bytes.split(|taken| *taken).filter(|hole| !hole.is_empty()).map(|hole| hole.len() as u64).collect()
    }

    fn in_blocks(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }
}

fn naive<'w>(world: &'w World, part: &Part, time: u64) -> Vec<Naive<'w>> {
    let live = |life: &&Life| life.lives_at(time) && part.has(world, life);
    let blocks_of = |container: &Life| {
        let inside = |life: &&Life| life.container.is_some_and(|at| std::ptr::eq(&world.lives[at], container));
        let mut blocks: Vec<&Life> = world.lives.iter().filter(live).filter(inside).collect();
        blocks.sort_by_key(|block| block.address);
        blocks
    };
    let containers = world.lives.iter().filter(live).filter(|life| !life.block && life.held_blocks);
    containers.map(|around| Naive { around, blocks: blocks_of(around) }).collect()
}

fn check_point(point: &FragmentationPoint, naive: &[Naive<'_>]) -> Result<(), TestCaseError> {
    let bytes: u64 = naive.iter().map(|container| container.around.bytes).sum();
    let in_blocks: u64 = naive.iter().map(Naive::in_blocks).sum();
    let holes: Vec<u64> = naive.iter().flat_map(Naive::holes).collect();
    let largest = holes.iter().copied().max().unwrap_or(0);
    prop_assert_eq!((point.segments, point.bytes, point.in_blocks), (naive.len(), bytes, in_blocks));
    prop_assert_eq!((point.cached(), point.largest_hole), (holes.iter().sum::<u64>(), largest), "at {:?}", point.time);
    let free = bytes - in_blocks;
    prop_assert_eq!(point.fragmentation(), (free > 0).then(|| 1.0 - largest as f64 / free as f64));
    Ok(())
}

fn check_blocks(view: &SegmentsView, naive: &[Naive<'_>]) -> Result<(), TestCaseError> {
    prop_assert_eq!(view.segments.len(), naive.len());
    for segment in &view.segments {
        let is = |naive: &&Naive<'_>| {
            let place = (naive.around.address, 100 + naive.around.process as u32);
            place == (segment.address, segment.pid) && naive.around.birth.0 == segment.birth.0
        };
        let Some(naive) = naive.iter().find(is) else { panic!("no container at {:#x}", segment.address) };
        prop_assert_eq!((segment.part.clone(), segment.hidden), (0..segment.bytes, 0));
        type Figures = (u64, u64, u64, Category);
        let found: Vec<Figures> =
            segment.shown.iter().map(|block| (block.offset, block.bytes, block.requested, block.category)).collect();
        let of = |life: &&Life| (life.address - segment.address, life.bytes, life.requested, life.category);
        let expected: Vec<Figures> = naive.blocks.iter().map(of).collect();
        prop_assert_eq!(found, expected);
    }
    let mostly_empty = |naive: &&Naive<'_>| !naive.blocks.is_empty() && 2 * naive.in_blocks() < naive.around.bytes;
    let free = |naive: &Naive<'_>| naive.around.bytes - naive.in_blocks();
    let mut expected: Vec<(u64, usize)> =
        naive.iter().filter(mostly_empty).map(|naive| (free(naive), naive.blocks.len())).collect();
    expected.sort_by_key(|(free, blocks)| (std::cmp::Reverse(*free), *blocks));
    let mut found: Vec<(u64, usize)> =
        view.pinned.iter().map(|pinned| (pinned.free(), pinned.blocks as usize)).collect();
    prop_assert!(found.is_sorted_by(|one, next| one.0 >= next.0));
    found.sort_by_key(|(free, blocks)| (std::cmp::Reverse(*free), *blocks));
    prop_assert_eq!(&found, &expected);
    prop_assert_eq!(view.pinned_total, expected.len());
    prop_assert_eq!(view.pinned_bytes, expected.iter().map(|(free, _)| free).sum::<u64>());
    for pinned in &view.pinned {
        let sizes: Vec<u64> = pinned.survivors.iter().map(|survivor| survivor.block.bytes).collect();
        prop_assert!(sizes.is_sorted_by(|one, next| one >= next));
        prop_assert!(pinned.blocks > 8 || sizes.iter().sum::<u64>() == pinned.in_blocks);
    }
    let empty = naive.iter().filter(|naive| naive.blocks.is_empty());
    let empty = empty.fold((0, 0), |(count, bytes), naive| (count + 1, bytes + naive.around.bytes));
    prop_assert_eq!(view.empty, empty);
    Ok(())
}

fn whole(blocks: usize) -> SegmentsQuery {
    SegmentsQuery { slices: 1, window: 0..1000, blocks, pinned: 1000, ..SegmentsQuery::default() }
}

/// A block without bytes divides a hole, or does not, and keeps its container, or does not.
fn is_plain(world: &World) -> bool {
    !world.lives.iter().any(|life| life.bytes == 0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn containers_and_their_fragmentation_are_those_of_the_reference(
        steps in of_all_processes(),
        announced: bool,
        buckets in 1usize..40,
    ) {
        let entries = session(&steps, announced);
        let world = World::of(&entries);
        prop_assume!(is_plain(&world));
        let mut explorer = explorer(&entries, Limits::NONE);
        let first = explorer.answer(&Query::default());
        let range = Nanoseconds(0)..Nanoseconds(first.session.last_time.0 + 1);
        for (target, part) in targets(&first) {
            let fragmentation = Some(WindowQuery { range: range.clone(), buckets });
            let view = explorer.answer(&Query { target, fragmentation, ..Query::default() }).fragmentation;
            let view = view.expect("asked for");
            prop_assert_eq!(view.points.len(), (buckets as u64).min(range.end.0) as usize);
            for point in &view.points {
                check_point(point, &naive(&world, &part, point.time.0))?;
            }
            for point in view.points.iter().step_by(5) {
                let query = Query { target, at: At::Time(point.time), segments: Some(whole(1000)), ..Query::default() };
                let view = explorer.answer(&query).segments.expect("asked for");
                check_blocks(&view, &naive(&world, &part, point.time.0))?;
                prop_assert_eq!(view.fragmentation(), point.fragmentation(), "the chart is the map's");
            }
        }
    }
}

const MIB: u64 = 1 << 20;

/// Two containers of 20 MiB, and one of 4 MiB.
fn three() -> Trace {
    let mut trace = Trace::new(&["three"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let origin = Origin::Hooked;
    let block = |trace: &mut Trace, address: u64, bytes: u64, category: Category, name: &str| {
        trace.event(0, Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin });
        let name = trace.name(0, name);
        trace.event(0, Event::Tag { address, name, category, origin: Origin::Tagged });
    };
    for (address, bytes) in [(0x3000_0000, 20 * MIB), (0x1000_0000, 20 * MIB), (0x2000_0000, 4 * MIB)] {
        trace.alloc(0, address, bytes);
    }
    trace.push(0, "model");
    block(&mut trace, 0x3000_0000, 19 * MIB, Category::Weights, "weight");
    block(&mut trace, 0x1000_0000 + 8 * MIB, MIB, Category::Optimizer, "step");
    block(&mut trace, 0x1000_0000 + 12 * MIB, 2 * MIB, Category::Unknown, "leak");
    trace.pop(0);
    block(&mut trace, 0x2000_0000, MIB, Category::Inputs, "batch");
    trace.event(0, Event::BlockFree { address: 0x2000_0000, origin });
    trace
}

#[test]
fn survivors_are_named_and_found_and_looked_at_closely() {
    let mut explorer = explorer(&three().entries, FRESH);
    let ask = |explorer: &mut Explorer, query: SegmentsQuery| {
        explorer.answer(&Query { segments: Some(query), ..Query::default() }).segments.expect("asked for")
    };
    let view = ask(&mut explorer, whole(10));
    assert_eq!((view.total, view.pinned_total, view.empty), (3, 1, (1, 4 * MIB)));
    let pinned = &view.pinned[0];
    assert_eq!((pinned.address, pinned.bytes, pinned.free(), pinned.piece), (0x1000_0000, 20 * MIB, 17 * MIB, false));
    let survivors: Vec<_> = pinned.survivors.iter().map(|one| (&*one.block.name, &*one.block.scope)).collect();
    assert_eq!(survivors, [("leak", "model"), ("step", "model")]);
    // By address the pinned one is the first; by size the second, of equals the one at the lower address comes first.
    let leak = pinned.survivors[0].block.pick;
    let place = |explorer: &mut Explorer, order, find: Pick| {
        ask(explorer, SegmentsQuery { order, find: Some(find), ..whole(0) }).found
    };
    assert_eq!(place(&mut explorer, SegmentOrder::Address, leak), Some(0));
    assert_eq!(place(&mut explorer, SegmentOrder::Size, leak), Some(0));
    let weight = view.segments[1].shown[0].pick;
    assert_eq!(place(&mut explorer, SegmentOrder::Address, weight), Some(2));
    assert_eq!(place(&mut explorer, SegmentOrder::Size, view.segments[2].pick), Some(2));
    assert_eq!(place(&mut explorer, SegmentOrder::Size, Pick::default()), None);
    // Only the larger one has room.
    let few = ask(&mut explorer, whole(1));
    let kept: Vec<_> = few.segments[0].shown.iter().map(|block| &*block.name).collect();
    assert_eq!((kept, few.segments[0].hidden), (vec!["leak"], 1));
    // From the middle of the first block on.
    let part = Some((view.segments[0].pick, 8 * MIB + MIB / 2..12 * MIB + MIB));
    let close = ask(&mut explorer, SegmentsQuery { part, slices: 9, ..whole(10) });
    let segment = &close.segments[0];
    assert_eq!((segment.bytes, segment.in_blocks), (20 * MIB, 3 * MIB), "figures are of the whole");
    let optimizer: Vec<u64> = segment.slices.iter().map(|slice| slice[Category::Optimizer as usize]).collect();
    let unknown: Vec<u64> = segment.slices.iter().map(|slice| slice[Category::Unknown as usize]).collect();
    let half = MIB / 2;
    assert_eq!(optimizer, [half, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(unknown, [0, 0, 0, 0, 0, 0, 0, half, half]);
    assert_eq!(segment.shown.len(), 2);
    assert_eq!(close.segments[1].part, 0..20 * MIB, "the others are told whole");
}

#[test]
fn each_piece_of_memory_that_is_mapped_piece_by_piece_is_kept_by_itself() {
    let mut trace = Trace::new(&["expandable"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let (memory, base) = (MemoryKind::Device, 0x1000_0000);
    for handle in 0..4 {
        let address = base + handle * 2 * MIB;
        trace.event(
            0,
            Event::Create { handle: handle + 1, bytes: 2 * MIB, measure: Measure::Told, device: 0, row: 1, memory },
        );
        trace.event(0, Event::Map { address, bytes: 2 * MIB, offset: 0, handle: handle + 1, row: 1 });
    }
    // The first piece is full, a block reaches into the second, the third has nothing any more, the fourth has a small one.
    let origin = Origin::Hooked;
    for (address, bytes) in [(base, 2 * MIB + MIB / 2), (base + 4 * MIB, MIB), (base + 7 * MIB, MIB / 4)] {
        trace.event(0, Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin });
    }
    trace.event(0, Event::BlockFree { address: base + 4 * MIB, origin });
    let mut explorer = explorer(&trace.entries, FRESH);
    let query = Query { segments: Some(whole(10)), ..Query::default() };
    let view = explorer.answer(&query).segments.expect("asked for");
    assert_eq!((view.total, view.segments[0].pieces), (1, 4));
    let pinned: Vec<_> =
        view.pinned.iter().map(|pinned| (pinned.offset / MIB, pinned.free(), pinned.blocks, pinned.piece)).collect();
    assert_eq!(pinned, [(6, 2 * MIB - MIB / 4, 1, true), (2, 2 * MIB - MIB / 2, 1, true)]);
}

#[test]
fn what_pools_keep_is_told_by_name_and_has_no_map() {
    let mut trace = Trace::new(&["pools"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.event(0, Event::Object { object: Object::Pool, handle: 0xb0, device: 0, row: 1 });
    let (bytes, memory) = (24 * MIB, MemoryKind::Pool);
    trace.event(0, Event::Alloc { address: 1 << 32, bytes, requested: bytes, stream: 0, device: 0, row: 1, memory });
    let ask = |trace: &Trace| {
        let query = Query { segments: Some(whole(10)), ..Query::default() };
        explorer(&trace.entries, FRESH).answer(&query).segments.expect("asked for")
    };
    assert_eq!(ask(&trace).pools_in_words(), None, "no pool keeps anything");
    for (pool, kept) in [(0xa0, 32 * MIB), (0xb0, 8 * MIB)] {
        trace.event(0, Event::PoolReserve { pool, bytes: kept, device: 0, row: 1 });
    }
    let view = ask(&trace);
    assert_eq!((view.total, view.leaves, view.of_pools), (0, 1, 24 * MIB));
    let pools: Vec<_> = view.pools.iter().map(|(name, bytes)| (&**name, bytes / MIB)).collect();
    assert_eq!(pools, [("pool's reserve: default pool", 32), ("pool's reserve: pool 0xb0", 8)]);
    let words =
        "pools keep 40.00 MiB, 24.00 MiB in use, no addresses to map: default pool 32.00 MiB, pool 0xb0 8.00 MiB";
    assert_eq!(view.pools_in_words().as_deref(), Some(words));
}
