//! What is shown equals the JSON report of the same moment.

use memscope_core::explorer::At;
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::profile::{self, Profile};
use memscope_core::report::{ByCategory, Instant, Report};
use memscope_gui::shared::Span;
use serde_json::Value;

use crate::flame::with_lines;
use crate::sessions::{GIB, leaking, out_of_memory};
use crate::trace::Trace;
use crate::window::{self, Window, click, heard};

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

/// The moment of a report that was asked for.
pub fn snapshot(report: &Value) -> &Value {
    if report["at"].is_null() { &report["peak"] } else { &report["at"] }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}"))
}

/// So many bytes in words, made without the window's own code: two decimals below 100 of the unit, else one; a half goes to the
/// even neighbour.
fn written(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((bits, name)) = units.into_iter().find(|(bits, _)| bytes >> bits > 0) else { return format!("{bytes} B") };
    let rounded = |parts: u128| {
        let (scaled, unit) = (u128::from(bytes) * parts, 1_u128 << bits);
        let (whole, rest) = (scaled / unit, scaled % unit * 2);
        whole + u128::from(rest > unit || (rest == unit && whole % 2 == 1))
    };
    match rounded(100) {
        hundredths @ ..10_000 => format!("{}.{:02} {name}", hundredths / 100, hundredths % 100),
        _ => format!("{}.{} {name}", rounded(10) / 10, rounded(10) % 10),
    }
}

/// The moments at which views are read.
fn moments() -> [(At, Instant); 4] {
    let time = Nanoseconds(2_123_456_789);
    [
        (At::Peak, Instant::Peak),
        (At::Live, Instant::End),
        (At::Step(3), Instant::Step(3)),
        (At::Time(time), Instant::Time(time)),
    ]
}

/// A window that shows this view at this moment.
fn shows(trace: &Trace, view: &str, at: At) -> Window {
    let mut window = window::sized(&[("train.mscope", trace)], [1280.0, 900.0], 1.0);
    click(&mut window, view);
    window.state_mut().document_mut().expect("it is open").shared.cursor = at;
    for _ in 0..3 {
        window.run();
    }
    window
}

fn says(window: &Window, what: &str) {
    let heard = heard(window);
    assert!(heard.iter().any(|text| text.contains(what)), "{what:?} is not among {heard:#?}");
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
    let snapshot = snapshot(&report);
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

#[test]
fn the_timeline_is_heard_as_the_report_has_it() {
    for trace in [leaking(), out_of_memory()] {
        for (at, instant) in moments() {
            let (window, report) = (shows(&trace, "Timeline alone", at), report(&trace, instant));
            says(&window, &format!("Peak: {} live", written(number(&report["peak"]["bytes"]))));
            // Those of 0 B are one line.
            let categories = snapshot(&report)["by_category"].as_object().expect("categories").iter();
            let some: Vec<_> = categories.filter(|(_, bytes)| number(bytes) > 0).collect();
            assert!(some.len() >= 2, "{some:?}");
            for (name, bytes) in some {
                assert!(heard(&window).contains(&format!("{name}: {}", written(number(bytes)))), "{name} at {at:?}");
            }
        }
    }
}

#[test]
fn bands_are_heard_as_the_report_has_them() {
    for trace in [leaking(), out_of_memory()] {
        let (window, report) = (shows(&trace, "Memory over time", At::Peak), report(&trace, Instant::Peak));
        let largest = &report["peak"]["top_allocations"][0];
        let [name, category] = ["name", "category"].map(|field| text(&largest[field]));
        says(&window, &format!("{name}, {}, {category}, made at ", written(number(&largest["bytes"]))));
    }
}

/// Of single scopes what they made themselves, to the byte, and of those without others inside what is heard.
#[test]
fn scopes_are_heard_as_the_report_has_them() {
    let check = |window: &Window, report: &Value, what: &str| {
        let snapshot = snapshot(report);
        let view = window.state().document().expect("it is open").answer().flame.clone().expect("it was asked for");
        let (live, mut told) = (number(&snapshot["ledger"]["live"]), 0);
        for scope in snapshot["top_scopes"].as_array().expect("scopes") {
            let (path, bytes) = (text(&scope["scope"]), number(&scope["bytes"]));
            let path_of = |node: &&memscope_core::explorer::FlameNode| node.scope.as_deref() == Some(path);
            let Some(node) = view.nodes.iter().find(path_of).filter(|_| !path.is_empty()) else { continue };
            assert_eq!(node.own, bytes, "{path}, {what}");
            let share = bytes as f64 * 100.0 / live as f64;
            if ["optimizer", "metrics"].contains(&path) && share > 5.0 {
                says(window, &format!("{path}, {}, {share:.1} % of all", written(bytes)));
                told += 1;
            }
        }
        assert!(told > 0, "{what}: {snapshot}");
    };
    let trace = leaking();
    for (at, instant) in moments() {
        check(&shows(&trace, "Flame", at), &report(&trace, instant), &format!("{at:?}"));
    }
    let mut window = shows(&trace, "Flame", At::Step(3));
    click(&mut window, "At the peak");
    window.run();
    check(&window, &report(&trace, Instant::Peak), "the peak, with the cursor elsewhere");
}

#[test]
fn lines_are_heard_as_the_report_has_them() {
    let trace = with_lines();
    let mut window = shows(&trace, "Flame", At::Peak);
    click(&mut window, "Lines");
    window.run();
    let report = report(&trace, Instant::Peak);
    let live = number(&report["peak"]["ledger"]["live"]);
    let view = window.state().document().expect("it is open").answer().flame.clone().expect("it was asked for");
    let groups = report["peak"]["top_groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 3, "each was made at a line of its own");
    for group in groups {
        let (line, bytes) = (text(&group["line"]), number(&group["bytes"]));
        let (at, node) = view.nodes.iter().enumerate().find(|(_, node)| node.label == line).expect("its node");
        assert_eq!(node.own, bytes, "{line}");
        if view.children(at).next().is_none() {
            let share = bytes as f64 * 100.0 / live as f64;
            says(&window, &format!("{line}, {}, {share:.1} % of all", written(bytes)));
        }
    }
}

#[test]
fn segments_are_heard_as_the_report_has_them() {
    let trace = leaking();
    for (at, instant) in moments() {
        let (window, report) = (shows(&trace, "Segments", at), report(&trace, instant));
        let ledger = &snapshot(&report)["ledger"];
        // Two segments of 8 and 2 GiB; what of them is not cached is in blocks. All is given back when the program ends.
        match number(&ledger["reserved"]) {
            0 => says(&window, "No segments at this moment"),
            _ => {
                let in_blocks = written(10 * GIB - number(&ledger["cached"]));
                says(&window, &format!("2 segments, {}, of that {in_blocks} in blocks", written(10 * GIB)));
            }
        }
    }
}

#[test]
fn allocations_are_heard_as_the_report_has_them() {
    let trace = leaking();
    // The report has host memory of the same moment for these.
    for (at, instant) in moments().into_iter().skip(2) {
        let (window, report) = (shows(&trace, "Allocations", at), report(&trace, instant));
        let snapshot = snapshot(&report);
        let all = number(&snapshot["bytes"]) + number(&report["host"]["at"]["bytes"]);
        says(&window, &format!(" allocations, {} live", written(all)));
        let largest = snapshot["top_allocations"].as_array().expect("allocations");
        for row in &largest[..2] {
            let [name, category] = ["name", "category"].map(|field| text(&row[field]));
            says(&window, &format!("{name}, {}, {category}", written(number(&row["bytes"]))));
        }
    }
}

#[test]
fn differences_are_heard_as_the_reports_have_them() {
    let (before, after) = (leaking(), out_of_memory());
    let mut window = window::sized(&[("a.mscope", &before), ("b.mscope", &after)], [1280.0, 900.0], 1.0);
    click(&mut window, "Diff");
    for _ in 0..3 {
        window.run();
    }
    let (before, after) = (report(&before, Instant::Peak), report(&after, Instant::Peak));
    let told = |name: &str, before: u64, after: u64| {
        let sign = if after > before { "+" } else { "-" };
        let difference = written(after.abs_diff(before));
        let (before, after) = (written(before), written(after));
        says(&window, &format!("{name}: before {before}, after {after}, difference {sign}{difference}"));
    };
    for name in ["weights", "optimizer", "activations"] {
        let of = |report: &Value| number(&report["peak"]["by_category"][name]);
        told(name, of(&before), of(&after));
    }
    let scope = |report: &Value, path: &str| {
        let scopes = report["peak"]["top_scope_groups"].as_array().expect("scopes");
        scopes.iter().find(|scope| scope["scope"] == path).map(|scope| number(&scope["bytes"])).expect("a scope")
    };
    for path in ["optimizer", "model/h.*/mlp"] {
        told(path, scope(&before, path), scope(&after, path));
    }
}
