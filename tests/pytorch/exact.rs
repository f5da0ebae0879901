//! Bytes on the CPU at every event: the profile against an independent count, programs/counter.c, which is preloaded behind
//! memscope's own library and sees the calls that come out of it. And very many tensors.

use std::path::Path;
use std::process::Command;

use memscope_core::allocation::{Model, flag};
use memscope_core::report::units;
use memscope_wire::MemoryKind;

use crate::memscope::{Place, number, stdout};
use crate::torch::{python, run_in};

/// One event: where, how many bytes (negative for a free), and the bytes that are live after it.
type Event = (u64, i64, i64);

/// `programs/counter.c` as a library that can be preloaded.
fn compile_counter(place: &Place) -> std::path::PathBuf {
    let library = place.path("counter.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs/counter.c");
    let flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-fexceptions", "-shared", "-fPIC", "-o"];
    let status = Command::new("cc").args(flags).arg(&library).arg(source).arg("-ldl").status().expect("cc starts");
    assert!(status.success(), "cc could not compile counter.c");
    library
}

fn counted(file: &Path) -> Vec<Event> {
    let bytes = std::fs::read(file).expect("the counter has written its file");
    assert_eq!(bytes.len() % 24, 0, "the counter's file is whole");
    let word = |event: &[u8], at: usize| i64::from_ne_bytes(event[8 * at..8 * at + 8].try_into().expect("eight bytes"));
    bytes.chunks_exact(24).map(|event| (word(event, 0) as u64, word(event, 1), word(event, 2))).collect()
}

/// Births and deaths of a profile's CPU tensors, in the order of time. What the end of the process ended is no event.
fn recorded(model: &Model) -> Vec<Event> {
    let mut changes = Vec::new();
    for one in model.allocations().iter().filter(|one| one.memory == MemoryKind::Pageable) {
        changes.push((one.birth_ticks, one.address, one.bytes as i64));
        if one.is(flag::DEAD) && !one.is(flag::AT_EXIT) {
            assert!(!one.is(flag::MISSED_FREE), "a free was not recorded: {one:?}");
            changes.push((one.death_ticks, one.address, -(one.bytes as i64)));
        }
    }
    changes.sort_by_key(|change| change.0);
    let mut live = 0;
    let events = changes.into_iter().map(|(_, address, bytes)| {
        live += bytes;
        (address, bytes, live)
    });
    events.collect()
}

/// Where two sequences differ first; `None` when they are the same.
fn first_difference(ours: &[Event], theirs: &[Event]) -> Option<usize> {
    let common = ours.iter().zip(theirs).position(|(our, their)| our != their);
    common.or_else(|| (ours.len() != theirs.len()).then(|| ours.len().min(theirs.len())))
}

#[test]
fn live_bytes_at_every_event_equal_an_independent_count() {
    let Some(python) = python("live_bytes_at_every_event_equal_an_independent_count") else { return };
    let place = Place::new();
    let (counter, file) = (compile_counter(&place), place.path("counted"));
    let sets = "none/amp/checkpoint/accumulate/amp,checkpoint,accumulate/amp,reentrant,foreach";
    let variables = [("LD_PRELOAD", counter.as_path()), ("COUNTER_FILE", file.as_path())];
    let run = run_in(&place, &variables, &python, "", &format!("truth transformer {sets} cpu FILE"));

    let (ours, theirs) = (recorded(&run.model), counted(&file));
    assert!(theirs.len() > 20_000, "only {} events", theirs.len());
    if let Some(at) = first_difference(&ours, &theirs) {
        let around = |events: &[Event]| events.iter().skip(at.saturating_sub(2)).take(6).copied().collect::<Vec<_>>();
        panic!(
            "event {at} of {} recorded and {} counted differs: recorded {:x?}, counted {:x?}",
            ours.len(),
            theirs.len(),
            around(&ours),
            around(&theirs)
        );
    }
    let (allocated, peak) = totals(&theirs);
    println!("{} events, {allocated} bytes allocated, peak {peak}: the same", theirs.len());
    assert_eq!(number(&run.report, "/host/peak/bytes"), peak, "the report's peak is the counter's");
    assert_eq!(number(&run.report, "/totals/bytes"), allocated, "so are the bytes ever allocated");
    refutes_another_count(&ours, &theirs);
}

/// Of a program on the CPU, report, moments and differences say of host memory what they say of a device.
#[test]
fn host_memory_has_all_that_a_device_has() {
    let Some(python) = python("host_memory_has_all_that_a_device_has") else { return };
    let place = Place::new();
    let run = run_in(&place, &[], &python, "--stacks python", "on_the_cpu");
    let (host, output) = (&run.report["host"], number(&run.said, "/outputs/1"));
    let moment = &host["moment"];
    assert_eq!(number(moment, "/bytes"), number(host, "/peak/bytes"));
    // In the second step the output lives, and what the backward pass makes of it, beside weights.
    let steps = host["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 3);
    let peaks: Vec<u64> = steps.iter().map(|step| number(step, "/peak/bytes")).collect();
    assert_eq!((peaks[1], &moment["step"]), (number(moment, "/bytes"), &steps[1]["step"]));
    assert!(peaks[1] > 2 * output && peaks[0] < peaks[1] && peaks[2] < peaks[1], "{peaks:?}");
    assert_eq!(number(moment, "/by_category/weights"), number(&run.said, "/parameters"));
    let scopes = moment["top_scopes"].as_array().expect("scopes");
    let large = scopes.iter().find(|scope| scope["scope"] == "Net/large").expect("the largest module");
    assert_eq!(number(large, "/by_category/activations"), output);
    let lines: Vec<&str> =
        moment["top_groups"].as_array().expect("groups").iter().filter_map(|group| group["line"].as_str()).collect();
    assert!(lines.iter().any(|line| line.contains("on_the_cpu.py:")), "{lines:?}");
    // What a device would have is not there, and nothing of it is claimed.
    assert!(run.report["peak"].is_null() && run.report["steps"].as_array().is_some_and(Vec::is_empty));
    let text = stdout(&place.run("report p.mscope"));
    for said in ["No device memory", "Peak of host memory", "Held most by", "Net/large", "Steps"] {
        assert!(text.contains(said), "{said} is missing: {text}");
    }
    let at = format!("step:{}", steps[2]["step"]);
    let third = stdout(&place.run(&format!("report p.mscope --format json --at {at}")));
    let third: serde_json::Value = serde_json::from_str(&third).expect("JSON");
    assert_eq!(number(&third, "/host/at/bytes"), peaks[2]);
    let text = stdout(&place.run(&format!("diff p.mscope p.mscope --step {}", steps[2]["step"])));
    assert!(text.contains("Host memory") && text.contains("Net/large") && text.contains("3 steps in both"), "{text}");
    assert!(text.contains(&units::bytes(peaks[2])), "{text}");
}

/// Not one of very many is lost or taken for another, whether they are dropped at once or held to the end.
#[test]
fn very_many_tiny_tensors() {
    const COUNT: usize = 200_000;
    let Some(python) = python("very_many_tiny_tensors") else { return };
    let run = run_in(&Place::new(), &[], &python, "", &format!("tiny {COUNT}"));
    assert_eq!(number(&run.report, "/dropped_events"), 0);
    let of = |bytes: u64| run.model.allocations().iter().filter(move |one| one.bytes == bytes);
    assert!(of(20).count() >= COUNT && of(12).count() >= COUNT, "{} held, {} dropped", of(20).count(), of(12).count());
    let ended = |bytes| of(bytes).filter(|one| one.is(flag::DEAD) && !one.is(flag::AT_EXIT)).count();
    assert!(ended(12) >= COUNT, "those that were dropped have ended");
    assert!(of(12).all(|one| !one.is(flag::MISSED_FREE)) && of(20).all(|one| !one.is(flag::MISSED_FREE)));
    assert!(number(&run.report, "/host/peak/bytes") >= 20 * COUNT as u64, "those that were held lived together");
}

/// Bytes ever allocated, and the most that were live.
fn totals(events: &[Event]) -> (u64, u64) {
    let allocated = events.iter().map(|event| event.1.max(0) as u64).sum();
    (allocated, events.iter().map(|event| event.2).max().unwrap_or(0) as u64)
}

/// The comparison can fail: it finds an event that is missing, one that comes too late, and one byte too many.
fn refutes_another_count(ours: &[Event], theirs: &[Event]) {
    let at = theirs.len() / 2;
    let mut missing = theirs.to_vec();
    missing.remove(at);
    let mut late = theirs.to_vec();
    late.swap(at, at + 1);
    let mut larger = theirs.to_vec();
    larger[at].1 += 1;
    for other in [missing, late, larger] {
        assert_eq!(first_difference(ours, &other), Some(at));
    }
    assert_eq!(first_difference(&ours[..ours.len() - 1], theirs), Some(ours.len() - 1), "a missing end");
}
