//! The JSON document: its schema is the one in docs/, and views are valid by it. And the same view as text.

use memscope_core::monitor::{MonitorView, schema};
use memscope_core::report::{ByCategory, Rows};
use serde_json::Value;

use crate::synthetic::{GIB, MIB, Synthetic};
use crate::{INTERVAL, complete, until};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/top.schema.json");

/// The synthetic machine with three processes that cannot be looked up, so that nothing differs from run to run.
fn view() -> MonitorView {
    let synthetic = Synthetic::new();
    synthetic.put("processes", &format!("0 4194304 {GIB} C -\n0 4194305 - B -\n7 4194306 {MIB} C 1\n"));
    let monitor = synthetic.watch(INTERVAL);
    let mut view = (*until(&monitor, complete)).clone();
    view.devices.iter_mut().for_each(|device| device.age_ms = Some(0));
    (view.sessions, view.sessions_behind) = (Some(1), Some(0));
    let by_category = ByCategory { weights: 300 * MIB, optimizer: 600 * MIB, ..ByCategory::default() };
    let live = 900 * MIB;
    view.processes[0].ledger =
        Some(Rows { reserved: 1000 * MIB, live, by_category, rounding: 36 * MIB, cached: 64 * MIB, pools: 0 });
    view.processes[0].user = Some("ada".into());
    view.processes[0].cpu_percent = Some(99.5);
    view.processes[0].host_memory = Some(3 * GIB);
    view.processes[0].command = Some("python train.py --model gpt".into());
    view
}

#[test]
fn the_checked_in_schema_is_the_one_of_the_code() {
    let text = schema();
    if std::env::var_os("MEMSCOPE_UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, &text).expect("the schema is written");
    }
    let checked_in = std::fs::read_to_string(PATH).expect("docs/top.schema.json is there");
    assert!(text == checked_in, "docs/top.schema.json is out of date: run this test with MEMSCOPE_UPDATE_SCHEMA=1");
}

#[test]
fn views_are_valid_and_come_back_as_they_were() {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(PATH).expect("read")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for view in [MonitorView::default(), view()] {
        let mut value = serde_json::to_value(&view).expect("JSON");
        let wrong: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(serde_json::from_value::<MonitorView>(value.clone()).expect("a view"), view);
        value["devices"] = Value::from(-1);
        assert!(!validator.is_valid(&value), "the schema refuses what is wrong");
    }
}

#[test]
fn what_is_not_known_is_null() {
    let value = serde_json::to_value(view()).expect("JSON");
    for key in ["/devices/3/temperature_celsius", "/devices/3/pcie_receive", "/devices/7/utilization_percent"] {
        assert_eq!(value.pointer(key), Some(&Value::Null), "{key}");
    }
    assert_eq!(value.pointer("/processes/1/memory_used"), Some(&Value::Null));
    assert_eq!(value.pointer("/processes/0/ledger/by_category/weights"), Some(&Value::from(300 * MIB)));
    assert_eq!(value.pointer("/processes/2/instance"), Some(&Value::from(1)));
}

#[test]
fn the_text_names_everything() {
    insta::assert_snapshot!("text", view().text());
}
