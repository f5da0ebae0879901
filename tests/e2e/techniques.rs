//! `memscope techniques`: the comparison against the profiles that it is made of, its JSON against the schema, its page as XML.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::anchors::gpt2_activations;
use crate::memscope::{Place, number, stderr, stdout};

/// A comparison without computing, its profiles kept in `kept`.
fn compared(place: &Place, list: &str) -> Value {
    let output = place.run(&format!(
        "techniques gpt --device 8GiB --no-compute --steps 2 --list {list} --json c.json --html c.html --pictures svg --keep kept"
    ));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let text = stdout(&output);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "too wide\n{text}");
    serde_json::from_slice(&std::fs::read(place.path("c.json")).expect("JSON is written")).expect("it is JSON")
}

fn row<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let rows = comparison["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}: {comparison:#}"))
}

#[test]
fn figures_are_those_of_the_kept_profiles() {
    let place = Place::new();
    let comparison = compared(&place, "sgd,momentum,sgd+accumulate");
    let baseline = number(row(&comparison, "baseline"), "/figures/peak_bytes");
    for name in ["baseline", "sgd", "momentum", "sgd+accumulate"] {
        let row = row(&comparison, name);
        let report = place.run(&format!("report kept/{name}.mscope --format json"));
        let report: Value = serde_json::from_slice(&report.stdout).expect("the profile is kept");
        for (of_row, of_report) in [
            ("/figures/peak_bytes", "/peak/bytes"),
            ("/figures/by_category", "/peak/by_category"),
            ("/figures/phase", "/peak/phase"),
            ("/figures/step", "/peak/step"),
            ("/figures/device", "/peak/device"),
            ("/figures/host_peak_bytes", "/host/peak/bytes"),
            ("/figures/category_peaks/optimizer", "/category_peaks/optimizer/bytes"),
            ("/figures/category_peaks/activations", "/category_peaks/activations/bytes"),
        ] {
            assert_eq!(row.pointer(of_row), report.pointer(of_report), "{name} {of_row}");
        }
        let percent = row.pointer("/figures/percent_of_baseline").and_then(Value::as_f64).expect("a percentage");
        let by_hand = 100.0 * number(&report, "/peak/bytes") as f64 / baseline as f64;
        assert!((percent - by_hand).abs() < 1e-9, "{name}: {percent} is not {by_hand}");
        for absent in ["/figures/loss", "/figures/step_seconds", "/figures/step_time_ratio"] {
            assert_eq!(row.pointer(absent), Some(&Value::Null), "{name}: nothing was computed");
        }
    }
    // 858,880 parameters: V·h + s·h of embeddings, 12·h² + 13·h a layer, 2·h; no state, then 4 bytes, and 8.
    let parameters = 256 * 128 + 256 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128;
    for (name, bytes) in [("sgd", 0), ("momentum", 4), ("baseline", 8)] {
        assert_eq!(number(row(&comparison, name), "/figures/category_peaks/optimizer"), bytes * parameters, "{name}");
    }
}

#[test]
fn the_json_keeps_to_its_schema_and_the_page_has_every_row() {
    let place = Place::new();
    let comparison = compared(&place, "adamw8bit,adamw8bit+foreach");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/techniques.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a schema")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<_> = validator.iter_errors(&comparison).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut broken = comparison.clone();
    broken["rows"][0]["outcome"] = "splendid".into();
    assert!(!validator.is_valid(&broken), "the schema refuses what is wrong");

    // A technique of one optimizer with that of another is a row, and no abort.
    let refused = row(&comparison, "adamw8bit+foreach");
    assert_eq!(refused["outcome"], "does_not_combine");
    assert!(
        refused["message"].as_str().expect("a sentence").starts_with("--foreach is of --optimizer adamw"),
        "{refused}"
    );
    assert_eq!(refused["figures"], Value::Null);

    let html = std::fs::read_to_string(place.path("c.html")).expect("a page");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let page = roxmltree::Document::parse_with_options(&html, options).expect("the page is well-formed");
    let named = |tag: &str, name: &str| {
        page.descendants().any(|node| {
            node.tag_name().name() == tag && node.descendants().any(|inner| inner.text().map(str::trim) == Some(name))
        })
    };
    for name in ["baseline", "adamw8bit", "adamw8bit+foreach"] {
        assert!(named("tr", name) && named("h2", name), "{name}");
    }
    for reference in page.descendants().flat_map(|node| node.attributes()) {
        let outside = matches!(reference.name(), "src" | "href") && !reference.value().starts_with('#');
        assert!(!outside, "the page needs {}", reference.value());
    }
    assert_eq!(page.descendants().filter(|node| node.tag_name().name() == "svg").count(), 2);
    for name in ["baseline", "adamw8bit"] {
        let svg = std::fs::read_to_string(place.path(&format!("svg/{name}.svg"))).expect("a picture");
        roxmltree::Document::parse(&svg).expect("well-formed");
    }
    assert!(!place.path("svg/adamw8bit+foreach.svg").exists());
}

#[test]
fn published_figures_stand_beside_the_measured_ones() {
    let place = Place::new();
    let comparison = compared(&place, "published");
    for (name, percent) in [("amp+checkpoint", 35.0), ("amp+8bit", 28.0), ("all", 18.0)] {
        let row = row(&comparison, name);
        assert_eq!(row.pointer("/claim/percent").and_then(Value::as_f64), Some(percent), "{name}");
        let why = row["why"].as_str().expect("a sentence on why they differ");
        assert!(why.contains(&format!("Claimed {percent:.0} %")) && why.contains("f = "), "{name}: {why}");
    }
    assert!(row(&comparison, "amp+8bit")["why"].as_str().unwrap().contains("28 % is out of reach"));
}

/// What PyTorch's own count gives for GPT-2 124M at batch 4 of 1,024 tokens: 26.5 % of the baseline with mixed precision,
/// checkpoints and a chunked loss, and 18.1 % with 8-bit moments too, which is what was claimed.
#[test]
fn the_published_shares_come_out_with_a_chunked_loss() {
    let place = Place::new();
    let output = place.run(
        "techniques gpt --size 124m --device h100-80gb --no-compute --steps 2 --list published --json published.json",
    );
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let comparison = std::fs::read(place.path("published.json")).expect("JSON is written");
    let comparison: Value = serde_json::from_slice(&comparison).expect("it is JSON");
    for (name, percent, words) in [
        (
            "amp+checkpoint+chunked-loss",
            26.5,
            "Claimed 35 %, measured 26.5 %: the claim holds here. By arithmetic f + ½·r·(1 − f) = 26.3 %",
        ),
        ("all+chunked-loss", 18.1, "Claimed 18 %, measured 18.1 %: the claim holds here."),
    ] {
        let row = row(&comparison, name);
        assert_eq!(row["outcome"], "measured", "{row:#}");
        let measured = row.pointer("/figures/percent_of_baseline").and_then(Value::as_f64).expect("a percentage");
        assert!((measured - percent).abs() < 0.05, "{name}: {measured} is not {percent}");
        assert!(row["why"].as_str().expect("a sentence").starts_with(words), "{row:#}");
    }
}

#[test]
fn a_device_that_is_too_small_is_a_row() {
    let place = Place::new();
    // Below the 858,880 parameters' states; above what the weights need.
    let output = place.run("techniques --device 64MiB --no-compute --list sgd --json c.json -- --batch 64");
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let comparison: Value = serde_json::from_slice(&std::fs::read(place.path("c.json")).unwrap()).unwrap();
    assert_eq!(row(&comparison, "baseline")["outcome"], "out_of_memory");
    assert!(stdout(&output).contains("out of memory"), "{}", stdout(&output));
}

/// The trials of a search, one of which fills the device, are not among the figures; nor are they computed.
#[test]
fn a_searched_batch_is_told_with_the_figures_of_its_training() {
    let place = Place::new();
    let output = place.run("techniques --device 64MiB --list batch-auto,caching --steps 2 --json c.json");
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let comparison: Value = serde_json::from_slice(&std::fs::read(place.path("c.json")).unwrap()).unwrap();
    // The tiny GPT: 4 layers of 128 with 4 heads, 256 tokens, sequences of 64. Plain training has its peak in the loss.
    let parameters = 256 * 128 + 256 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128;
    let peak = |batch: u64| {
        let n = batch * 64;
        12 * parameters + gpt2_activations(4, batch, 64, 128, 4, 256) + 2 * 4 * n * 256 + 2 * 8 * n + 4
    };
    // Each allocation is rounded to 512 bytes: a batch does not just fit.
    let largest = (1..).take_while(|&batch| peak(batch) + (128 << 10) <= 64 << 20).last().expect("one fits");
    let searched = row(&comparison, "batch-auto");
    assert_eq!(number(searched, "/figures/batch"), largest);
    assert_eq!(number(searched, "/figures/peak_bytes"), peak(largest));
    assert_eq!(searched.pointer("/figures/loss"), Some(&Value::Null));
    let baseline = row(&comparison, "baseline");
    assert_eq!((number(baseline, "/figures/batch"), number(baseline, "/figures/peak_bytes")), (8, peak(8)));
    assert!(baseline.pointer("/figures/loss").is_some_and(Value::is_f64), "{baseline}");
    // What differs has a column of its own.
    let head = stdout(&output).lines().find(|line| line.starts_with("technique")).expect("a table").to_owned();
    assert!(head.contains("batch") && head.contains("reserved"), "{head}");
}

#[test]
fn pictures_of_what_is_not_computed_are_the_same_on_every_run() {
    let place = Place::new();
    let picture = |folder: &str| {
        let list = "zero2,amp-bf16";
        let output = place.run(&format!("techniques -q --device 1GiB --no-compute --list {list} --pictures {folder}"));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        ["baseline", "zero2", "amp-bf16"]
            .map(|name| std::fs::read_to_string(place.path(&format!("{folder}/{name}.svg"))).expect("a picture"))
    };
    let (first, second) = (picture("a"), picture("b"));
    assert!(first == second);
    assert!(first.iter().all(|svg| svg.contains("allocations and frees") && svg.contains("peak of the baseline")));
}

/// docs/techniques/make makes the pictures; the page shows each, and no other.
#[test]
fn the_page_of_techniques_has_its_pictures() {
    let docs = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs"));
    let page = std::fs::read_to_string(docs.join("techniques.md")).expect("the page");
    let named = page.split("](techniques/").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    let shown: std::collections::BTreeSet<String> = named.collect();
    let files =
        std::fs::read_dir(docs.join("techniques")).expect("a folder").map(|file| file.expect("a file").file_name());
    let made: std::collections::BTreeSet<String> =
        files.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.ends_with(".svg")).collect();
    assert_eq!(shown, made);
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let place = Place::new();
    std::fs::write(place.path("there.json"), "mine").unwrap();
    for (arguments, status, words) in [
        ("--list no-such", 2, "no technique `no-such`"),
        ("--size huge", 2, "--size huge"),
        ("--steps 1", 2, "--steps"),
        ("--json there.json", 1, "already exists"),
        ("--json x --html x", 2, "two files"),
        ("-- --batch 0", 2, "--batch 0 is out of range"),
    ] {
        let output = place.run(&format!("techniques --device 2GiB {arguments}"));
        assert_eq!(output.status.code(), Some(status), "{arguments}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments}: {}", stderr(&output));
        assert!(!stderr(&output).contains("1 of"), "{arguments} ran: {}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(place.path("there.json")).unwrap(), "mine");
}

/// SIGINT to memscope alone, which has its run in a process group of its own, as the terminal's Ctrl-C finds it.
#[test]
fn an_interrupt_ends_the_run_and_the_comparison() {
    use std::os::unix::process::ExitStatusExt;
    let place = Place::new();
    std::fs::create_dir(place.path("temporary")).unwrap();
    let mut command = place.memscope();
    command.args("techniques -q --device 8GiB --list sgd --json c.json --steps 1000000".split(' '));
    let mut child = command.env("TMPDIR", place.path("temporary")).spawn().expect("memscope starts");
    let of = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let patience = Instant::now() + Duration::from_secs(60);
    let trainer = loop {
        // memscope techniques → memscope run → memscope sample (beside run's witness).
        let run = of(child.id()).split_whitespace().next().and_then(|pid| pid.parse().ok());
        let inner: Vec<u32> = run.map(of).unwrap_or_default().split_whitespace().flat_map(str::parse).collect();
        let trains = |pid: &&u32| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(6).any(|w| w == b"sample"))
        };
        if let Some(pid) = inner.iter().filter(|_| inner.len() > 1).find(trains) {
            break *pid;
        }
        assert!(Instant::now() < patience, "no run was started");
        std::thread::sleep(Duration::from_millis(20));
    };
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(libc::SIGINT), "{ended}");
    assert!(!std::path::Path::new(&format!("/proc/{trainer}")).exists(), "the trainer has ended too");
    assert!(!place.path("c.json").exists());
    let left: Vec<_> = std::fs::read_dir(place.path("temporary")).unwrap().collect();
    assert!(left.is_empty(), "nothing is left: {left:?}");
}
