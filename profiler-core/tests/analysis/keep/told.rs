//! What reports tell of a session of which not everything is kept: of steps, of peaks, and of what is missing.

use memscope_core::allocation::Model;
use memscope_core::explorer::{At, Explorer, Query, RowsQuery};
use memscope_core::findings::Severity;
use memscope_core::journal::entry::Entry;
use memscope_core::keep::{Keep, Span};
use memscope_core::profile::Profile;
use memscope_core::report::{Instant, KeptReport, KeptTime, Report, StepReport};
use tempfile::TempDir;

use super::{profile_of, read, training, with_keep, write_after};
use crate::trace::{Trace, UUID};

/// The profile of a session of which so much is kept, in segments of so many entries; it lasts as long as its folder.
fn kept(entries: &[Entry], keep: Keep, cut: usize) -> (Profile, TempDir) {
    kept_after(0, entries, keep, cut)
}

/// The same, with so many changes behind its beginning.
fn kept_after(changes: u32, entries: &[Entry], keep: Keep, cut: usize) -> (Profile, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    write_after(changes, &journal, &with_keep(entries, keep), keep, cut, &mut || ());
    (profile_of(&read(&journal), folder.path(), "kept.mscope"), folder)
}

#[test]
fn a_step_that_is_kept_is_told_in_full_and_another_in_its_peak() {
    let (profile, _folder) = kept(&training(200), Keep::Steps(Some(3), Some(4)), 50);
    let at = |step: u64| profile.report(Instant::Step(step));
    assert_eq!(at(3).expect("kept").at.expect("a moment").bytes, 1000 + 3 * (100 + 30) + 3);
    assert_eq!(at(4).expect("kept").at.expect("a moment").top_allocations.len(), 4);
    let error = at(100).expect_err("summed").to_string();
    assert!(error.starts_with("step:100 is summed only") && error.contains("kept: steps:3..4, from 0.003"), "{error}");
    let report = profile.report(Instant::Peak).expect("a report");
    assert_eq!(report.steps.len(), 200);
    assert_eq!(report.steps[99].peak.bytes, 1000 + 3 * (100 + 100 % 7 * 10) + 3);
    // The peak is the first step of the largest kind, long gone, and its groups are told.
    let peak = report.peak.expect("a peak");
    assert_eq!((peak.step, peak.bytes), (Some(6), 1000 + 3 * 160 + 3));
    assert_eq!(peak.top_allocations.len(), 4);
    let text = memscope_core::report::text(&profile.report(Instant::Peak).expect("a report"), Default::default());
    assert!(text.contains("kept: steps:3..4, from 0.003"), "{text}");
    assert!(profile.allocations() < 100, "{} rows", profile.allocations());
}

#[test]
fn peaks_keep_the_step_of_the_peak_and_the_last_one() {
    let (profile, _folder) = kept(&training(200), Keep::Peaks, 50);
    assert_eq!(profile.report(Instant::Step(6)).expect("the peak's").at.expect("a moment").top_allocations.len(), 4);
    assert_eq!(profile.report(Instant::Step(200)).expect("the last").at.expect("a moment").top_allocations.len(), 4);
    assert!(profile.report(Instant::Step(100)).is_err());
    assert!(profile.allocations() < 100, "{} rows", profile.allocations());
}

/// Each epoch counts its steps anew and keeps one more allocation: its third step has the peak, until the next one's.
#[test]
fn peaks_of_steps_whose_numbers_come_again_keep_the_latest_of_them() {
    const EPOCHS: u64 = 40;
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 7);
    trace.device(0, 0, UUID, 1 << 40);
    for epoch in 0..EPOCHS {
        for step in 0..10 {
            trace.now += 1_000_000;
            trace.step(0, step);
            if step == 3 {
                trace.alloc(0, 0x1000 + epoch * 0x1000, 1000);
            }
            for part in 1..=3 {
                trace.now += 1000;
                trace.alloc(0, 0x10_0000 * part, if step == 3 { 200 } else { 100 });
            }
            for part in 1..=3 {
                trace.now += 1000;
                trace.free(0, 0x10_0000 * part);
            }
        }
    }
    trace.now += 1000;
    trace.end(0);
    let (profile, _folder) = kept(&trace.entries, Keep::Peaks, 20);
    let report = profile.report(Instant::Peak).expect("kept");
    let peak = report.peak.expect("a peak");
    assert_eq!((peak.step, peak.bytes), (Some(3), EPOCHS * 1000 + 3 * 200));
    assert_eq!(report.totals.allocations, EPOCHS * (10 * 3 + 1));
    // What lives to the end, the step of the peak with one beside it, and what was not dropped yet.
    assert!(profile.allocations() < EPOCHS + 60, "{} rows", profile.allocations());
    let kept = report.kept.expect("not all is kept").spans;
    let last_epoch = (EPOCHS - 1) * 10 * 1_000_000;
    assert!(kept.iter().all(|span| span.begin_s >= last_epoch as f64 / 1e9), "{kept:?}");
}

/// What was asked for and did not come is said, with what there was.
#[test]
fn steps_that_were_never_marked_are_said() {
    let marked = training(100);
    let mut none = Trace::new(&["./serve"], None);
    none.process(0, 7);
    none.device(0, 0, UUID, 1 << 40);
    for turn in 0..100 {
        none.now += 1000;
        none.alloc(0, 0x1000 + turn % 3 * 0x1000, 100);
        none.now += 1000;
        none.free(0, 0x1000 + turn % 3 * 0x1000);
    }
    none.end(0);
    let told = |entries: &[Entry], (from, to): (Option<u64>, Option<u64>), cut: usize| {
        let (profile, _folder) = kept(entries, Keep::Steps(from, to), cut);
        let report = profile.report(Instant::Peak).expect("a report");
        let finding = report.findings.iter().find(|finding| finding.detail.kind() == "steps_not_marked");
        (finding.cloned(), report.kept.expect("it was asked for"))
    };
    let asked = (Some(500), Some(600));
    let (finding, kept) = told(&marked, asked, 50);
    let finding = finding.expect("none was marked");
    assert_eq!(
        finding.message,
        "none of steps:500..600 was there to be kept: the steps that were marked are 1 to 100; no step is kept"
    );
    assert_eq!((finding.severity, kept.summed > 0), (Severity::Warning, true));
    let (finding, _) = told(&none.entries, asked, 50);
    let finding = finding.expect("none was marked");
    assert_eq!(finding.message, "none of steps:500..600 was there to be kept: no step was marked; no step is kept");
    assert!(finding.advice.contains("memscope_step"), "{}", finding.advice);
    // What was too short to drop anything has it all, and says so.
    let (finding, kept) = told(&marked, asked, usize::MAX);
    assert!(
        finding.is_some_and(|finding| finding.severity == Severity::Note && finding.message.ends_with("was short"))
    );
    assert_eq!(
        kept.sentence(),
        "kept: everything, allocation by allocation: the run ended before there was anything that steps:500..600 drops"
    );
    for (from, to) in [(Some(100), None), (None, Some(1)), (Some(7), Some(7))] {
        assert!(told(&marked, (from, to), 50).0.is_none());
    }
}

#[test]
fn many_times_are_told_by_the_first_and_the_last() {
    let time = |begin: u32, end: Option<u32>| KeptTime { begin_s: begin.into(), end_s: end.map(f64::from) };
    let mut spans: Vec<KeptTime> = (0..57).map(|span| time(span * 10, Some(span * 10 + 1))).collect();
    spans.push(time(600, None));
    let kept = |spans: &[KeptTime]| {
        KeptReport { asked: "steps:1..".into(), spans: spans.to_vec(), summed: 9, figures_from_s: None }.sentence()
    };
    assert_eq!(
        kept(&spans),
        "kept: steps:1.., 58 times, the first from 0.000 s to 1.000 s, the last from 600.0 s on; 9 other allocations are summed \
         only"
    );
    assert_eq!(
        kept(&spans[56..]),
        "kept: steps:1.., from 560.0 s to 561.0 s and from 600.0 s on; 9 other allocations are summed only"
    );
}

/// Positions of changes have 32 bits. Those that remain are few here: when they are used up, figures are those of the whole all the
/// same, what is kept stays bounded, and moments without a position are told in figures alone.
#[test]
fn after_the_last_position_figures_are_exact_and_lists_are_refused() {
    const STEPS: u64 = 40;
    // One allocation at the beginning; a step begins, makes three and frees them.
    const CHANGES: u32 = 1 + STEPS as u32 * 7;
    let entries = training(STEPS);
    let mut whole = Model::new();
    entries.iter().for_each(|entry| drop(whole.apply(entry)));
    let folder = tempfile::tempdir().expect("a folder");
    let whole = profile_of(&whole, folder.path(), "whole.mscope").report(Instant::Peak).expect("a report");
    for keep in
        [Keep::Last(Span::Allocations(6)), Keep::Peaks, Keep::Steps(Some(30), None), Keep::Steps(Some(3), Some(4))]
    {
        for remaining in [1, CHANGES / 2, CHANGES, CHANGES + 1] {
            let (profile, _folder) = kept_after(u32::MAX - 1 - remaining, &entries, keep, 50);
            let report = profile.report(Instant::Peak).expect("a report");
            // What a step's bytes are for is as it was known then.
            let steps = |report: &Report| {
                let of = |step: &StepReport| (step.step, step.begin_s, step.end_s, step.peak, step.live_at_end);
                report.steps.iter().map(of).collect::<Vec<_>>()
            };
            assert!(steps(&report) == steps(&whole) && report.totals == whole.totals, "{keep}, {remaining}");
            for (told, expected) in report.devices.iter().zip(&whole.devices) {
                assert_eq!(told.peak, expected.peak, "{keep}, {remaining}");
                assert_eq!(told.ledger_at_end, expected.ledger_at_end, "{keep}, {remaining}");
            }
            let (peak, expected) = (report.peak.expect("a peak"), whole.peak.as_ref().expect("a peak"));
            assert_eq!((peak.bytes, peak.step), (expected.bytes, expected.step), "{keep}, {remaining}");
            let wanted = if matches!(keep, Keep::Steps(_, None)) { STEPS * 3 } else { 0 };
            assert!(profile.allocations() < 100 + wanted, "{keep}, {remaining}: {} rows", profile.allocations());
            // The peak is in step 6, a step is 7 changes, and its lists are told only if each has its position.
            let told = remaining > 7 * 6;
            assert_eq!(peak.top_allocations.is_empty(), !told, "{keep}, {remaining}");
            let sentence = report.kept.expect("it was asked for").sentence();
            let stands = remaining <= CHANGES;
            assert_eq!(sentence.contains("after 4,294,967,294 changes"), stands, "{keep}, {remaining}: {sentence}");
            // The last step was not dropped yet, whatever was asked for.
            let last = profile.report(Instant::Step(STEPS));
            if remaining < CHANGES {
                assert!(last.expect_err("no lists").to_string().contains("is summed only"), "{keep}, {remaining}");
            } else {
                assert_eq!(last.expect("kept").at.expect("a moment").top_allocations.len(), 4, "{keep}, {remaining}");
            }
            // What lives is told as ever.
            let query = Query { rows: Some(RowsQuery { window: 0..9, ..RowsQuery::default() }), ..Query::default() };
            let answer = Explorer::of_profile(&profile).expect("opened").answer(&Query { at: At::Live, ..query });
            assert_eq!(answer.rows.map(|rows| rows.total), Some(1), "{keep}, {remaining}");
            assert_eq!(answer.session.allocations, 1 + STEPS * 3);
        }
    }
}
