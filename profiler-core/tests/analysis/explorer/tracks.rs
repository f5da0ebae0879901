//! Telemetry over time, and a lane for each device and process, with figures worked out by hand.

use memscope_core::explorer::{Query, Target, TracksQuery};
use memscope_core::journal::entry::{Entry, Nanoseconds};
use memscope_wire::Category;

use super::ended::explorer;
use super::live::FRESH;
use crate::deeds::UUIDS;
use crate::trace::Trace;

/// As NVML spells the first device.
const FIRST: &str = "53494d55-4c41-5445-442d-4750552d3030";

fn sample(trace: &mut Trace, at: u64, used: u64, utilization: Option<u32>, processes: &[(u32, u64)]) {
    trace.now = at;
    trace.sample(FIRST, 1 << 30, used, 5, processes);
    if let Some(Entry::Telemetry(sample)) = trace.entries.last_mut() {
        sample.devices[0].utilization = utilization;
    }
}

fn query(range: std::ops::Range<u64>, parts: usize) -> Query {
    let range = Nanoseconds(range.start)..Nanoseconds(range.end);
    Query { tracks: Some(TracksQuery { range, parts }), ..Query::default() }
}

#[test]
fn each_part_of_a_span_has_one_sample_at_most_and_the_last_before_it_comes_first() {
    let mut trace = Trace::new(&["train"], None);
    trace.process(0, 4242);
    trace.device(0, 0, UUIDS[0], 1 << 30);
    trace.now = 10;
    trace.tagged(0, 0x1000_0000, 700, Category::Weights, "weight");
    for (at, used, utilization) in [
        (100, 800, Some(1)),
        (200, 800, Some(2)),
        (310, 900, Some(90)),
        (320, 850, None),
        (410, 800, None),
        (900, 800, Some(7)),
    ] {
        sample(&mut trace, at, used, utilization, &[(4242, used)]);
    }
    trace.now = 1000;
    trace.end(0);
    let mut explorer = explorer(&trace.entries, FRESH);
    // Parts of 100 ns.
    let tracks = explorer.answer(&query(300..800, 5)).tracks.expect("asked for");
    let points: Vec<_> = tracks.devices[0].samples.iter().map(|point| (point.time.0, point.utilization)).collect();
    assert_eq!(points, [(200, Some(2)), (320, Some(90)), (410, None)]);
    let rows: Vec<_> = tracks.devices[0].rows.iter().map(|rows| (rows.rows.time.0, rows.rows.device_used)).collect();
    // What firmware reserves is in use, too: 5 more.
    assert_eq!(rows, [(200, 805), (310, 905), (410, 805)]);
    assert!(tracks.lanes.is_empty(), "of one device and one process");
    let none = explorer.answer(&query(10..20, 5)).tracks.expect("asked for");
    assert!(none.devices[0].samples.is_empty() && none.devices[0].rows.is_empty());
    assert_eq!(explorer.answer(&Query::default()).tracks, None);
}

#[test]
fn several_devices_and_processes_have_lanes() {
    let mut trace = Trace::new(&["train"], None);
    for process in 0..2u32 {
        trace.process(process, 4242 + process);
        // CUDA counts the devices of each process from 0.
        trace.device(process, 0, UUIDS[process as usize], 1 << 30);
        trace.now += 10;
        trace.tagged(process, 0x1000_0000, 700 + u64::from(process), Category::Weights, "weight");
    }
    let mut explorer = explorer(&trace.entries, FRESH);
    let lanes = explorer.answer(&query(0..100, 5)).tracks.expect("asked for").lanes.clone();
    let most = |lane: &memscope_core::explorer::Lane| lane.series.buckets.iter().map(|bucket| bucket.live[1]).max();
    let lanes: Vec<_> = lanes.iter().map(|lane| (lane.target, most(lane))).collect();
    let [first, second] = [Some(700), Some(701)];
    let processes = [(Target::Process(0), first), (Target::Process(1), second)];
    assert_eq!(lanes, [&[(Target::Device(0), first), (Target::Device(1), second)][..], &processes].concat());
}
