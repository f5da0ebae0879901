//! Several profiles as one job: which rank holds more, which ran out of memory first, what does not fit together.

use memscope_core::journal::entry::SessionInfo;
use memscope_core::ranks::{self, Ranks, Source};
use memscope_core::report::{Instant, Report};
use memscope_wire::{Category, Event, MemoryKind};
use serde_json::Value;

use crate::trace::Trace;

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// A rank's report: weights, then activations which stay in addition; `refused` at one second where it is to fail.
fn report(rank: u32, node: &str, weights: u64, activations: u64, refused: bool) -> Report {
    let mut trace = Trace::new(&["train"], None);
    trace.process(0, 4000 + rank);
    trace.device(0, 0, [7; 16], 1 << 30);
    trace.tagged(0, 0x1000_0000, weights * MIB, Category::Weights, "w");
    trace.tagged(0, 0x9000_0000, activations * MIB, Category::Activations, "a");
    trace.now += SECOND;
    if refused {
        let (row, memory, result) = (1, MemoryKind::Device, 2);
        trace.event(
            0,
            Event::AllocFailed { requested: 64 * MIB, free: 0, total: 1 << 30, device: 0, result, row, memory },
        );
    }
    let mut report = trace.model().report(Instant::Peak).expect("a report");
    report.node = Some(node.to_owned());
    report.processes[0].rank = Some(rank);
    report.processes[0].world_size = Some(4);
    report
}

fn source(rank: u32, report: Report, start_realtime_ns: u64) -> Source {
    let session = SessionInfo { start_realtime_ns, ..SessionInfo::default() };
    Source { file: format!("run/{rank}.mscope"), session, report }
}

/// Four ranks on two nodes, given in no order: rank 2 has more activations, rank 3 the clock that is behind.
fn job() -> Vec<Source> {
    vec![
        source(3, report(3, "b", 100, 50, true), 10 * SECOND),
        source(0, report(0, "a", 100, 50, false), 20 * SECOND),
        source(2, report(2, "b", 100, 80, true), 12 * SECOND),
        source(1, report(1, "a", 100, 50, false), 20 * SECOND),
    ]
}

#[test]
fn ranks_are_in_order_and_what_differs_is_told() {
    let job = Ranks::of(&job());
    assert_eq!(
        (job.world_size, job.missing.len(), &job.nodes[..]),
        (Some(4), 0, &["a".to_owned(), "b".to_owned()][..])
    );
    let told: Vec<_> =
        job.ranks.iter().map(|rank| (rank.rank, rank.node.as_deref(), rank.pid, rank.peak_live)).collect();
    let expected = |rank: u32, node, live: u64| (Some(rank), Some(node), 4000 + rank, Some(live * MIB));
    assert_eq!(told, [expected(0, "a", 150), expected(1, "a", 150), expected(2, "b", 180), expected(3, "b", 150)]);
    let differences: Vec<_> = job
        .differences
        .iter()
        .map(|one| (one.of.as_str(), one.most_rank, one.most / MIB, one.least_rank, one.least / MIB))
        .collect();
    assert_eq!(
        differences,
        [("peak_live", 2, 180, 0, 150), ("peak_reserved", 2, 180, 0, 150), ("activations", 2, 80, 0, 50)],
        "weights are equal"
    );
    let order: Vec<_> = job.out_of_memory.iter().map(|oom| job.ranks[oom.position].rank).collect();
    assert_eq!(order, [Some(3), Some(2)], "by the clocks of their machines");
    assert_eq!((job.out_of_memory[0].realtime_ns, job.out_of_memory[0].requested), (11 * SECOND, 64 * MIB));
    assert!(job.notices.is_empty(), "{:?}", job.notices);
}

#[test]
fn the_text_answers_at_a_glance() {
    insta::assert_snapshot!(ranks::text(&Ranks::of(&job())));
}

#[test]
fn what_is_missing_or_of_another_job_is_said() {
    let some = Ranks::of(&job()[..1]);
    assert_eq!(some.missing, [0, 1, 2]);
    assert!(some.differences.is_empty(), "one rank differs from none");
    assert!(ranks::text(&some).contains("Not in these files: ranks 0 to 2."), "{}", ranks::text(&some));

    let mut twice = job();
    twice.push(Source { file: "old/2.mscope".into(), ..source(2, report(2, "b", 100, 80, false), 0) });
    twice[1].report.command = vec!["other".into()];
    let notices = Ranks::of(&twice).notices.join("\n");
    assert!(notices.contains("rank 2 is in several files: old/2.mscope, run/2.mscope"), "{notices}");
    assert!(notices.contains("run/3.mscope and run/0.mscope are of different commands"), "{notices}");

    let mut other = job();
    other[0].report.processes[0].world_size = Some(8);
    let other = Ranks::of(&other);
    assert_eq!((other.world_size, other.missing.len()), (None, 0));
    assert!(other.notices[0].contains("different numbers of ranks: 4, 8"), "{:?}", other.notices);
}

#[test]
fn files_of_earlier_versions_have_no_figures_of_processes() {
    let mut old = job();
    for source in &mut old {
        let process = &mut source.report.processes[0];
        (process.peak_live, process.peak_reserved, process.peak_by_category) = (None, None, None);
    }
    let old = Ranks::of(&old);
    assert!(old.differences.is_empty());
    assert!(ranks::text(&old).contains("rank 3 on b"), "{}", ranks::text(&old));
}

#[test]
fn the_checked_in_schema_is_the_one_of_the_code_and_jobs_are_valid() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ranks.schema.json");
    let text = ranks::schema();
    if std::env::var_os("MEMSCOPE_UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, &text).expect("the schema is written");
    }
    let checked_in = std::fs::read_to_string(PATH).expect("docs/ranks.schema.json is there");
    assert!(text == checked_in, "docs/ranks.schema.json is out of date: run this test with MEMSCOPE_UPDATE_SCHEMA=1");
    let schema: Value = serde_json::from_str(&checked_in).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut value = serde_json::to_value(Ranks::of(&job())).expect("JSON");
    assert!(validator.is_valid(&value));
    value["ranks"][0]["pid"] = Value::from("x");
    assert!(!validator.is_valid(&value), "the schema refuses what is wrong");
}
