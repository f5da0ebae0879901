//! `memscope run --alert`: a device that fills is told while the program runs, each time anew, and in the report.

use std::fs;

use crate::memscope::{Place, number, stderr, stdout, told_while_it_waits};
use crate::screen::{ALL, Screen};

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
    for (flag, said) in [
        ("--alert full", "`full` is neither a share"),
        ("--alert -5%", "`-5%` is no share from 0.1% to 100%"),
        ("--alert -5", "`-5` is neither a share such as 90% nor a size such as 20GiB"),
        ("--keep -5m", "`-5m` says nothing that can be kept: write last:10m"),
        ("--keep last:-5m", "`-5m` is neither a time nor a number of allocations: write a time (90s"),
    ] {
        let output = place.run(&format!("run {flag} -- true"));
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(stderr(&output).contains(said), "{flag}: {}", stderr(&output));
    }
}

#[test]
fn behind_the_dashboard_it_stands_on_every_screen_and_is_said_afterwards() {
    let place = Place::new();
    let program = place.compile_linked("filling");
    // As the configuration has it: no flag says so.
    assert!(place.run("config init").status.success());
    let path = stdout(&place.run("config path"));
    fs::write(path.trim_end(), "alert = \"90%,2GiB\"\n").expect("the file can be edited");
    let mut command = place.memscope();
    command.args(["run", "--tui", "-q", "-f", "-o", "p.mscope", "--device", "1GiB", "--"]).arg(&program);
    command.env("LC_ALL", "C.UTF-8");
    let mut screen = Screen::start(command, 30, 120, ALL);
    // It still waits for a line.
    screen.wait("GPU 0 > 90 %");
    for (key, shown) in
        [("u", "u Output"), ("a", "weights"), ("o", "WARNING more than 90 % of GPU 0 were used: 960.0 MiB")]
    {
        screen.keys(key);
        screen.wait(shown);
        assert!(screen.rows()[0].contains("GPU 0 > 90 %"), "{key}: {}", screen.text());
        assert!(!screen.text().contains("2.00 GiB were used"), "{}", screen.text());
    }
    screen.keys("i\r");
    screen.wait("ended");
    assert!(
        !String::from_utf8_lossy(&screen.written()).contains("is filled to"),
        "nothing is written over the dashboard"
    );
    screen.keys("q");
    assert_eq!(screen.end().code(), Some(3));
    let after = screen.text();
    assert!(after.contains("is filled to more than 90 % for the third time:"), "{after}");

    // A flag wins over the file.
    let output = place.run(&format!("run -q -f -o p.mscope --device 1GiB --alert off -- {}", program.display()));
    assert!(!stderr(&output).contains("is filled"), "{}", stderr(&output));
}
