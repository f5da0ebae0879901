//! Memory that counts elsewhere than where it is used: nodes of captured graphs, and imports of another process, pool, handle or
//! interface. Every figure is the program's own arithmetic, and what it was told by the simulated driver.

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

const MIB: u64 = 1 << 20;

/// Findings that say that something was met and could not be accounted for.
const DOUBTS: [&str; 8] = [
    "missed_free",
    "free_of_unknown",
    "tag_of_unknown",
    "map_of_unknown",
    "outside_blocks",
    "dropped_events",
    "faults",
    "not_simulated",
];

/// Runs a program of tests/programs on simulated devices; what it printed must be these lines. NVML is asked often enough to see what
/// the program holds while it waits.
#[track_caller]
fn run(name: &str, devices: u64, lines: &[String]) -> (Place, Value) {
    let place = Place::new();
    let program = place.compile_linked(name);
    let arguments = format!("--device 1GiB --devices {devices} --interval 20 -- {}", program.display());
    let (output, report) = place.record(&arguments);
    assert_eq!(
        stdout(&output).lines().collect::<Vec<_>>(),
        lines,
        "what the simulated driver answers: {}",
        stderr(&output)
    );
    assert_eq!(output.status.code(), Some(0), "the program's own checks: {}", stderr(&output));
    let findings = report["findings"].as_array().expect("findings");
    let doubts: Vec<_> =
        findings.iter().filter(|one| DOUBTS.contains(&one["kind"].as_str().expect("a kind"))).collect();
    assert!(doubts.is_empty(), "{doubts:#?}");
    assert_eq!(left(&place, &report), 0, "nothing is left once the program has freed all");
    (place, report)
}

/// Bytes that are live at the very end.
fn left(place: &Place, report: &Value) -> u64 {
    let seconds = report["duration_s"].as_f64().expect("a duration");
    let output = place.run(&format!("report p.mscope --at time:{seconds} --format json"));
    let at: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    number(&at, "/at/bytes")
}

fn line(stage: &str, result: i32, figures: &[u64]) -> String {
    let figures: Vec<String> = figures.iter().map(u64::to_string).collect();
    format!("{stage} {result} {}", figures.join(" "))
}

/// A device's peak of live and of reserved memory, and the row of the whole device at its peak: what the driver says is in use is what
/// was recorded.
#[track_caller]
fn assert_device(report: &Value, device: usize, bytes: u64) {
    let at = |path: &str| number(report, &format!("/devices/{device}/{path}"));
    assert_eq!((at("peak/live/bytes"), at("peak/reserved/bytes")), (bytes, bytes), "{:#}", report["devices"]);
    let row = ["reserved", "this_process", "device_used", "unexplained"];
    let row = row.map(|name| at(&format!("ledger_at_peak/device/{name}")));
    assert_eq!(row, [bytes, bytes, bytes, 0], "{:#}", report["devices"]);
}

/// Peaks of reserved memory of the processes: of the first that the program is, and of its child.
fn peaks(report: &Value) -> [u64; 2] {
    let processes = report["processes"].as_array().expect("processes");
    let (parents, children): (Vec<_>, Vec<_>) =
        processes.iter().partition(|one| !processes.iter().any(|other| other["pid"] == one["parent_pid"]));
    [parents, children].map(|one| {
        assert_eq!(one.len(), 1, "{processes:#?}");
        number(one[0], "/peak_reserved")
    })
}

/// Names of the objects that a process made, and how many.
fn objects(process: &Value) -> Vec<(String, u64)> {
    let objects = process["objects"].as_array().expect("objects");
    objects.iter().map(|one| (one["object"].as_str().expect("a name").to_owned(), number(one, "/made"))).collect()
}

#[test]
fn what_a_capture_allocates_is_memory_of_its_graph() {
    // In use, and of that used and kept for graphs. The graph's nodes: 4 and 2 MiB, the 4 freed, 1 MiB, freed.
    let stages = [
        ("before", 0, [3, 0, 0]),
        ("captured", 0, [3, 0, 0]),
        ("beside", 0, [8, 0, 0]),
        ("ready", 0, [8, 0, 0]),
        ("second", 801, [8, 0, 0]),
        ("launched", 0, [8 + 6, 2, 6]),
        ("again", 1, [14, 2, 6]),
        ("freed", 0, [14, 0, 6]),
        ("trimmed", 0, [8, 0, 0]),
        ("own", 1, [8, 0, 0]),
        ("spoiled", 901, [8, 0, 0]),
        ("unsafe", 900, [8, 0, 0]),
        ("spoiled", 901, [8, 0, 0]),
        ("relaxed", 0, [9, 0, 0]),
        ("launched", 0, [8 + 6, 2, 6]),
        ("freed", 0, [14, 0, 6]),
        ("trimmed", 0, [8, 0, 0]),
        ("end", 0, [0, 0, 0]),
    ];
    let lines = stages.map(|(stage, result, figures)| line(stage, result, &figures));
    let (_place, report) = run("captured", 1, &lines);
    assert_device(&report, 0, 14 * MIB);
    // 3 and 5 MiB in the streams' order, 1 MiB by itself, and twice the 6 MiB of the graph.
    let totals = ["allocations", "frees", "bytes"].map(|name| number(&report, &format!("/totals/{name}")));
    assert_eq!(totals, [5, 5, (3 + 5 + 1 + 2 * 6) * MIB]);
    assert_eq!(objects(&report["processes"][0]), [("context".to_owned(), 1), ("graph".to_owned(), 1)]);
}

#[test]
fn memory_that_is_opened_by_a_handle_counts_in_its_owner() {
    // 6 MiB, twice 1536 bytes and 1 MiB of a pool; the child's own 2 MiB.
    let parents = 7 * MIB + 2 * 1536;
    let both = parents + 2 * MIB;
    let stages = [
        ("named", 0, parents),
        ("of a pool", 1, parents),
        ("own", 201, parents),
        ("without flag", 1, both),
        ("opened", 0, both),
        ("again", 0, both),
        ("freed", 1, both),
        ("closed", 0, both),
        ("closed", 0, both),
        ("closed", 1, both),
        ("closed", 0, both),
        ("end", 0, 0),
    ];
    let (_place, report) = run("interprocess", 1, &stages.map(|(stage, result, used)| line(stage, result, &[used])));
    assert_device(&report, 0, both);
    assert_eq!(peaks(&report), [parents, 2 * MIB]);
    assert_eq!(number(&report, "/totals/allocations"), 6);
}

#[test]
fn memory_of_a_pool_of_another_process_counts_in_its_owner() {
    let stages = [
        ("of a usual pool", 1, 6),
        ("of its memory", 1, 6),
        ("shared", 0, 6),
        ("taken in", 0, 7),
        ("allocated", 1, 7),
        ("pointed", 0, 7),
        ("freed", 0, 7),
        ("freed", 1, 7),
        ("end", 0, 0),
    ];
    let (_place, report) = run("shared_pool", 1, &stages.map(|(stage, result, used)| line(stage, result, &[used])));
    assert_device(&report, 0, 7 * MIB);
    assert_eq!(peaks(&report), [6 * MIB, MIB]);
    assert_eq!(number(&report, "/totals/allocations"), 3);
    for process in report["processes"].as_array().expect("processes") {
        assert_eq!(objects(process), [("context".to_owned(), 1), ("pool".to_owned(), 1)], "made here, taken in there");
    }
}

#[test]
fn memory_that_two_processes_map_counts_in_its_maker() {
    let stages = [
        ("shared", 0, 4),
        ("foreign", 1, 5),
        ("taken in", 0, 5),
        ("mapped", 0, 5),
        ("released", 0, 5),
        ("unmapped", 0, 5),
        ("end", 0, 0),
    ];
    let (_place, report) = run("shared_handle", 1, &stages.map(|(stage, result, used)| line(stage, result, &[used])));
    assert_device(&report, 0, 5 * MIB);
    assert_eq!(peaks(&report), [4 * MIB, MIB]);
    assert_eq!(number(&report, "/totals/allocations"), 2);
}

#[test]
fn memory_of_another_interface_counts_nowhere() {
    let stages = [
        ("too small", 1, 5),
        ("taken in", 0, 5),
        ("beyond", 1, 5),
        ("mapped", 0, 5),
        ("again", 0, 5),
        ("freed", 0, 5),
        ("freed", 1, 5),
        ("freed", 0, 5),
        ("gone", 0, 5),
        ("end", 0, 0),
    ];
    let (_place, report) = run("external", 1, &stages.map(|(stage, result, used)| line(stage, result, &[used])));
    assert_device(&report, 0, 5 * MIB);
    assert_eq!(number(&report, "/totals/allocations"), 1);
    assert_eq!(objects(&report["processes"][0]), [("context".to_owned(), 1), ("external".to_owned(), 1)]);
}

#[test]
fn memory_that_is_bound_to_a_multicast_object_counts_on_its_device() {
    let stages = [
        ("made", 0, [4, 8]),
        ("joined", 0, [4, 8]),
        ("full", 1, [4, 8]),
        ("bound", 0, [4, 8]),
        ("beyond", 1, [4, 8]),
        ("mapped", 0, [4, 8]),
        ("unmapped", 0, [4, 8]),
        ("unbound", 0, [4, 8]),
        ("not bound", 1, [4, 8]),
        ("gone", 0, [4, 8]),
        ("end", 0, [0, 0]),
    ];
    let lines = stages.map(|(stage, result, figures)| line(stage, result, &figures));
    let (_place, report) = run("multicast", 2, &lines);
    assert_device(&report, 0, 4 * MIB);
    assert_device(&report, 1, 8 * MIB);
    assert_eq!(number(&report, "/totals/allocations"), 2);
    assert_eq!(objects(&report["processes"][0]), [("context".to_owned(), 2), ("multicast".to_owned(), 1)]);
}
