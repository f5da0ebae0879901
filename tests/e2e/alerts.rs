//! `memscope run --alert`: a device that fills is told while the program runs, each time anew, and in the report.

use crate::memscope::{Place, number, stderr, told_while_it_waits};

const MIB: u64 = 1 << 20;

#[test]
fn a_device_that_fills_is_told_while_the_program_runs() {
    let place = Place::new();
    let program = place.compile_linked("filling");
    let mut command = place.memscope();
    command.args(["run", "-f", "-o", "p.mscope", "--json", "r.json", "--device", "1GiB", "--alert", "90%,2GiB", "--"]);
    let (first, said, output) = told_while_it_waits(command.arg(program));
    assert_eq!(output.status.code(), Some(3), "{said}");
    // 512 + 448 of 1,024 MiB.
    for part in [
        "is filled to more than 90 %: warning [threshold_passed] more than 90 % of GPU-",
        "were used: 960.0 MiB of 1.00 GiB (94 %).",
        "before the first step.",
        "Granted to this session: 960.0 MiB, of which 960.0 MiB were live; outside of it: 0 B.",
        "Most of it: weights, 512.0 MiB; of that 512.0 MiB in 1 allocation made in encoder: parameter (tagged).",
    ] {
        assert!(first.contains(part), "no `{part}` in {first}");
    }
    assert_eq!(first.matches("is filled").count(), 1, "once while it stays so: {first}");
    let told = said.split("memscope: profile:").next().expect("a report");
    for which in ["more than 90 %:", "more than 90 % for the second time:", "more than 90 % for the third time:"] {
        assert_eq!(told.matches(&format!("is filled to {which}")).count(), 1, "{which}: {said}");
    }
    assert_eq!(told.matches("is filled").count(), 3, "a fourth time is only counted: {said}");

    let report = std::fs::read(place.path("r.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let found: Vec<_> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter(|one| one["kind"] == "threshold_passed")
        .collect();
    assert_eq!(found.len(), 1, "2 GiB are never used: {found:?}");
    assert_eq!(number(found[0], "/limit"), 1024 * MIB * 9 / 10);
    assert_eq!((number(found[0], "/used"), number(found[0], "/total")), (960 * MIB, 1024 * MIB));
    assert_eq!((number(found[0], "/times"), number(found[0], "/by_category/weights")), (4, 512 * MIB));
    assert_eq!(found[0]["largest"]["scope"], "encoder");
}

#[test]
fn quiet_is_no_reason_to_hold_back_what_was_asked_for_by_name() {
    let place = Place::new();
    let program = place.compile_linked("hold");
    // 67 MiB of device memory.
    for (threshold, told) in [("66MiB", true), ("67MiB", false), ("6.5%", true), ("6.6%", false)] {
        let output =
            place.run(&format!("run -q -f -o p.mscope --device 1GiB --alert {threshold} -- {} 300", program.display()));
        assert_eq!(stderr(&output).contains("is filled to more than"), told, "{threshold}: {}", stderr(&output));
    }
    let output = place.run("run --alert full -- true");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`full` is no size"), "{}", stderr(&output));
}
