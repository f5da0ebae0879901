//! Memory beyond plain allocations: what the driver's own rows tell of it, mappings, arrays, contexts, imports, handles and graphs. Each by
//! hand.

use memscope_core::findings::Detail;
use memscope_core::ledger::EventRows;
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Report};
use memscope_wire::{Event, Measure, MemoryKind, Object, Origin};

use crate::deeds::UUIDS;
use crate::trace::{ALLOC_ROW, Trace};

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
    // A refused free gives nothing back.
    trace.event(0, elsewhere(3 * MIB, 0));
    let slot = trace.event(0, free(3 * MIB));
    trace.event(0, Event::FreeRefused { address: 3 * MIB, slot, result: 1, row: 1 });
    trace.event(0, free(3 * MIB));
    // The memory of a node may be freed after each launch.
    trace.event(0, Event::GraphNode { address: 4 * MIB, bytes: MIB, device: 0, row: 1 });
    for event in [free(4 * MIB), free(4 * MIB)] {
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
fn what_a_pool_keeps_is_cached_and_is_no_allocation() {
    const MIB: u64 = 1 << 20;
    let mut trace = Trace::new(&["pools"], None);
    trace.process(0, 1);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.event(0, Event::Object { object: Object::Pool, handle: 0xb0, device: 0, row: 1 });
    // What two pools keep, in MiB, and what is cached on the device in all.
    for (pool, bytes, cached) in [(0xa0, 48, 48), (0xb0, 8, 56), (0xa0, 40, 48), (0xa0, 0, 8), (0xa0, 0, 8)] {
        trace.event(0, Event::PoolReserve { pool, bytes: bytes * MIB, device: 0, row: 1 });
        let model = trace.model();
        let rows = model.devices().next().expect("a device").rows;
        assert!(rows.adds_up());
        assert_eq!((rows.reserved, rows.live_bytes()), (cached * MIB, 0), "{pool:x}");
        assert_eq!((rows.cached, rows.pools), (cached * MIB, cached * MIB), "{pool:x}");
    }
    let report = trace.model().report(Instant::Peak).expect("a report");
    assert_eq!((report.totals.allocations, report.totals.frees, report.totals.bytes), (0, 0, 0));
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
