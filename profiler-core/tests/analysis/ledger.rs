//! Random sessions: the model against the naive reference, at every entry and over the whole history.

use memscope_core::allocation::Model;
use memscope_core::findings::Detail;
use memscope_core::journal::entry::{Counters, Entry, ProcessIndex};
use memscope_core::ledger::EventRows;
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Report, Rows};
use memscope_wire::text::TextId;
use memscope_wire::{Category, Event, Measure, MemoryKind, Object, Origin};
use proptest::prelude::*;

use crate::reference::{Deed as Kind, PHASES, Place, Sums, World};
use crate::trace::{ALLOC_ROW, Trace};

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
    ]
}

pub const UUIDS: [[u8; 16]; 2] = [*b"SIMULATED-GPU-00", *b"SIMULATED-GPU-01"];

/// Carries out the deeds: (process, time that passes, whether the clock is read late, deed).
pub fn session(deeds: &[(u32, u64, bool, Deed)], announced: bool) -> Vec<Entry> {
    let mut trace = Trace::new(&["random"], None);
    let mut frees: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 3];
    let mut ended = [false; 3];
    for process in 0..3 {
        trace.process(process, 100 + process);
        if announced {
            for (ordinal, uuid) in UUIDS.into_iter().enumerate() {
                trace.device(process, ordinal as u32, uuid, 1 << 30);
            }
        }
    }
    for (process, passes, late, deed) in deeds.iter().cloned() {
        if ended[process as usize] {
            continue;
        }
        trace.now += passes;
        let now = trace.now;
        // A thread that read the clock before another one, and claimed its slot after it.
        trace.now -= if late { now.min(3) } else { 0 };
        let at = |place: u64, offset: u64| 0x10_000 + place * 1024 + offset;
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
                frees[process as usize].push((slot, at(place, offset)));
            }
            Deed::Refuse { which } => {
                let mine = &mut frees[process as usize];
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
                ended[process as usize] = true;
            }
        }
        trace.now = now;
    }
    trace.end(0);
    trace.entries
}

pub fn sums(rows: &EventRows) -> Sums {
    Sums { reserved: rows.reserved, live: rows.live, rounding: rows.rounding, cached: rows.cached }
}

fn sums_of_report(rows: &Rows) -> Sums {
    let by = rows.by_category;
    let live = [by.unknown, by.weights, by.gradients, by.activations, by.optimizer, by.inputs, by.workspace];
    Sums { reserved: rows.reserved, live, rounding: rows.rounding, cached: rows.cached }
}

pub fn key(uuid: [u8; 16]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn plain(uuid: &str) -> String {
    uuid.trim_start_matches("GPU-").replace('-', "")
}

/// The running ledgers of every device that has a name.
fn compare_now(model: &Model, world: &World) -> Result<(), TestCaseError> {
    prop_assert_eq!(sums(model.host()), world.now(&Place::Host));
    prop_assert!(model.host().adds_up());
    for device in model.devices() {
        prop_assert!(device.rows.adds_up() && device.managed.adds_up(), "{:?}", device);
        let Some(uuid) = &device.uuid else { continue };
        prop_assert_eq!(sums(&device.rows), world.now(&Place::Device(plain(uuid))));
        prop_assert_eq!(sums(&device.managed), world.now(&Place::Managed(plain(uuid))));
    }
    Ok(())
}

/// Peaks, steps and the end of a device against its whole history.
fn compare_history(report: &Report, world: &World, uuid: [u8; 16]) -> Result<(), TestCaseError> {
    let Some(device) = report.devices.iter().find(|device| plain(&device.uuid) == key(uuid)) else {
        prop_assert!(!world.places().contains(&Place::Device(key(uuid))));
        return Ok(());
    };
    let history = world.history(&Place::Device(key(uuid)));
    let managed = world.history(&Place::Managed(key(uuid)));
    let first = |value: fn(&Sums) -> u64| {
        let mut largest = (0, 0.0, None);
        for (time, sums, step, _) in &history {
            if value(sums) > largest.0 {
                largest = (value(sums), *time as f64 / 1e9, *step);
            }
        }
        largest
    };
    let live = device.peak.live;
    prop_assert_eq!((live.bytes, live.time_s, live.step), first(Sums::live_bytes));
    let reserved = device.peak.reserved;
    prop_assert_eq!((reserved.bytes, reserved.time_s, reserved.step), first(|sums| sums.reserved));
    if let Some(ledger) = &device.ledger_at_peak {
        let at = history.iter().find(|(_, sums, _, _)| sums.live_bytes() == live.bytes).map(|(_, sums, _, _)| *sums);
        prop_assert_eq!(Some(sums_of_report(&ledger.rows)), at);
    }
    let kept = history.iter().rposition(|(_, _, _, deed)| *deed != Kind::Ended);
    let none_left = |place| world.now(&place).reserved == 0;
    let all_given = kept.is_some_and(|position| position + 1 == history.len())
        && none_left(Place::Device(key(uuid)))
        && none_left(Place::Managed(key(uuid)));
    let kept = if all_given { history.iter().rposition(|(_, _, _, deed)| *deed == Kind::Took) } else { kept };
    let end = kept.map_or(Sums::default(), |position| history[position].1);
    prop_assert_eq!(sums_of_report(&device.ledger_at_end.rows), end);
    let ledger = &device.ledger_at_end;
    prop_assert!(managed.iter().map(|(_, sums, _, _)| sums.reserved).max().unwrap_or(0) >= ledger.managed.reserved);
    for step in report.steps.iter().filter(|step| plain(&step.device) == key(uuid)) {
        let within = history.iter().filter(|(_, _, number, _)| *number == Some(step.step));
        let largest = within.map(|(_, sums, _, _)| sums.live_bytes()).max();
        prop_assert_eq!(Some(step.peak.bytes), largest, "step {}", step.step);
    }
    let begun = history.iter().filter_map(|(_, _, step, _)| *step).collect::<std::collections::BTreeSet<_>>();
    let reported = report.steps.iter().filter(|step| plain(&step.device) == key(uuid)).map(|step| step.step);
    prop_assert_eq!(reported.collect::<std::collections::BTreeSet<_>>(), begun);
    Ok(())
}

fn compare_categories(report: &Report, world: &World) -> Result<(), TestCaseError> {
    let peaks = &report.category_peaks;
    let reported = [
        peaks.unknown,
        peaks.weights,
        peaks.gradients,
        peaks.activations,
        peaks.optimizer,
        peaks.inputs,
        peaks.workspace,
    ];
    for (category, reported) in Category::ALL.into_iter().zip(reported) {
        let devices = world.places().into_iter().filter(|place| matches!(place, Place::Device(_)));
        let largest = devices
            .flat_map(|place| world.history(&place))
            .map(|(_, sums, _, _)| sums.live[category as usize])
            .max()
            .unwrap_or(0);
        prop_assert_eq!(reported.bytes, largest, "{}", category.name());
    }
    let history = world.history(&Place::Host);
    let host = history.iter().map(|(_, sums, _, _)| sums.live_bytes()).max().unwrap_or(0);
    prop_assert_eq!(report.host.peak.bytes, host);
    if let Some(moment) = &report.host.moment {
        let at = history.iter().find(|(_, sums, _, _)| sums.live_bytes() == host).expect("a peak");
        prop_assert_eq!((moment.bytes, moment.step), (host, at.2));
        prop_assert_eq!(moment.by_category.numbers(), at.1.live);
    }
    Ok(())
}

/// A profile answers as the model does, and its rows agree with what it holds ready.
fn compare_profile(model: &Model, last: u64) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.mscope");
    let written = profile::write(model, &path, false).expect("written");
    let profile = Profile::open(&path).expect("opened");
    let report = |instant| model.report(instant).expect("a report");
    prop_assert_eq!(&written, &report(Instant::Peak));
    prop_assert_eq!(profile.verify().expect("readable").disagreements, Vec::<String>::new());
    let times =
        [0, last / 3, last / 2, last].map(|time| Instant::Time(memscope_core::journal::entry::Nanoseconds(time)));
    let steps = written.steps.iter().chain(&written.host.steps).map(|step| Instant::Step(step.step));
    for instant in [Instant::Peak, Instant::End].into_iter().chain(times).chain(steps) {
        prop_assert_eq!(profile.report(instant).expect("a report"), report(instant), "{}", instant);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_is_exact_at_every_event(
        deeds in proptest::collection::vec((prop_oneof![3 => Just(0u32), 1 => 1u32..3], 0u64..8, proptest::bool::weighted(0.1), deed()), 1..70),
        announced: bool,
    ) {
        let entries = session(&deeds, announced);
        let mut model = Model::new();
        for (position, entry) in entries.iter().enumerate() {
            model.apply(entry);
            compare_now(&model, &World::of(&entries[..=position]))?;
        }
        let world = World::of(&entries);
        let report = model.report(Instant::Peak).expect("a report");
        for uuid in UUIDS {
            compare_history(&report, &world, uuid)?;
        }
        compare_categories(&report, &world)?;
        compare_profile(&model, 70 * 8)?;
    }
}

#[test]
fn a_category_learned_later_counts_from_birth() {
    let mut trace = Trace::new(&["late"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.alloc(0, 0x1000, 100);
    trace.alloc(0, 0x2000, 50);
    trace.free(0, 0x2000);
    let mut model = trace.model();
    let report = model.report(Instant::Peak).expect("a report");
    assert_eq!(report.category_peaks.unknown.bytes, 150);
    trace.entries.clear();
    let name = TextId::NONE;
    trace.event(0, Event::Tag { address: 0x1000 + 99, name, category: Category::Weights, origin: Origin::Tagged });
    let changes = model.apply(&trace.entries[0]);
    assert_eq!(changes.retagged.len(), 1);
    assert_eq!((changes.retagged[0].was, changes.retagged[0].is), (Category::Unknown, Category::Weights));
    let report = model.report(Instant::Peak).expect("a report");
    assert_eq!((report.category_peaks.unknown.bytes, report.category_peaks.weights.bytes), (50, 100));
    assert_eq!(report.peak.expect("a peak").by_category.weights, 100);
}

#[test]
fn a_block_that_reaches_beyond_a_container_outlives_it() {
    let mut trace = Trace::new(&["beyond"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.alloc(0, 0x1000, 0x100);
    let block =
        |address, bytes| Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin: Origin::Hooked };
    trace.event(0, block(0x1000, 0x10));
    trace.event(0, block(0x10f0, 0x20));
    trace.free(0, 0x1000);
    trace.alloc(0, 0x10f0, 8);
    // The tag is the block's, which lies in no known allocation, and not that of the memory below it.
    let name = TextId::NONE;
    trace.event(0, Event::Tag { address: 0x10f0, name, category: Category::Weights, origin: Origin::Tagged });
    trace.event(0, Event::BlockFree { address: 0x10f0, origin: Origin::Hooked });
    let model = trace.model();
    let report = model.report(Instant::Peak).expect("a report");
    assert_eq!((report.category_peaks.weights.bytes, report.category_peaks.unknown.bytes), (0, 16));
    assert_eq!((report.totals.blocks, report.totals.block_frees), (2, 1));
}

#[test]
fn events_of_several_processes_meet_in_the_order_of_time() {
    // Each process holds 100 bytes for a while; they overlap in time, although one log is drained after the other.
    let mut trace = Trace::new(&["two"], None);
    for process in 0..2 {
        trace.now = 0;
        trace.process(process, process + 1);
        trace.device(process, 0, UUIDS[0], 1 << 30);
        trace.now = 10 + 5 * u64::from(process);
        trace.alloc(process, 0x1000, 100);
        trace.now += 10;
        trace.free(process, 0x1000);
    }
    let report = trace.model().report(Instant::Peak).expect("a report");
    let peak = report.peak.expect("a peak");
    assert_eq!((peak.bytes, peak.time_s), (200, 15e-9));
    assert_eq!(report.devices.len(), 1, "one device, named by two processes");
}

#[test]
fn a_refusal_of_an_address_that_was_given_again_comes_too_late() {
    let mut trace = Trace::new(&["late"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.alloc(0, 0x1000, 100);
    let first = trace.free(0, 0x1000);
    trace.alloc(0, 0x1000, 60);
    // Its free is not seen: the next one lies across it, and is freed as well, so that nothing is live at the address.
    trace.alloc(0, 0xfff, 10);
    trace.free(0, 0xfff);
    trace.event(0, Event::FreeRefused { address: 0x1000, slot: first, result: 1, row: 4 });
    let model = trace.model();
    assert_eq!(model.devices().next().expect("a device").rows.reserved, 0);
    assert_eq!(World::of(&trace.entries).now(&Place::Device(key(UUIDS[0]))).reserved, 0);
    // While nothing took the address, the memory never went away.
    trace.alloc(0, 0x2000, 70);
    let second = trace.free(0, 0x2000);
    trace.alloc(0, 0x3000, 1);
    trace.event(0, Event::FreeRefused { address: 0x2000, slot: second, result: 1, row: 4 });
    let report = trace.model().report(Instant::Peak).expect("a report");
    assert_eq!(report.end.expect("a device").ledger.rows.reserved, 71);
}

#[test]
fn doubts_are_counted() {
    let mut trace = Trace::new(&["odd"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.free(0, 0x1000);
    trace.alloc(0, 0x1000, 100);
    trace.alloc(0, 0x1000, 60);
    trace.event(
        0,
        Event::Tag { address: 0x5000, name: TextId::NONE, category: Category::Inputs, origin: Origin::Tagged },
    );
    trace.event(0, Event::BlockAlloc { address: 0x7000, bytes: 1, requested: 1, stream: 0, origin: Origin::Hooked });
    let twice = trace.free(0, 0x9000);
    trace.event(0, Event::FreeRefused { address: 0x9000, slot: twice, result: 1, row: 4 });
    let counters = Counters { dropped: 3, uncommitted: 2, faults: 1, ended: false };
    trace.entries.push(Entry::Counters(ProcessIndex(0), counters));
    let mut model = trace.model();
    model.journal_truncated("the last frame is torn");
    let report = model.report(Instant::Peak).expect("a report");
    let mut kinds: Vec<&str> = report.findings.iter().map(|finding| finding.detail.kind()).collect();
    kinds.sort_unstable();
    let expected = [
        "dropped_events",
        "faults",
        "free_of_unknown",
        "free_refused",
        "journal_truncated",
        "missed_free",
        "outside_blocks",
        "tag_of_unknown",
        "uncommitted_slots",
        "unknown_share",
    ];
    assert_eq!(kinds, expected);
    let unknown = report.findings.iter().find(|finding| finding.detail.kind() == "free_of_unknown").expect("one");
    assert!(unknown.message.ends_with("allocated: 1"), "{}", unknown.message);
    assert_eq!(report.dropped_events, 3);
}

/// A record of any kind with any words; small numbers among them, so that they meet.
fn any_record() -> impl Strategy<Value = memscope_wire::Record> {
    let kind = prop_oneof![0u32..70, any::<u32>()];
    let word = || prop_oneof![3 => 0u64..6, 1 => any::<u64>(), 1 => (0u64..8).prop_map(|small| u64::MAX - small)];
    (kind, 0u32..3, word(), [word(), word(), word(), word(), word(), word()])
        .prop_map(|(head, thread, ticks, words)| memscope_wire::Record { head, thread, ticks, words })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_journal_does_no_harm(
        batches in proptest::collection::vec((0u32..2, prop_oneof![0u64..40, any::<u64>()], proptest::collection::vec(any_record(), 0..40)), 0..5),
    ) {
        let mut model = Model::new();
        for (process, first_slot, records) in batches {
            model.apply(&Entry::Records { process: ProcessIndex(process), first_slot, records });
            model.progress();
        }
        for device in model.devices() {
            prop_assert!(device.rows.adds_up() && device.managed.adds_up());
        }
        let report = model.finish();
        memscope_core::report::text(&report, memscope_core::report::Style::Plain);
        compare_profile(&model, 1000)?;
    }
}

#[test]
fn device_rows_are_exact_only_where_the_driver_is_quiet() {
    let millisecond = 1_000_000;
    let mut trace = Trace::new(&["quiet"], None);
    trace.process(0, 7);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let uuid = crate::trace::UUID_TEXT;
    // Context of 30; the allocation of 100 comes at 10 ms, its free at 50 ms.
    let sample = |trace: &mut Trace, at: u64, used: u64| {
        trace.now = at * millisecond;
        trace.sample(uuid, 1 << 30, used, 5, &[(7, used)]);
    };
    sample(&mut trace, 5, 30);
    trace.now = 10 * millisecond;
    trace.alloc(0, 0x1000, 100);
    // Too near to the allocation, on both sides: NVML may or may not have seen it.
    trace.now = 9_500_000;
    trace.sample(uuid, 1 << 30, 130, 5, &[(7, 130)]);
    trace.now = 10_500_000;
    trace.sample(uuid, 1 << 30, 30, 5, &[(7, 30)]);
    sample(&mut trace, 30, 130);
    trace.now = 50 * millisecond;
    trace.free(0, 0x1000);
    trace.alloc(0, 0x2000, 60);
    // The process lives on without calls of the driver, and holds its memory until its end.
    sample(&mut trace, 80, 90);
    trace.ended(0);
    trace.now = 90 * millisecond;
    trace.end(0);
    let report = trace.model().report(Instant::Peak).expect("a report");
    let device = &report.devices[0];
    let telemetry = device.telemetry.expect("samples");
    assert_eq!((telemetry.samples, telemetry.exact_samples), (5, 3));
    let at_peak = device.ledger_at_peak.expect("a peak").device.expect("an exact sample");
    assert_eq!((at_peak.sample_time_s, at_peak.reserved, at_peak.unexplained), (0.03, 100, Some(30)));
    let at_end = device.ledger_at_end.device.expect("an exact sample");
    assert_eq!((at_end.reserved, at_end.this_process, at_end.unexplained), (60, Some(90), Some(30)));
    assert_eq!(device.ledger_at_end.rows.reserved, 60);
    assert_eq!(device.peak.device_used.expect("samples").bytes, 135);
}

#[test]
fn mapped_memory_lives_until_it_is_released_and_unmapped() {
    const MIB: u64 = 1 << 20;
    const AT: u64 = 0x7000_0000_0000;
    let mut trace = Trace::new(&["mapped"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let mut model = trace.model();
    // What one event leaves: reserved, live and cached bytes.
    let mut after = |event: Event| {
        trace.entries.clear();
        trace.event(0, event);
        trace.entries.iter().for_each(|entry| drop(model.apply(entry)));
        let rows = model.devices().next().expect("a device").rows;
        assert!(rows.adds_up());
        (rows.reserved / MIB, rows.live_bytes() / MIB, rows.cached / MIB)
    };
    let create = |handle| Event::Create {
        handle,
        bytes: 2 * MIB,
        measure: Measure::Told,
        device: 0,
        row: 1,
        memory: MemoryKind::Device,
    };
    let map = |address, handle| Event::Map { address, bytes: 2 * MIB, offset: 0, handle, row: 1 };
    let block =
        |address, bytes| Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin: Origin::Tagged };
    let free = |address| Event::BlockFree { address, origin: Origin::Tagged };
    assert_eq!(after(create(1)), (2, 2, 0), "it is there before it has an address");
    assert_eq!(after(map(AT, 1)), (2, 2, 0));
    assert_eq!(after(block(AT, MIB)), (2, 1, 1));
    assert_eq!(after(create(2)), (4, 3, 1));
    assert_eq!(after(map(AT + 2 * MIB, 2)), (4, 3, 1));
    assert_eq!(after(block(AT + MIB, 2 * MIB)), (4, 3, 1), "a block may lie in both");
    assert_eq!(after(Event::Release { handle: 1, row: 1 }), (4, 3, 1), "it is mapped still");
    assert_eq!(after(free(AT)), (4, 2, 2));
    assert_eq!(after(free(AT + MIB)), (4, 0, 4));
    assert_eq!(after(Event::Unmap { address: AT, bytes: 4 * MIB, row: 1 }), (2, 0, 2), "the second is not released");
    assert_eq!(after(Event::Release { handle: 2, row: 1 }), (0, 0, 0));
    assert_eq!(after(Event::Release { handle: 2, row: 1 }), (0, 0, 0));
    // A handle is given again, and never mapped; the process ends with it.
    assert_eq!(after(create(1)), (2, 2, 0));
    trace.entries.clear();
    trace.ended(0);
    trace.entries.iter().for_each(|entry| drop(model.apply(entry)));
    assert_eq!(model.devices().next().expect("a device").rows, EventRows::default());
}

#[test]
fn an_array_counts_until_it_is_destroyed_and_says_how_its_bytes_are_known() {
    const MIB: u64 = 1 << 20;
    let mut trace = Trace::new(&["arrays"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let memory = MemoryKind::Device;
    let create = |handle, bytes, measure| Event::Create { handle, bytes, measure, device: 0, row: 1, memory };
    trace.event(0, create(0xa0, 3 * MIB, Measure::Computed));
    trace.event(0, create(0xb0, 0, Measure::Unknown));
    trace.event(0, create(0xc0, MIB, Measure::Told));
    trace.event(0, Event::Release { handle: 0xc0, row: 2 });
    let model = trace.model();
    let rows = model.devices().next().expect("a device").rows;
    assert_eq!((rows.reserved, rows.live_bytes(), rows.cached), (3 * MIB, 3 * MIB, 0));
    let report = model.report(Instant::Peak).expect("a report");
    let untold = Detail::UntoldSizes { computed: 1, unknown: 1 };
    assert!(report.findings.iter().any(|finding| finding.detail == untold), "{:#?}", report.findings);
}

#[test]
fn a_context_ends_with_what_was_allocated_in_it() {
    const MIB: u64 = 1 << 20;
    const HOUSE: u64 = 0xc1;
    const GUEST: u64 = 0xc2;
    let mut trace = Trace::new(&["contexts"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let mut name = [0; 40];
    name[..26].copy_from_slice(b"cuDevicePrimaryCtxReset_v2");
    trace.event(0, Event::Function { row: 30, name });
    let alloc = |address, memory| Event::Alloc {
        address,
        bytes: MIB,
        requested: MIB,
        stream: 0,
        device: if memory == MemoryKind::Host { u32::MAX } else { 0 },
        row: 1,
        memory,
    };
    for (thread, context) in [(1, HOUSE), (2, GUEST)] {
        trace.event_of(0, thread, Event::Object { object: Object::Context, handle: context, device: 0, row: 2 });
        trace.event_of(0, thread, Event::Context { context, device: 0 });
        let memories = [MemoryKind::Device, MemoryKind::Managed, MemoryKind::Host, MemoryKind::Pool];
        for (place, memory) in (1..).zip(memories) {
            trace.event_of(0, thread, alloc(u64::from(thread) * 100 * MIB + place * MIB, memory));
        }
        let (memory, handle) = (MemoryKind::Device, 0xa0 + u64::from(thread));
        for (handle, measure) in [(handle, Measure::Computed), (handle + 8, Measure::Told)] {
            trace.event_of(0, thread, Event::Create { handle, bytes: MIB, measure, device: 0, row: 1, memory });
        }
    }
    // A block in what ends with its container.
    let (bytes, origin) = (MIB / 2, Origin::Tagged);
    trace.event(0, Event::BlockAlloc { address: 201 * MIB, bytes, requested: bytes, stream: 0, origin });
    let mut model = trace.model();
    // What one event leaves on the device and on the host, and how many allocations and blocks it ends.
    let mut after = |event: Event| {
        trace.entries.clear();
        trace.event_of(0, 3, event);
        let ended: usize = trace.entries.iter().map(|entry| model.apply(entry).ended.len()).sum();
        let rows = model.devices().next().expect("a device").rows;
        assert!(rows.adds_up());
        (rows.reserved / MIB, model.host().reserved / MIB, ended)
    };
    let end = |object, handle, row| Event::ObjectEnd { object, handle, row };
    assert_eq!(after(end(Object::Module, GUEST, 3)), (8, 2, 0), "a module of the same number is not the context");
    // Of the guest: device memory with its block, managed, pinned and an array; not its pool's and its handle's.
    assert_eq!(after(end(Object::Context, GUEST, 3)), (6, 1, 5));
    assert_eq!(after(end(Object::Context, GUEST, 3)), (6, 1, 0));
    assert_eq!(after(end(Object::Context, 0, 3)), (6, 1, 0), "no context is none");
    // A reset takes the pools of the device too.
    assert_eq!(after(end(Object::Context, HOUSE, 30)), (2, 0, 6));
}

#[test]
fn imports_are_in_no_sum_and_their_frees_are_no_riddle() {
    const MIB: u64 = 1 << 20;
    let mut trace = Trace::new(&["imports"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let elsewhere = |address, handle| Event::Elsewhere { address, bytes: 8 * MIB, handle, device: 0, row: 1 };
    let free = |address| Event::Free { address, stream: 0, row: 1 };
    let map = |address, handle| Event::Map { address, bytes: MIB, offset: 0, handle, row: 1 };
    let release = |handle| Event::Release { handle, row: 1 };
    // Opened twice, and closed twice.
    for event in [elsewhere(MIB, 0), elsewhere(MIB, 0), free(MIB), free(MIB)] {
        trace.event(0, event);
    }
    // A handle of another process, and a multicast object: mapped, given back, unmapped.
    trace.event(0, Event::Object { object: Object::Multicast, handle: 0xb1, device: u32::MAX, row: 1 });
    trace.event(0, elsewhere(0, 0xb0));
    for event in [map(64 * MIB, 0xb0), map(65 * MIB, 0xb1), release(0xb0), release(0xb1)] {
        trace.event(0, event);
    }
    trace.event(0, Event::Unmap { address: 64 * MIB, bytes: 2 * MIB, row: 1 });
    let report = trace.model().report(Instant::Peak).expect("a report");
    let kinds: Vec<_> = report.findings.iter().map(|finding| finding.detail.kind()).collect();
    assert!(!kinds.contains(&"free_of_unknown") && !kinds.contains(&"map_of_unknown"), "{kinds:?}");
    assert_eq!((report.totals.allocations, report.totals.bytes), (0, 0));
    // What is freed once too often is one.
    trace.event(0, free(MIB));
    trace.event(0, release(0xb1));
    trace.event(0, map(64 * MIB, 0xb0));
    let report = trace.model().report(Instant::Peak).expect("a report");
    let unknown = Detail::FreeOfUnknown { frees: 2, block_frees: 0 };
    assert!(report.findings.iter().any(|finding| finding.detail == unknown), "{:#?}", report.findings);
    let unknown = Detail::MapOfUnknown { mappings: 1 };
    assert!(report.findings.iter().any(|finding| finding.detail == unknown), "{:#?}", report.findings);
}

#[test]
fn memory_of_a_handle_lives_as_long_as_one_reference() {
    const MIB: u64 = 1 << 20;
    let mut trace = Trace::new(&["references"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    let memory = MemoryKind::Device;
    trace.event(0, Event::Create { handle: 7, bytes: MIB, measure: Measure::Told, device: 0, row: 1, memory });
    trace.event(0, Event::Retain { handle: 7, row: 1 });
    // Its own memory, imported by the process that exported it.
    trace.event(0, Event::Elsewhere { address: 0, bytes: 0, handle: 7, device: 0, row: 1 });
    let reserved = |trace: &Trace| trace.model().devices().next().expect("a device").rows.reserved / MIB;
    for left in [1, 1, 0] {
        trace.event(0, Event::Release { handle: 7, row: 1 });
        assert_eq!(reserved(&trace), left);
    }
}

#[test]
fn what_graphs_hold_is_one_allocation_of_a_device() {
    const MIB: u64 = 1 << 20;
    let mut trace = Trace::new(&["graphs"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.device(0, 1, UUIDS[1], 1 << 30);
    let held = |bytes, device| Event::GraphMemory { bytes, device, row: ALLOC_ROW };
    let reserved =
        |trace: &Trace| -> Vec<u64> { trace.model().devices().map(|device| device.rows.reserved / MIB).collect() };
    for (event, now) in [
        (held(3 * MIB, 0), [3, 0]),
        (held(5 * MIB, 1), [3, 5]),
        (held(4 * MIB, 0), [4, 5]),
        (held(0, 0), [0, 5]),
        (held(0, 0), [0, 5]),
        (held(2 * MIB, 0), [2, 5]),
    ] {
        trace.event(0, event);
        assert_eq!(reserved(&trace), now);
    }
    trace.ended(0);
    assert_eq!(reserved(&trace), [0, 0]);
}

#[test]
fn what_the_driver_makes_without_bytes_is_counted() {
    let mut trace = Trace::new(&["objects"], None);
    trace.process(0, 1);
    let made = |object, handle| Event::Object { object, handle, device: 0, row: 1 };
    let end = |object, handle| Event::ObjectEnd { object, handle, row: 1 };
    for event in [
        made(Object::Context, 1),
        made(Object::Module, 1),
        made(Object::Module, 2),
        end(Object::Module, 1),
        end(Object::Module, 1),
        made(Object::Module, 3),
        made(Object::Pool, 1),
    ] {
        trace.event(0, event);
    }
    let check = |report: Report| {
        let objects = &report.processes[0].objects;
        let objects: Vec<_> = objects.iter().map(|it| (it.object.as_str(), it.made, it.most)).collect();
        assert_eq!(objects, [("context", 1, 1), ("module", 3, 2), ("pool", 1, 1)]);
    };
    check(trace.model().report(Instant::Peak).expect("a report"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.mscope");
    profile::write(&trace.model(), &path, false).unwrap();
    check(Profile::open(&path).unwrap().report(Instant::Peak).unwrap());
}

/// The model of entries.
pub fn model_of(entries: &[Entry]) -> Model {
    let mut model = Model::new();
    entries.iter().for_each(|entry| drop(model.apply(entry)));
    model
}
