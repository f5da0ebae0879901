//! What is shown equals the JSON report of the same moment.

use memscope_core::explorer::At;
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::profile::{self, Profile};
use memscope_core::report::{ByCategory, Instant, Report};
use memscope_gui::shared::Span;
use serde_json::Value;

use crate::sessions::{leaking, out_of_memory};
use crate::trace::Trace;
use crate::window;

/// The JSON report of a moment, of a profile that was written of the session.
pub fn report(trace: &Trace, instant: Instant) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.mscope");
    let mut model = memscope_core::allocation::Model::new();
    for entry in &trace.entries {
        model.apply(entry);
    }
    profile::write(&model, &path, false).expect("written");
    let report: Report = Profile::open(&path).expect("it opens").report(instant).expect("there is such a moment");
    serde_json::to_value(report).expect("JSON")
}

/// Exact bytes of a row of what "copy as text" gives.
fn row(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    let digits: String = line[name.len()..].chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

fn compare(trace: &Trace, at: At, instant: Instant) {
    let mut window = window::of(trace);
    window.state_mut().document_mut().expect("it is open").shared.cursor = at;
    window.run();
    let context = window.ctx.clone();
    let text = window.state_mut().text(&context).expect("text");
    let report = report(trace, instant);
    let snapshot = match report["at"] {
        Value::Null => &report["peak"],
        ref at => at,
    };
    for category in ["weights", "gradients", "activations", "optimizer", "inputs", "workspace", "unknown"] {
        assert_eq!(
            row(&text, category),
            snapshot["by_category"][category].as_u64().expect("bytes"),
            "{category} at {at:?}"
        );
    }
    let ledger = &snapshot["ledger"];
    for name in ["live", "rounding", "cached", "reserved"] {
        assert_eq!(row(&text, name), ledger[name].as_u64().expect("bytes"), "{name} at {at:?}");
    }
}

#[test]
fn the_moment_equals_the_report() {
    let second = 1_000_000_000;
    for trace in [leaking(), out_of_memory()] {
        compare(&trace, At::Peak, Instant::Peak);
        compare(&trace, At::Live, Instant::End);
        for step in 1..=3 {
            compare(&trace, At::Step(step), Instant::Step(step));
        }
        for time in [second / 2, second, 3 * second / 2, 2 * second + 123_456_789] {
            compare(&trace, At::Time(Nanoseconds(time)), Instant::Time(Nanoseconds(time)));
        }
    }
}

/// Of each part of the timeline the moment that it shows, by the report of that moment.
#[test]
fn the_timeline_equals_the_report() {
    let trace = leaking();
    let window = window::of(&trace);
    let answer = window.state().document().expect("it is open").answer();
    let whole = memscope_gui::view::whole(answer);
    let source = memscope_gui::views::timeline::Source::of(answer);
    let mut seen = 0;
    for part in 0..12 {
        let at = |part: u32| whole.at(f64::from(part) / 12.0);
        let column = source.column(Span::between(at(part), at(part + 1))).expect("something is known");
        let time = column.time.expect("the exact span is there");
        let report = report(&trace, Instant::Time(Nanoseconds(time)));
        let snapshot = &report["at"];
        let Some(ledger) = snapshot["ledger"].as_object() else {
            assert_eq!(column.rows.live_bytes(), 0, "before the first allocation there is no snapshot");
            continue;
        };
        for (name, bytes) in ByCategory::from_numbers(column.rows.live).named() {
            assert_eq!(snapshot["by_category"][name].as_u64(), Some(bytes), "{name} at {time}");
        }
        let rows = &column.rows;
        for (name, bytes) in [("rounding", rows.rounding), ("cached", rows.cached), ("reserved", rows.reserved)] {
            assert_eq!(ledger[name].as_u64(), Some(bytes), "{name} at {time}");
        }
        assert!(column.reserved >= rows.reserved);
        seen += 1;
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn an_out_of_memory_error_equals_its_finding() {
    let trace = out_of_memory();
    let mut window = window::of(&trace);
    let context = window.ctx.clone();
    let text = window.state_mut().text(&context).expect("text");
    let report = report(&trace, Instant::Peak);
    let finding = report["findings"].as_array().expect("findings").iter().find(|finding| finding["kind"] == "oom");
    let finding = finding.expect("the error");
    for category in ["weights", "activations", "optimizer", "unknown"] {
        assert_eq!(row(&text, category), finding["by_category"][category].as_u64().expect("bytes"), "{category}");
    }
    assert_eq!(row(&text, "live"), finding["live"].as_u64().expect("bytes"));
}
