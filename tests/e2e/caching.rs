//! A caching allocator under the profiler: the ledger against the pool's own count.

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

const CATEGORIES: [&str; 6] = ["weights", "gradients", "activations", "optimizer", "inputs", "workspace"];

/// The numbers of the line in which the pool tells what it has.
fn pool(text: &str) -> [u64; 6] {
    let line = text.lines().find(|line| line.starts_with("caching pool:")).expect("the pool tells what it has");
    let numbers: Vec<u64> = line.split([' ', ',', ';']).filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn cached_and_live_differ_by_the_pools_own_count() {
    let place = Place::new();
    let record = |flags: &str| -> (String, Value) {
        let (output, report) = place.record(&format!(
            "--device h100-80gb --no-compute -- {} sample gpt --model gpt2-124m --steps 6 {flags}",
            env!("CARGO_BIN_EXE_memscope")
        ));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(report["dropped_events"], 0);
        (stdout(&output), report)
    };
    for workload in ["fixed", "varying"] {
        let (_, plain) = record(&format!("--workload {workload}"));
        for emptied in ["", "--empty-cache"] {
            let (text, report) = record(&format!("--workload {workload} --allocator caching {emptied}"));
            let [segments, reserved, granted, requested, most_reserved, most_requested] = pool(&text);
            println!(
                "{workload} {emptied}: live at most {most_requested}, reserved at most {most_reserved}, in the end {reserved} in \
                 {segments} segments, {granted} granted"
            );
            // In the end weights, gradients and two moments are alive.
            assert_eq!(requested, 16 * 124_439_808);
            let device = "/devices/0";
            assert_eq!(number(&report, &format!("{device}/peak/reserved/bytes")), most_reserved);
            assert_eq!(number(&report, &format!("{device}/peak/live/bytes")), most_requested);
            let ledger = format!("{device}/ledger_at_peak");
            let row = |name: &str| number(&report, &format!("{ledger}/{name}"));
            assert_eq!(row("live"), most_requested);
            assert_eq!(row("rounding"), 0, "the C API declares what was asked for");
            assert_eq!(row("reserved"), row("live") + row("rounding") + row("cached"));
            assert!(row("cached") > 0 && row("reserved") <= most_reserved);
            // Tags stay on blocks: no category knows that there is a cache.
            for category in CATEGORIES {
                let peak = format!("/category_peaks/{category}/bytes");
                assert_eq!(number(&report, &peak), number(&plain, &peak), "{category}");
            }
            assert_eq!(number(&report, "/category_peaks/unknown/bytes"), 0);
            assert_eq!(number(&report, "/peak/bytes"), number(&plain, "/peak/bytes"));
        }
    }
}
