//! Sessions that run: answers after each entry, against a history that is made anew from all events so far.

use std::collections::BTreeMap;

use memscope_core::explorer::{
    Answer, At, Explorer, Limits, Query, Row, RowsQuery, ScopeNode, Segment, SegmentsQuery, Target,
};
use memscope_core::journal::entry::{Entry, Nanoseconds};
use memscope_wire::{Category, MemoryKind};
use proptest::prelude::*;

use super::ended;
use crate::deeds::{Deed, UUIDS, deed, key, plain, session, sums};
use crate::reference::{Life, Numbered, Place, Sums, When, World};

pub const FRESH: Limits = Limits { pace: 0, ..Limits::NONE };

/// A part of the session in the reference's terms.
#[derive(Clone, Debug)]
pub enum Part {
    All,
    Device(String),
    Process(usize),
    Host,
}

impl Part {
    pub fn has(&self, world: &World, life: &Life) -> bool {
        match self {
            Part::All => true,
            Part::Device(name) => {
                !life.memory.on_host() && !life.outside && world.device(life.process, life.ordinal) == *name
            }
            Part::Process(process) => life.process == *process,
            Part::Host => life.memory.on_host(),
        }
    }

    /// True for memory that its sums are of.
    pub fn counts(&self, memory: MemoryKind) -> bool {
        match self {
            Part::Host => memory.on_host(),
            _ => matches!(memory, MemoryKind::Device | MemoryKind::Pool),
        }
    }
}

/// All targets that can be told apart by name.
pub fn targets(answer: &Answer) -> Vec<(Target, Part)> {
    let mut targets = vec![(Target::All, if answer.of_host { Part::Host } else { Part::All })];
    for (position, device) in answer.devices.iter().enumerate() {
        if device.uuid.starts_with("GPU-") {
            targets.push((Target::Device(position as u16), Part::Device(plain(&device.uuid))));
        }
    }
    targets.extend(answer.has_host.then_some((Target::Host, Part::Host)));
    targets
        .extend((0..answer.processes.len()).map(|process| (Target::Process(process as u32), Part::Process(process))));
    targets
}

pub fn ask(explorer: &mut Explorer, target: Target, at: At) -> Answer {
    explorer.answer(&Query {
        target,
        at,
        steps: 0..1000,
        rows: Some(RowsQuery { window: 0..1000, ..RowsQuery::default() }),
        scopes: true,
        segments: Some(SegmentsQuery { slices: 3, window: 0..1000, ..SegmentsQuery::default() }),
        ..Query::default()
    })
}

/// What the reference says of device memory, managed memory and host memory.
fn ledgers(world: &World, part: &Part, lives: impl Fn(&Life) -> bool) -> [Sums; 3] {
    let of = |memory: fn(MemoryKind) -> bool| {
        world.sums_of(|life| memory(life.memory) && lives(life) && part.has(world, life))
    };
    [
        of(|memory| matches!(memory, MemoryKind::Device | MemoryKind::Pool)),
        of(|memory| memory == MemoryKind::Managed),
        of(MemoryKind::on_host),
    ]
}

/// One moment: ledgers, rows, scopes and segments.
fn compare(
    answer: &Answer,
    world: &World,
    part: &Part,
    lives: impl Fn(&Life) -> bool + Copy,
) -> Result<(), TestCaseError> {
    let [device, managed, host] = ledgers(world, part, lives);
    // All of a session without device memory is its host memory.
    let counted = || world.lives.iter().filter(|life| !life.outside);
    let alone = counted().count() > 0 && counted().all(|life| life.memory.on_host());
    let of_host = matches!(part, Part::Host);
    prop_assert_eq!(answer.of_host, of_host);
    if answer.target == Target::All {
        prop_assert_eq!(of_host, alone);
    }
    prop_assert_eq!(sums(&answer.now.state.rows), if of_host { host } else { device });
    prop_assert_eq!(sums(&answer.now.state.managed), managed);
    if matches!(part, Part::All) {
        prop_assert_eq!(sums(&answer.now.host), host);
    }
    let live: Vec<&Life> = world.lives.iter().filter(|life| lives(life) && part.has(world, life)).collect();
    compare_rows(answer, &live)?;
    let counted: Vec<&Life> = live.iter().copied().filter(|life| life.is_leaf() && part.counts(life.memory)).collect();
    compare_scopes(answer.scopes.as_deref().expect("asked for"), &counted, answer)?;
    compare_segments(answer, world, &live)
}

fn compare_rows(answer: &Answer, live: &[&Life]) -> Result<(), TestCaseError> {
    let list = answer.rows.as_ref().expect("asked for");
    let leaves: Vec<&&Life> = live.iter().filter(|life| life.is_leaf()).collect();
    prop_assert_eq!((list.total, list.matching), (leaves.len(), leaves.len()));
    prop_assert_eq!(list.matching_bytes, leaves.iter().map(|life| life.requested).sum::<u64>());
    let found: Vec<_> = list
        .rows
        .iter()
        .map(|row| match row {
            Row::Allocation(row) => {
                (row.bytes, row.granted, row.address, row.category, row.birth.0, row.step, row.scope.clone())
            }
            Row::Group(_) => panic!("not asked for"),
        })
        .collect();
    prop_assert!(found.is_sorted_by_key(|row| std::cmp::Reverse(row.0)), "the largest first");
    let expected = leaves.iter().map(|life| {
        (life.requested, life.bytes, life.address, life.category, life.birth.0, life.step, path(&life.scope))
    });
    let (mut found, mut expected) = (found, expected.collect::<Vec<_>>());
    found.sort();
    expected.sort();
    prop_assert_eq!(found, expected);
    let mut ids: Vec<u64> =
        list.rows.iter().filter_map(|row| if let Row::Allocation(row) = row { Some(row.id) } else { None }).collect();
    ids.sort_unstable();
    ids.dedup();
    prop_assert_eq!(ids.len(), leaves.len(), "each has a number of its own");
    Ok(())
}

/// A name whose text never came is shown by its hash.
fn path(scope: &[u64]) -> String {
    scope.iter().map(|name| format!("#{name:016x}")).collect::<Vec<_>>().join("/")
}

fn compare_scopes(nodes: &[ScopeNode], live: &[&Life], answer: &Answer) -> Result<(), TestCaseError> {
    let mut open: Vec<String> = Vec::new();
    let mut found = BTreeMap::new();
    for (position, node) in nodes.iter().enumerate() {
        open.truncate(node.depth.saturating_sub(1) as usize);
        if node.depth > 0 {
            open.push(node.name.clone());
        }
        prop_assert_eq!(open.len(), node.depth as usize);
        let inside = nodes[position + 1..].iter().take_while(|other| other.depth > node.depth).count();
        prop_assert_eq!(inside, node.inside);
        if node.allocations > 0 {
            found.insert(open.join("/"), (node.now, node.own, node.allocations));
        }
    }
    let mut expected: BTreeMap<String, ([u64; 7], u64, u64)> = BTreeMap::new();
    for life in live {
        for depth in 0..=life.scope.len() {
            let (now, own, count) = expected.entry(path(&life.scope[..depth])).or_default();
            now[life.category as usize] += life.requested;
            *count += 1;
            *own += if depth == life.scope.len() { life.requested } else { 0 };
        }
    }
    prop_assert_eq!(found, expected);
    let peak = answer.peak.as_ref().map_or([0; 7], |peak| peak.state.rows.live);
    prop_assert_eq!(nodes[0].peak, peak, "the root at the peak is the whole");
    Ok(())
}

fn compare_segments(answer: &Answer, world: &World, live: &[&Life]) -> Result<(), TestCaseError> {
    let view = answer.segments.as_ref().expect("asked for");
    let containers: Vec<&&Life> = live.iter().filter(|life| !life.block && life.held_blocks).collect();
    prop_assert_eq!(view.total, containers.len());
    prop_assert_eq!(view.bytes, containers.iter().map(|life| life.bytes).sum::<u64>());
    prop_assert_eq!(view.leaves, live.iter().filter(|life| !life.block && !life.held_blocks).count());
    let mut found: Vec<Segment> = view.segments.clone();
    found.sort_by_key(|segment| (segment.pid, segment.address));
    let mut expected: Vec<Segment> = containers
        .iter()
        .map(|container| {
            let inside = |life: &&&Life| life.container.is_some_and(|at| std::ptr::eq(&world.lives[at], **container));
            let blocks: Vec<&&Life> = live.iter().filter(inside).collect();
            // Byte by byte: sizes are small.
            let mut bytes: Vec<Option<Category>> = vec![None; container.bytes as usize];
            for block in &blocks {
                let begin = (block.address - container.address) as usize;
                bytes[begin..begin + block.bytes as usize].fill(Some(block.category));
            }
            let holes: Vec<u64> =
                bytes.split(Option::is_some).filter(|hole| !hole.is_empty()).map(|hole| hole.len() as u64).collect();
            // A block without bytes divides a hole, or does not: it takes nothing.
            let edge = |number: usize| bytes.len() * number / 3;
            let slice = |number: usize| {
                let mut sums = [0; 7];
                bytes[edge(number)..edge(number + 1)]
                    .iter()
                    .flatten()
                    .for_each(|category| sums[*category as usize] += 1);
                sums
            };
            Segment {
                address: container.address,
                bytes: container.bytes,
                in_blocks: blocks.iter().map(|block| block.bytes).sum(),
                blocks: blocks.len() as u64,
                holes: holes.len() as u64,
                largest_hole: holes.into_iter().max().unwrap_or(0),
                pid: 100 + container.process as u32,
                device: None,
                birth: Nanoseconds(container.birth.0),
                slices: (0..3).map(slice).collect(),
                part: 0..container.bytes,
                hidden: blocks.len() as u64,
                ..Segment::default()
            }
        })
        .collect();
    expected.sort_by_key(|segment| (segment.pid, segment.address));
    for (found, expected) in found.iter_mut().zip(&mut expected) {
        (found.device, found.pick) = (None, expected.pick);
        if world.lives.iter().any(|life| life.block && life.bytes == 0) {
            (found.holes, found.largest_hole) = (expected.holes, expected.largest_hole);
        }
    }
    prop_assert_eq!(found, expected);
    Ok(())
}

pub type Step = (u32, u64, bool, Deed);

pub fn deeds(process: impl Strategy<Value = u32>) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((process, 0u64..8, proptest::bool::weighted(0.1), deed()), 1..60)
}

pub fn of_all_processes() -> impl Strategy<Value = Vec<Step>> {
    deeds(prop_oneof![3 => Just(0u32), 1 => 1u32..3])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_live_is_told_after_each_entry(deeds in of_all_processes(), announced: bool) {
        let entries = session(&deeds, announced);
        let mut explorer = Explorer::new(FRESH);
        for (position, entry) in entries.iter().enumerate() {
            explorer.apply(entry);
            if position + 1 == entries.len() {
                // The end has another meaning: see `ended`.
                break;
            }
            let world = World::of(&entries[..=position]);
            let first = ask(&mut explorer, Target::All, At::Live);
            for (target, part) in targets(&first) {
                let answer = ask(&mut explorer, target, At::Live);
                compare(&answer, &world, &part, |life| life.death.is_none())?;
            }
            for (process, view) in first.processes.iter().enumerate() {
                let [device, _, _] = ledgers(&world, &Part::Process(process), |life| life.death.is_none());
                prop_assert_eq!(view.live, device.live_bytes());
            }
        }
    }

    #[test]
    fn the_past_of_one_process_is_told_while_it_runs(
        deeds in deeds(Just(0u32)).prop_map(|deeds| deeds.into_iter().filter(|(_, _, _, deed)| !is_refusal(deed)).collect::<Vec<_>>()),
        rarely in 1usize..4,
    ) {
        let entries = session(&deeds, true);
        let mut explorer = Explorer::new(FRESH);
        for (position, entry) in entries.iter().enumerate() {
            explorer.apply(entry);
            if position + 1 == entries.len() {
                break;
            }
            if position % rarely == 0 {
                compare_past(&mut explorer, &entries[..=position])?;
            }
        }
    }

    #[test]
    fn a_whole_session_is_told_as_its_report_tells_it(deeds in of_all_processes(), announced: bool) {
        ended::check(&session(&deeds, announced), 60 * 8);
    }
}

pub fn is_refusal(deed: &Deed) -> bool {
    matches!(deed, Deed::Refuse { .. } | Deed::RefuseAtOnce { .. })
}

/// True when a step began between an allocation and the first block in it, or so many others began that former maxima
/// are not kept: then a maximum may be too small until the end.
fn containers_were_late(world: &World) -> bool {
    let late = |(at, container): (usize, &Life)| {
        let first = world.lives.iter().find(|life| life.container == Some(at));
        first.is_some_and(|first| {
            let between = |when: When| container.birth <= when && when <= first.birth;
            world.steps.iter().any(|(when, _)| between(*when))
                || world.lives.iter().filter(|life| between(life.birth)).count() > 8
        })
    };
    world.lives.iter().enumerate().filter(|(_, life)| life.held_blocks).any(late)
}

/// Peaks, steps and series of each device, and moments by time, of the entries so far.
fn compare_past(explorer: &mut Explorer, entries: &[Entry]) -> Result<(), TestCaseError> {
    let world = World::of(entries);
    let first = ask(explorer, Target::All, At::Live);
    for uuid in UUIDS {
        let Some(position) = first.devices.iter().position(|device| plain(&device.uuid) == key(uuid)) else { continue };
        let target = Target::Device(position as u16);
        let place = Place::Device(key(uuid));
        let (history, begun) = (world.history(&place), world.steps_of(&place));
        let answer = ask(explorer, target, At::Peak);
        let largest = history.iter().map(|(_, sums, _, _)| sums.live_bytes()).max().unwrap_or(0);
        let peak = answer.peak.as_ref();
        let found = peak.map_or(0, |peak| peak.state.rows.live_bytes());
        if containers_were_late(&world) {
            prop_assert!(found <= largest);
            continue;
        }
        prop_assert_eq!(found, largest);
        if let Some(peak) = peak {
            let at = history.iter().find(|(_, sums, _, _)| sums.live_bytes() == largest).expect("a peak");
            prop_assert_eq!((peak.state.time.0, sums(&peak.state.rows)), (at.0, at.1));
            prop_assert_eq!(&answer.now, peak);
        }
        let drawn = answer.series.buckets.iter().map(|bucket| bucket.live.iter().sum::<u64>()).max().unwrap_or(0);
        prop_assert!(drawn == largest || world.lives.iter().any(|life| life.held_blocks), "{} {}", drawn, largest);
        for step in &answer.steps {
            let largest = |is_meant: &dyn Fn(Numbered) -> bool| {
                let within = history.iter().filter(|(_, _, there, _)| there.is_some_and(is_meant));
                within.map(|(_, sums, _, _)| sums.live_bytes()).max()
            };
            let own = |there: Numbered| there == (step.number, step.turn);
            prop_assert_eq!(Some(step.peak), largest(&own), "step {}", step.name());
            let part = Part::Device(key(uuid));
            let within = |birth: When| {
                begun.iter().rfind(|(when, _)| *when <= birth).and_then(|(_, there)| *there).is_some_and(own)
            };
            let born = world.lives.iter().filter(|life| within(life.birth) && !life.outside && part.has(&world, life));
            prop_assert_eq!(step.allocations, born.count() as u64, "step {}", step.name());
            let then = ask(explorer, target, At::Step(step.number));
            let of_number = largest(&|there: Numbered| there.0 == step.number);
            prop_assert_eq!(Some(then.now.state.rows.live_bytes()), of_number, "step {}", step.number);
            if answer.steps.iter().filter(|other| other.begin == step.begin).count() == 1 {
                let then = ask(explorer, target, At::StepFrom(step.begin));
                prop_assert_eq!(then.now.state.rows.live_bytes(), step.peak, "step {}", step.name());
            }
        }
    }
    let last = first.session.last_time.0;
    for time in [0, last / 3, last / 2, last.saturating_sub(1), last] {
        for (target, part) in targets(&first) {
            let answer = ask(explorer, target, At::Time(Nanoseconds(time)));
            compare(&answer, &world, &part, |life| life.lives_at(time))?;
        }
    }
    Ok(())
}
