//! A session of many thousand changes: spans of any length, and the choice of bands, against plain sums over all of it.

use memscope_core::explorer::{Answer, BandsQuery, Explorer, Limits, Query, Target, WindowQuery};
use memscope_core::journal::entry::Nanoseconds;
use memscope_wire::{Category, Event, Origin};

use super::ended::explorer;
use crate::trace::{Trace, UUID};

/// A block as the session makes it.
#[derive(Clone, Copy)]
struct Block {
    birth: u64,
    death: u64,
    bytes: u64,
    category: Category,
}

const BLOCKS: u64 = 20_000;
const ALIVE: u64 = u64::MAX;

/// Blocks of one container that come and go at random, at irregular times; and a peak that lasts for one nanosecond.
fn session() -> (Trace, Vec<Block>) {
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 4242);
    trace.device(0, 0, UUID, 80 << 30);
    let name = trace.name(0, "x");
    let size = 1 << 20;
    trace.alloc(0, 0, (BLOCKS + 1) * size);
    let mut blocks: Vec<Block> = Vec::new();
    let mut live: Vec<usize> = Vec::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    while (blocks.len() as u64) < BLOCKS {
        trace.now += if next(97) == 0 { 1 + next(1_000_000) } else { 1 + next(50) };
        let peak = blocks.len() as u64 == BLOCKS / 2;
        if !peak && live.len() > 40 && next(10) < 5 {
            let old = if next(4) == 0 { 0 } else { next(live.len() as u64) as usize };
            let number = live.swap_remove(old);
            let free = Event::BlockFree { address: number as u64 * size, origin: Origin::Tagged };
            trace.event(0, free);
            blocks[number].death = trace.now;
            continue;
        }
        let category = Category::from_number(next(7) as u8);
        let bytes = if peak { size } else { 1 + next(1000) };
        let address = blocks.len() as u64 * size;
        trace.event(0, Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin: Origin::Tagged });
        trace.event(0, Event::Tag { address, name, category, origin: Origin::Tagged });
        let mut block = Block { birth: trace.now, death: ALIVE, bytes, category };
        if peak {
            trace.now += 1;
            trace.event(0, Event::BlockFree { address, origin: Origin::Tagged });
            block.death = trace.now;
        } else {
            live.push(blocks.len());
        }
        blocks.push(block);
    }
    trace.now += 1000;
    (trace, blocks)
}

/// Every moment: time, live bytes by category after the last change of it, and how many are live.
fn moments(blocks: &[Block]) -> Vec<(u64, [u64; 7], u64)> {
    let mut changes: Vec<(u64, bool, usize)> = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        changes.push((block.birth, true, number));
        changes.extend((block.death != ALIVE).then_some((block.death, false, number)));
    }
    changes.sort_unstable();
    let (mut live, mut count) = ([0; 7], 0);
    let mut moments: Vec<(u64, [u64; 7], u64)> = vec![(0, live, 0)];
    for (time, born, number) in changes {
        let block = blocks[number];
        let own: &mut u64 = &mut live[block.category as usize];
        (*own, count) = if born { (*own + block.bytes, count + 1) } else { (*own - block.bytes, count - 1) };
        // No two changes of this session are at one time.
        moments.push((time, live, count));
    }
    moments
}

fn ask(explorer: &mut Explorer, window: Option<WindowQuery>, bands: Option<BandsQuery>) -> Answer {
    explorer.answer(&Query { target: Target::Device(0), window, bands, ..Query::default() })
}

fn total(live: &[u64; 7]) -> u64 {
    live.iter().sum()
}

/// Ranges from all of it down to single nanoseconds.
fn ranges(last: u64, peak: u64) -> Vec<std::ops::Range<Nanoseconds>> {
    let spans = [
        (0, last + 1),
        (last / 3, last / 2),
        (last / 7, last / 7 + 100_000),
        (peak - 500, peak + 500),
        (peak, peak + 1),
        (peak - 3, peak + 2),
        (last - 10, last + 50),
    ];
    spans.into_iter().map(|(from, to)| Nanoseconds(from)..Nanoseconds(to)).collect()
}

/// The session, ended: its explorer, its blocks, and its last moment.
fn ended() -> (Explorer, Vec<Block>, u64) {
    let (mut trace, blocks) = session();
    trace.end(0);
    (explorer(&trace.entries, Limits::NONE), blocks, trace.now)
}

#[test]
fn every_bucket_shows_its_largest_moment_at_every_zoom() {
    let (mut explorer, blocks, last) = ended();
    let moments = moments(&blocks);
    for range in ranges(last, blocks[(BLOCKS / 2) as usize].birth) {
        for buckets in [1, 3, 100, 2048] {
            let answer = ask(&mut explorer, Some(WindowQuery { range: range.clone(), buckets }), None);
            let view = answer.window.expect("asked for");
            assert_eq!(view.buckets.len() as u64, (buckets as u64).min(range.end.0 - range.start.0));
            for (number, bucket) in view.buckets.iter().enumerate() {
                let begin = bucket.begin.0;
                let end = view.buckets.get(number + 1).map_or(range.end.0, |next| next.begin.0);
                let first = moments.partition_point(|(time, ..)| *time < begin);
                let mut largest = (begin, moments[first.saturating_sub(1)].1, moments[first.saturating_sub(1)].2);
                for moment in moments[first..].iter().take_while(|(time, ..)| *time < end) {
                    largest = if total(&moment.1) > total(&largest.1) { *moment } else { largest };
                }
                let found = (bucket.time.0, bucket.rows.live, bucket.allocations.expect("all are listed"));
                assert_eq!(found, largest, "bucket {number} of {buckets} of {range:?}");
            }
        }
    }
}

#[test]
fn the_largest_are_drawn_and_all_others_are_summed_up() {
    let (mut explorer, blocks, last) = ended();
    let moments = moments(&blocks);
    for range in ranges(last, blocks[(BLOCKS / 2) as usize].birth) {
        let query = BandsQuery { range: range.clone(), limit: 50, columns: 200, ..BandsQuery::default() };
        let view = ask(&mut explorer, None, Some(query)).bands.expect("asked for");
        let (start, end) = (range.start.0, range.end.0.min(last + 1));
        let mut alive: Vec<&Block> = blocks.iter().filter(|block| block.birth < end && block.death > start).collect();
        assert_eq!((view.alive, view.merged()), (alive.len() as u64, alive.len().saturating_sub(50) as u64));
        let area = |block: &&Block| {
            let time = block.death.min(end) - block.birth.max(start);
            std::cmp::Reverse((u128::from(block.bytes) * u128::from(time), block.bytes))
        };
        alive.sort_by_key(area);
        alive.truncate(50);
        alive.sort_by_key(|block| block.birth);
        let found: Vec<(u64, u64)> = view.bands.iter().map(|band| (band.pick.birth.0, band.bytes)).collect();
        assert_eq!(found, alive.iter().map(|block| (block.birth, block.bytes)).collect::<Vec<_>>(), "{range:?}");
        for rest in &view.rest {
            let at = moments.partition_point(|(time, ..)| *time <= rest.time.0) - 1;
            let (_, mut live, mut count) = moments[at];
            for block in alive.iter().filter(|block| block.birth <= rest.time.0 && block.death > rest.time.0) {
                live[block.category as usize] -= block.bytes;
                count -= 1;
            }
            // What ends just as a column begins still counts in the largest moment of that column.
            let fell = moments[at].0 == rest.time.0 && at > 0 && total(&moments[at].1) < total(&moments[at - 1].1);
            if view.rest_exact || !fell {
                assert_eq!((rest.live, rest.allocations), (live, count), "{range:?} at {:?}", rest.time);
            }
        }
        let largest = view.rest.iter().map(|rest| rest.drawn + rest.bytes()).max().expect("some");
        let first = moments.partition_point(|(time, ..)| *time <= start).saturating_sub(1);
        let inside = moments[first..].iter().take_while(|(time, ..)| *time < end).map(|(_, live, _)| total(live));
        assert_eq!(Some(largest), inside.max(), "{range:?}");
        assert_eq!(view.height, largest);
    }
}

#[test]
fn a_filter_draws_only_what_it_lets_through() {
    let (mut explorer, blocks, last) = ended();
    let range = Nanoseconds(0)..Nanoseconds(last);
    let query = BandsQuery { range, limit: 8000, filter: "category:weights >900".into(), ..BandsQuery::default() };
    let view = ask(&mut explorer, None, Some(query.clone())).bands.expect("asked for");
    let lets = |block: &&Block| block.category == Category::Weights && block.bytes > 900;
    assert_eq!(view.bands.len(), blocks.iter().filter(lets).count());
    assert!(view.bands.iter().all(|band| band.category == Category::Weights && band.bytes > 900));
    assert_eq!(view.alive, BLOCKS);
    let view = ask(&mut explorer, None, Some(BandsQuery { filter: "colour:red".into(), limit: 3, ..query })).bands;
    let view = view.expect("asked for");
    assert!(view.filter_error.is_some() && view.bands.len() == 3);
}
