//! `report`, `export`, `recover`, `devices`, pages; and files that are not what they should be.

use std::fs;

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

/// A small recorded training run in `p.mscope`.
fn trained() -> (Place, Value) {
    let place = Place::new();
    let (output, report) =
        place.record(&format!("--device 2GiB -- {} sample gpt --model tiny --steps 4", env!("CARGO_BIN_EXE_memscope")));
    assert!(output.status.success(), "{}", stderr(&output));
    (place, report)
}

#[test]
fn a_profile_gives_the_report_that_the_run_gave() {
    let (place, report) = trained();
    let again = place.run("report p.mscope --format json");
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), report);
    let exported = place.run("export p.mscope --json");
    assert_eq!(serde_json::from_slice::<Value>(&exported.stdout).unwrap(), report);
    for key in [
        "command",
        "exit_status",
        "duration_s",
        "simulated",
        "devices",
        "processes",
        "peak",
        "category_peaks",
        "end",
        "steps",
        "totals",
        "dropped_events",
        "findings",
    ] {
        assert!(report.get(key).is_some_and(|value| !value.is_null()), "{key}");
    }
    assert_eq!(report["schema_version"], 1);
    assert_eq!(report["steps"].as_array().unwrap().len(), 4);
}

#[test]
fn instants_are_evaluated() {
    let (place, report) = trained();
    let duration = report["duration_s"].as_f64().unwrap();
    for at in ["peak", "end", "step:2", &format!("time:{}", duration / 2.0), &format!("time:{duration}"), "time:0"] {
        let output = place.run(&format!("report p.mscope --at {at}"));
        assert!(output.status.success(), "{at}: {}", stderr(&output));
        assert!(stdout(&output).lines().all(|line| line.chars().count() <= 100), "{at}: too wide\n{}", stdout(&output));
    }
    let output = place.run("report p.mscope --at step:2 --format json");
    let at: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_step = report["steps"].as_array().unwrap().iter().find(|step| step["step"] == 2).expect("step 2");
    assert_eq!(number(&at, "/at/bytes"), number(of_step, "/peak/bytes"));
    let output = place.run("report p.mscope --at step:99");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no step 99: it has those from 1 to 4"), "{}", stderr(&output));
    assert!(stdout(&place.run("report p.mscope --at time:0")).contains("Nothing is allocated at that moment."));
    let output = place.run("report p.mscope --at time:99s");
    assert_eq!(output.status.code(), Some(1));
    let said = format!("time:99 is past the end of the session, which is at time:{duration}; `--at end` shows");
    assert!(stderr(&output).contains(&said), "{}", stderr(&output));
}

#[test]
fn tables_are_exported_and_not_overwritten() {
    let (place, _) = trained();
    let output = place.run("export p.mscope --parquet tables");
    assert!(output.status.success(), "{}", stderr(&output));
    let first = fs::read(place.path("tables/allocations.parquet")).unwrap();
    assert_eq!(&first[..4], b"PAR1");
    let output = place.run("export p.mscope --parquet tables");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("tables"), "{}", stderr(&output));
    assert!(place.run("export p.mscope --parquet tables -f").status.success());
}

#[test]
fn broken_profiles_get_a_clear_error() {
    let (place, _) = trained();
    let whole = fs::read(place.path("p.mscope")).unwrap();
    let newer = {
        // The manifest is stored as it is, so its version can be changed in place.
        let mut bytes = whole.clone();
        let key = b"\"format_version\":";
        let at = bytes.windows(key.len()).position(|window| window == key).expect("the manifest names its version");
        let digit = bytes[at + key.len()..].iter().position(u8::is_ascii_digit).unwrap();
        bytes[at + key.len() + digit] = b'9';
        bytes
    };
    let random: Vec<u8> = (0..50_000_u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("random", random),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("no-end", whole[..whole.len() - 1].to_vec()),
        ("newer", newer),
        ("text", b"{\"schema_version\": 1}\n".to_vec()),
    ];
    for (name, bytes) in cases {
        fs::write(place.path(name), bytes).unwrap();
        let output = place.run(&format!("report {name}"));
        assert_eq!(output.status.code(), Some(1), "{name}: {}{}", stdout(&output), stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(name) && said.starts_with("memscope: error:"), "{name}: {said}");
        assert!(!said.contains("panicked"), "{name}: {said}");
    }
    for (path, word) in [("nothing-here", "nothing-here"), (".", ".")] {
        let output = place.run(&format!("report {path}"));
        assert_eq!(output.status.code(), Some(1), "{path}");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
}

#[test]
fn one_flipped_byte_anywhere_never_panics() {
    let (place, _) = trained();
    let whole = fs::read(place.path("p.mscope")).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 60 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(place.path("flipped"), bytes).unwrap();
        let output = place.run("report flipped");
        assert!(matches!(output.status.code(), Some(0 | 1)), "byte {at}: {:?} {}", output.status, stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "byte {at}: {}", stderr(&output));
    }
}

#[test]
fn the_catalogue_has_its_devices() {
    let place = Place::new();
    let output = place.run("devices --json");
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    for key in [
        "t4-16gb",
        "v100-32gb",
        "rtx3090-24gb",
        "rtx4090-24gb",
        "a6000-48gb",
        "a100-40gb",
        "a100-80gb",
        "h100-80gb",
        "h200-141gb",
        "b200-180gb",
    ] {
        assert!(keys.contains(&key), "{key} in {keys:?}");
        assert!(stdout(&place.run("devices")).contains(key));
    }
}

#[test]
fn pages_and_completions_are_made() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&place.run(&format!("completions {shell}"))).contains("memscope"), "{shell}");
    }
    assert!(stdout(&place.run("man")).contains(".TH memscope 1"));
    assert!(place.run("man pages").status.success());
    assert!(place.path("pages/memscope-run.1").exists());
    for verb in ["run", "demo", "sample", "report", "export", "recover"] {
        assert!(stdout(&place.run(&format!("{verb} --help"))).contains("Example"), "{verb} --help has no example");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (place, _) = trained();
    let script = format!("{} report p.mscope --format json | head -c 10", env!("CARGO_BIN_EXE_memscope"));
    let output = place.command("sh").args(["-c", &script]).output().unwrap();
    assert_eq!((output.stdout.len(), stderr(&output).as_str()), (10, ""));
}
