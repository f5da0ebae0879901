//! The JSON report: its schema is the one in docs/, and reports are valid by it.

use memscope_core::report::{Instant, schema};
use serde_json::Value;

use crate::reports::out_of_memory;
use crate::trace::training;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/report.schema.json");

#[test]
fn the_checked_in_schema_is_the_one_of_the_code() {
    let text = schema();
    if std::env::var_os("MEMSCOPE_UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, &text).expect("the schema is written");
    }
    let checked_in = std::fs::read_to_string(PATH).expect("docs/report.schema.json is there");
    assert!(text == checked_in, "docs/report.schema.json is out of date: run this test with MEMSCOPE_UPDATE_SCHEMA=1");
}

#[test]
fn the_checked_in_schema_of_a_difference_is_the_one_of_the_code() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/diff.schema.json");
    let text = memscope_core::diff::schema();
    if std::env::var_os("MEMSCOPE_UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, &text).expect("the schema is written");
    }
    let checked_in = std::fs::read_to_string(PATH).expect("docs/diff.schema.json is there");
    assert!(text == checked_in, "docs/diff.schema.json is out of date: run this test with MEMSCOPE_UPDATE_SCHEMA=1");
}

#[test]
fn reports_are_valid() {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(PATH).expect("read")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for trace in [training(), out_of_memory(), crate::trace::Trace::new(&["nothing"], None)] {
        for instant in [Instant::Peak, Instant::End] {
            let report = trace.model().report(instant).expect("a report");
            let value = serde_json::to_value(&report).expect("JSON");
            let wrong: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }
    let mut value = serde_json::to_value(training().model().report(Instant::Peak).expect("a report")).expect("JSON");
    value["peak"]["bytes"] = Value::from(-1);
    assert!(!validator.is_valid(&value), "the schema refuses what is wrong");
}

#[test]
fn the_promised_keys_are_there() {
    let value = serde_json::to_value(training().model().report(Instant::Peak).expect("a report")).expect("JSON");
    let keys = [
        "/schema_version",
        "/command/0",
        "/exit_status",
        "/duration_s",
        "/simulated",
        "/devices/0/uuid",
        "/devices/0/name",
        "/devices/0/capacity",
        "/devices/0/peak/live/bytes",
        "/devices/0/peak/reserved/time_s",
        "/devices/0/peak/device_used/step",
        "/devices/0/peak/device_used_exact",
        "/devices/0/ledger_at_peak/reserved",
        "/devices/0/ledger_at_end/cached",
        "/processes/0/pid",
        "/peak/device",
        "/peak/of",
        "/peak/bytes",
        "/peak/time_s",
        "/peak/step",
        "/peak/by_category/weights",
        "/peak/by_category/gradients",
        "/peak/by_category/activations",
        "/peak/by_category/optimizer",
        "/peak/by_category/inputs",
        "/peak/by_category/workspace",
        "/peak/by_category/unknown",
        "/peak/top_groups/0/name",
        "/peak/top_scope_groups/0/scope",
        "/peak/top_scopes/0/scope",
        "/peak/top_allocations/0/bytes",
        "/category_peaks/weights/bytes",
        "/category_peaks/unknown/step",
        "/end/bytes",
        "/steps/0/peak/bytes",
        "/steps/0/by_category/weights",
        "/totals/allocations",
        "/totals/frees",
        "/totals/bytes",
        "/dropped_events",
        "/findings/0/kind",
    ];
    for key in keys {
        assert!(value.pointer(key).is_some(), "{key}");
    }
    assert_eq!(value["schema_version"], 1);
    assert_eq!(value["peak"]["of"], "live");
    assert_eq!(value["simulated"], true);
}
