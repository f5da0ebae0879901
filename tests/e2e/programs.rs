//! Whole programs with more than one process or device, and with an allocator of their own.

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

const MIB: u64 = 1 << 20;

#[test]
fn processes_and_devices_are_told_apart() {
    let place = Place::new();
    let program = place.compile_linked("ranks");
    let (output, report) = place.record(&format!("--device 1GiB --devices 2 -- {}", program.display()));
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    let devices = report["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    assert_ne!(devices[0]["uuid"], devices[1]["uuid"]);
    let mut peaks: Vec<_> = devices.iter().map(|device| number(device, "/peak/live/bytes")).collect();
    peaks.sort();
    assert_eq!(peaks, [8 * MIB, 16 * MIB]);
    // Rank 1 alone makes the largest peak, on its own device.
    assert_eq!(number(&report, "/peak/bytes"), 16 * MIB);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 3, "two ranks and the program after exec: {processes:#?}");
    let after_exec: Vec<_> = processes.iter().filter(|process| process["exec_count"] == 1).collect();
    assert_eq!(after_exec.len(), 1);
    assert!(processes.iter().any(|p| p["pid"] == after_exec[0]["pid"] && p["exec_count"] == 0 && p["rank"] == 0));
    assert!(processes.iter().any(|process| process["rank"] == 1));
    assert_eq!(number(&report, "/totals/allocations"), 3);
}

/// benches/soak/run burst is the same with 64 processes and 1,000,000 events each.
#[test]
fn of_many_processes_at_once_nothing_is_lost() {
    const PROCESSES: u64 = 16;
    const BLOCKS: u64 = 10_000;
    let place = Place::new();
    let program = place.compile("soak", &[]);
    let (output, report) = place.record(&format!("-- {} {PROCESSES} {BLOCKS} 0", program.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // A block and its free are two events.
    assert_eq!(number(&report, "/totals/blocks"), PROCESSES * BLOCKS);
    assert_eq!(number(&report, "/dropped_events"), 0);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len() as u64, PROCESSES, "the parent records nothing");
}

#[test]
fn blocks_inside_a_container_add_up() {
    let place = Place::new();
    let program = place.compile_linked("suballocator");
    let (output, report) = place.record(&format!("--device 1GiB -- {}", program.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    // The peak of live memory: 10 + 20 MiB of blocks and the leaf.
    assert_eq!(number(&report, "/peak/bytes"), 32 * MIB);
    assert_eq!(report["peak"]["of"], "live");
    let expected = [("weights", 10), ("activations", 20), ("inputs", 2), ("gradients", 0), ("unknown", 0)];
    for (category, mebibytes) in expected {
        assert_eq!(number(&report, &format!("/peak/by_category/{category}")), mebibytes * MIB, "{category}");
    }
    let ledger = &report["devices"][0]["ledger_at_peak"];
    assert_eq!(number(ledger, "/reserved"), 66 * MIB);
    assert_eq!(number(ledger, "/live"), 32 * MIB);
    assert_eq!(number(ledger, "/rounding"), 0);
    assert_eq!(number(ledger, "/cached"), 34 * MIB);
    // Tagged a step after its birth, and a gradient for its whole life.
    assert_eq!(number(&report, "/category_peaks/gradients/bytes"), 5 * MIB);
    assert_eq!(number(&report, "/category_peaks/gradients/step"), 2);
    assert_eq!(number(&report, "/category_peaks/unknown/bytes"), 0);
    let scopes: Vec<_> =
        report["peak"]["top_scopes"].as_array().unwrap().iter().map(|scope| scope["scope"].clone()).collect();
    assert!(scopes.contains(&Value::from("encoder/layer 0")), "{scopes:?}");
    let steps: Vec<_> = report["steps"].as_array().unwrap().iter().map(|step| number(step, "/peak/bytes")).collect();
    assert_eq!(steps, [32 * MIB, 32 * MIB, 17 * MIB]);
}

#[test]
fn what_ends_with_its_context_is_no_more() {
    let place = Place::new();
    let program = place.compile_linked("ends");
    let (output, report) = place.record(&format!("--device 1GiB -- {}", program.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // 1 MiB, 1024 × 1024 floats, and levels of 512 × 512, 256 × 256 and 128 × 128 floats.
    let arrays = MIB + 4 * MIB + (MIB + MIB / 4 + MIB / 16);
    let stages = [
        ("arrays", arrays),
        ("second", arrays + 8 * MIB + 4 * MIB),
        ("destroyed", arrays),
        ("pool", arrays + 16 * MIB),
        ("reset", 0),
        ("end", 3 * MIB),
    ];
    let driver: String = stages.iter().map(|(stage, used)| format!("{stage} 0 {used}\n")).collect();
    assert_eq!(stdout(&output), driver, "what the simulated driver has in use");
    assert_eq!(number(&report, "/devices/0/peak/reserved/bytes"), arrays + 16 * MIB);
    assert_eq!(number(&report, "/devices/0/ledger_at_end/reserved"), 3 * MIB);
    assert_eq!((number(&report, "/totals/allocations"), number(&report, "/totals/frees")), (8, 0));
    assert_eq!(number(&report, "/host/peak/bytes"), 2 * MIB);
    let objects = &report["processes"][0]["objects"];
    assert_eq!(objects[0], serde_json::json!({"object": "context", "made": 4, "most": 2}));
}

#[test]
fn what_a_launch_of_a_graph_takes_is_counted() {
    let place = Place::new();
    let program = place.compile_linked("graphs");
    let (output, report) = place.record(&format!("--device 1GiB -- {}", program.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Nodes of 4 MiB, freed by the graph, and of 2 MiB, which is not: 4 MiB serve both.
    let stages = [
        ("made", 0, 0),
        ("launched", 0, 4),
        ("again", 1, 4),
        ("trimmed", 0, 2),
        ("freed", 0, 2),
        ("trimmed", 0, 0),
        ("launched", 0, 4),
        // Each launch has memory at the node's address anew.
        ("freed", 0, 4),
        ("launched", 0, 4),
        ("freed", 0, 4),
    ];
    let driver: String =
        stages.iter().map(|(stage, result, used)| format!("{stage} {result} {}\n", used * MIB)).collect();
    assert_eq!(stdout(&output), driver, "what the simulated driver has in use");
    assert_eq!(number(&report, "/devices/0/peak/reserved/bytes"), 4 * MIB);
    assert_eq!(number(&report, "/devices/0/ledger_at_end/reserved"), 4 * MIB);
    // 4 MiB, 2 MiB after the first trim, 4 MiB again.
    assert_eq!((number(&report, "/totals/allocations"), number(&report, "/totals/bytes")), (3, 10 * MIB));
    let kinds: Vec<_> = report["findings"].as_array().unwrap().iter().map(|finding| finding["kind"].clone()).collect();
    assert!(!kinds.contains(&"free_of_unknown".into()), "{kinds:?}");
}

#[test]
fn what_pools_keep_is_counted_and_is_a_line_of_its_own() {
    let place = Place::new();
    let program = place.compile_linked("pools");
    let (output, report) = place.record(&format!("--device 1GiB -- {}", program.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stages = [
        ("allocated", 64),
        // The default pool keeps what was freed, and gives of it.
        ("freed", 64),
        ("again", 64),
        // Another pool, which keeps 24 MiB.
        ("own", 88),
        ("own freed", 88),
        // The default pool is left 32 MiB, 24 of which are in use.
        ("trimmed", 56),
    ];
    let driver: String = stages.iter().map(|(stage, used)| format!("{stage} 0 {}\n", used * MIB)).collect();
    assert_eq!(stdout(&output), driver, "what the simulated driver has in use");
    let ledger = &report["devices"][0]["ledger_at_end"];
    let rows = ["reserved", "live", "cached", "pools"].map(|row| number(ledger, &format!("/{row}")));
    assert_eq!(rows, [56 * MIB, 24 * MIB, 32 * MIB, 32 * MIB], "{ledger:#}");
    assert_eq!(number(&report, "/devices/0/peak/reserved/bytes"), 88 * MIB);
    assert_eq!(number(&report, "/devices/0/peak/live/bytes"), 64 * MIB);
    assert_eq!((number(&report, "/totals/allocations"), number(&report, "/totals/frees")), (4, 2));
    let text = stdout(&place.run("report p.mscope --at end"));
    assert!(text.contains("pools' reserve"), "{text}");
    let again: serde_json::Value =
        serde_json::from_slice(&place.run("report p.mscope --format json").stdout).expect("JSON");
    assert_eq!(again["devices"][0]["ledger_at_end"], *ledger, "the profile says the same");
}

#[test]
fn nvtx_ranges_are_scopes_phases_and_steps_and_say_what_memory_is_for() {
    let place = Place::new();
    let program = place.compile_linked("ranges");
    let (output, report) = place.record(&format!("--device 1GiB -- {} train", program.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // At the peak, in the second forward pass: weights, which no range names, the layer's two, and the optimizer's state.
    let expected = [("unknown", 8), ("activations", 4), ("workspace", 2), ("optimizer", 16), ("weights", 0)];
    for (category, mebibytes) in expected {
        assert_eq!(number(&report, &format!("/peak/by_category/{category}")), mebibytes * MIB, "{category}");
    }
    assert_eq!(number(&report, "/peak/bytes"), 30 * MIB);
    assert_eq!(report["peak"]["phase"], "forward");
    assert_eq!(report["peak"]["scope"], "step 11/Forward/layer");
    let steps: Vec<_> = report["steps"].as_array().unwrap().iter().map(|step| number(step, "/step")).collect();
    assert_eq!(steps, [10, 11, 12]);
    // A library that the user names is the one that is told.
    let mut command = place.memscope();
    let output = command
        .args(["run", "-q", "-f", "--device", "1GiB", "-o", "p.mscope", "--json", "r.json", "--"])
        .arg(&program)
        .arg("train")
        .env("NVTX_INJECTION64_PATH", "/nowhere/another-profiler.so")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&std::fs::read(place.path("r.json")).unwrap()).unwrap();
    assert_eq!(number(&report, "/peak/by_category/unknown"), 30 * MIB);
}
