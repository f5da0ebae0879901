//! What a simulated run missed: told by several processes, kept in the profile, valid by the schema.

use memscope_core::findings::{Detail, Finding, ReadLine};
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Style, finding};
use memscope_wire::{Event, TextId};
use serde_json::Value;

use crate::trace::{Trace, UUID};

/// Two ranks of one program.
fn ranks() -> Trace {
    let mut trace = Trace::new(&["torchrun", "train.py"], Some("h100-80gb*2"));
    for rank in 0..2 {
        trace.process(rank, 100 + rank);
        trace.device(rank, 0, UUID, 80 << 30);
        trace.event(rank, Event::NotComputed);
        let line = trace.name(rank, "/home/a b/train.py:31");
        for _ in 0..2 {
            trace.event(rank, Event::DeviceRead { line, bytes: 8, known: false });
        }
        trace.event(rank, Event::DeviceRead { line, bytes: 4, known: true });
        let function = trace.name(rank, "cufftCreate");
        trace.event(rank, Event::NotSimulated { function });
        trace.alloc(rank, 0x10_0000_0000, 1 << 20);
    }
    let function = trace.name(0, "cusolverDnCreate");
    for _ in 0..3 {
        trace.event(0, Event::NotSimulated { function });
    }
    trace.event(1, Event::DeviceRead { line: TextId::NONE, bytes: 1 << 20, known: false });
    for rank in 0..2 {
        trace.ended(rank);
    }
    trace.end(0);
    trace
}

fn findings(trace: &Trace) -> Vec<Finding> {
    trace.model().report(Instant::Peak).expect("a report").findings
}

fn find<'a>(findings: &'a [Finding], kind: &str) -> &'a Finding {
    findings.iter().find(|finding| finding.detail.kind() == kind).unwrap_or_else(|| panic!("{kind}: {findings:?}"))
}

#[test]
fn what_two_processes_missed_is_one_finding_of_each_kind() {
    let findings = findings(&ranks());
    let Detail::NotSimulated { functions, more_functions } = &find(&findings, "not_simulated").detail else {
        unreachable!()
    };
    let told: Vec<_> = functions.iter().map(|one| (&*one.library, &*one.function, one.calls)).collect();
    assert_eq!(told, [("cuSOLVER", "cusolverDnCreate", 3), ("cuFFT", "cufftCreate", 2)]);
    assert_eq!(*more_functions, 0);
    let reads = &find(&findings, "device_reads").detail;
    let line = |line: &str, reads, bytes| ReadLine { line: line.into(), reads, bytes };
    assert_eq!(
        *reads,
        Detail::DeviceReads {
            reads: 7,
            bytes: 4 * 8 + 2 * 4 + (1 << 20),
            uncomputed: 5,
            uncomputed_bytes: 4 * 8 + (1 << 20),
            lines: vec![line("/home/a b/train.py:31", 4, 32), line("outside Python", 1, 1 << 20)],
            more_lines: 0,
            last: None,
        }
    );
    let texts = ["not_simulated", "device_reads", "simulated"].map(|kind| finding(find(&findings, kind), Style::Plain));
    insta::assert_snapshot!("simulated_libraries", texts.concat());
}

#[test]
fn a_program_that_fails_hears_which_line_read_last_what_was_not_computed() {
    let mut trace = ranks();
    let line = trace.name(0, "/home/a b/check.py:7");
    trace.event(0, Event::DeviceRead { line, bytes: 1, known: false });
    let known = trace.name(0, "/home/a b/train.py:99");
    trace.event(0, Event::DeviceRead { line: known, bytes: 1, known: true });
    trace.end(1);
    let findings = findings(&trace);
    let found = find(&findings, "device_reads");
    let Detail::DeviceReads { last, .. } = &found.detail else { unreachable!() };
    assert_eq!(last.as_deref(), Some("/home/a b/check.py:7"));
    insta::assert_snapshot!("a_program_that_failed", finding(found, Style::Plain));
    // Also out of the profile.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.mscope");
    profile::write(&trace.model(), &path, false).expect("written");
    let model = Profile::open(&path).and_then(|profile| profile.model()).expect("read");
    assert_eq!(find(&model.report(Instant::Peak).expect("a report").findings, "device_reads"), found);
}

#[test]
fn the_profile_keeps_it_and_the_schema_knows_it() {
    let (folder, trace) = (tempfile::tempdir().expect("a folder"), ranks());
    let path = folder.path().join("p.mscope");
    let report = profile::write(&trace.model(), &path, false).expect("written");
    assert!(!report.compute, "nothing was computed");
    let model = Profile::open(&path).and_then(|profile| profile.model()).expect("read");
    let again = model.report(Instant::Peak).expect("a report");
    assert_eq!((&again.findings, again.compute), (&report.findings, false));
    let schema: Value = serde_json::from_str(&memscope_core::report::schema()).expect("JSON");
    let value = serde_json::to_value(&report).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(validator.is_valid(&value), "{:?}", validator.iter_errors(&value).next());
}

#[test]
fn a_run_on_a_simulated_driver_alone_says_nothing_of_libraries() {
    let findings = findings(&crate::trace::training());
    let Detail::Simulated { libraries, compute, left_out, .. } = &find(&findings, "simulated").detail else {
        unreachable!()
    };
    assert_eq!((*libraries, *compute, left_out.len()), (false, true, 0));
    assert!(!findings.iter().any(|one| matches!(one.detail.kind(), "not_simulated" | "device_reads")));
}
