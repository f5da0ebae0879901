//! Sessions of which not everything is kept: figures of the whole are exact, what is kept is told as if all was, and whatever is
//! killed leaves a session that can be read.

mod lists;
mod told;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use memscope_core::allocation::{Allocation, Model};
use memscope_core::explorer::{At, Explorer, Query, RowsQuery};
use memscope_core::journal::Chain;
use memscope_core::journal::entry::{Entry, Nanoseconds, SessionInfo};
use memscope_core::keep::{Keep, Span, write_in_segments};
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Report};
use memscope_core::session::SessionFolder;
use memscope_wire::{Category, Event, MemoryKind, Origin};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::deeds::{Deed, deed, session};
use crate::trace::{ALLOC_ROW, Trace, UUID, UUID_TEXT};

/// What a program does that makes and frees memory, and tells nothing late.
#[derive(Clone, Debug)]
enum Act {
    Make { bytes: u64, host: bool },
    Free { which: usize },
    Step,
    Phase { name: u8 },
    Scope { name: u8 },
    Sample,
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1u64..5000, proptest::bool::weighted(0.2)).prop_map(|(bytes, host)| Act::Make { bytes, host }),
        5 => (0usize..8).prop_map(|which| Act::Free { which }),
        2 => Just(Act::Step),
        1 => (0u8..3).prop_map(|name| Act::Phase { name }),
        1 => (0u8..3).prop_map(|name| Act::Scope { name }),
        1 => Just(Act::Sample),
        1 => Just(Act::Restart),
    ]
}

fn keep() -> impl Strategy<Value = Keep> {
    let number = || proptest::option::of(0u64..6);
    prop_oneof![
        3 => (0u64..20).prop_map(|count| Keep::Last(Span::Allocations(count))),
        3 => (0u64..100).prop_map(|time| Keep::Last(Span::Time(Nanoseconds(time)))),
        3 => (number(), number()).prop_map(|(from, to)| Keep::Steps(from, to)),
        3 => Just(Keep::Peaks),
    ]
}

/// Plain sums over what the program did, in the order in which it did it.
#[derive(Default, Debug)]
struct Sums {
    live: u64,
    peak: u64,
    peak_at: u64,
    host_live: u64,
    host_peak: u64,
    made: u64,
    made_bytes: u64,
    freed: u64,
}

impl Sums {
    fn make(&mut self, now: u64, bytes: u64, host: bool) {
        self.made += 1;
        self.made_bytes += bytes;
        if host {
            self.host_live += bytes;
            self.host_peak = self.host_peak.max(self.host_live);
            return;
        }
        self.live += bytes;
        if self.live > self.peak {
            (self.peak, self.peak_at) = (self.live, now);
        }
    }

    fn free(&mut self, bytes: u64, host: bool) {
        self.freed += 1;
        self.give_back(bytes, host);
    }

    fn give_back(&mut self, bytes: u64, host: bool) {
        if host {
            self.host_live -= bytes;
        } else {
            self.live -= bytes;
        }
    }
}

/// The session, and what it comes to.
fn perform(acts: &[(u32, u64, Act)]) -> (Trace, Sums) {
    let mut trace = Trace::new(&["random"], None);
    for process in 0..2 {
        trace.process(process, 7 + process);
        trace.device(process, 0, UUID, 1 << 40);
    }
    let (mut sums, mut step, mut next) = (Sums::default(), [0u64; 2], 0x10_0000u64);
    let mut live: [Vec<(u64, u64, bool)>; 2] = Default::default();
    let (mut programs, mut begun) = ([0, 1], 2);
    // Of one that is listed the memory counts until NVML lists it no more, a millisecond at least: an age here.
    let goes_on = !acts.iter().any(|(place, _, act)| *place == 0 && matches!(act, Act::Restart));
    let listed = if goes_on { 7 } else { 1 };
    for (place, passes, act) in acts {
        trace.now += passes;
        let mine = &mut live[*place as usize];
        let (process, step) = (&mut programs[*place as usize], &mut step[*place as usize]);
        match *act {
            Act::Make { bytes, host } => {
                let memory = if host { MemoryKind::Host } else { MemoryKind::Device };
                let (address, row) = (next, ALLOC_ROW);
                // Addresses come again.
                next = if next > 0x18_0000 { 0x10_0000 } else { next + 8192 };
                if mine.iter().any(|(taken, ..)| *taken == address) {
                    continue;
                }
                trace.event(
                    *process,
                    Event::Alloc { address, bytes, requested: bytes, stream: 0, device: 0, row, memory },
                );
                sums.make(trace.now, bytes, host);
                mine.push((address, bytes, host));
            }
            Act::Free { which } => {
                if mine.is_empty() {
                    continue;
                }
                let (address, bytes, host) = mine.remove(which % mine.len());
                trace.free(*process, address);
                sums.free(bytes, host);
            }
            Act::Step => {
                *step += 1;
                trace.step(*process, *step);
            }
            Act::Phase { name } => trace.phase(*process, ["forward", "backward", "optimizer"][name as usize]),
            Act::Scope { name } => {
                if name == 0 {
                    trace.pop(*process);
                } else {
                    trace.push(*process, ["", "encoder", "decoder"][name as usize]);
                }
            }
            Act::Sample => trace.sample(UUID_TEXT, 1 << 40, 1 << 30, 0, &[(listed, 1 << 29)]),
            // The program ends, and another one begins in its place, which counts its steps anew.
            Act::Restart => {
                mine.drain(..).for_each(|(_, bytes, host)| sums.give_back(bytes, host));
                trace.closed(*process);
                trace.now += 1;
                (*process, *step, begun) = (begun, 0, begun + 1);
                trace.program(*process, 7 + *process);
                trace.device(*process, 0, UUID, 1 << 40);
            }
        }
    }
    trace.now += 1;
    trace.end(0);
    (trace, sums)
}

/// The session's journal in segments of so many entries.
fn write(journal: &Path, entries: &[Entry], keep: Keep, cut: usize, step: &mut dyn FnMut()) {
    write_after(0, journal, entries, keep, cut, step);
}

/// The same, with so many changes behind its beginning.
fn write_after(changes: u32, journal: &Path, entries: &[Entry], keep: Keep, cut: usize, step: &mut dyn FnMut()) {
    let mut time = Nanoseconds(0);
    let segments: Vec<(Nanoseconds, &[Entry])> = entries
        .chunks(cut)
        .map(|entries| {
            for entry in entries {
                if let Entry::Records { records, .. } = entry {
                    time = time.max(Nanoseconds(records.iter().map(|record| record.ticks).max().unwrap_or(0)));
                }
            }
            (time, entries)
        })
        .collect();
    write_in_segments(journal, keep, &segments, changes, step).expect("written");
}

fn with_keep(entries: &[Entry], keep: Keep) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    if let Some(Entry::Session(session)) = entries.first_mut() {
        session.keep = Some(keep);
    }
    entries
}

fn read(journal: &Path) -> Model {
    let mut model = Model::new();
    for entry in Chain::open(journal).expect("a journal") {
        model.apply(&entry.expect("whole"));
    }
    model
}

fn profile_of(model: &Model, folder: &Path, name: &str) -> Profile {
    let path = folder.join(name);
    profile::write(model, &path, false).expect("written");
    Profile::open(&path).expect("opened")
}

/// A session of which so much is kept, in segments of so many entries, as it is read again, and the same session with all of it.
struct Twice {
    short: Model,
    whole: Model,
    kept: Profile,
    full: Profile,
    _folder: TempDir,
}

fn twice(entries: &[Entry], keep: Keep, cut: usize) -> Twice {
    let entries = with_keep(entries, keep);
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    write(&journal, &entries, keep, cut, &mut || ());
    let (short, mut whole) = (read(&journal), Model::new());
    entries.iter().for_each(|entry| drop(whole.apply(entry)));
    let full = profile_of(&whole, folder.path(), "whole.mscope");
    let kept = profile_of(&short, folder.path(), "kept.mscope");
    Twice { short, whole, kept, full, _folder: folder }
}

/// Without what says how much is kept, and without judgement.
fn plain(report: Report) -> Report {
    Report { kept: None, findings: Vec::new(), ..report }
}

type Row = (u32, u64, u64, u64, u64, (u8, u32, u32, u32), u16);

/// An allocation without numbers that depend on how many rows there are.
fn row(allocation: &Allocation) -> Row {
    let Allocation { process, address, bytes, birth_ticks, death_ticks, .. } = *allocation;
    let Allocation { category, step, phase, scope, flags, .. } = *allocation;
    (process, address, bytes, birth_ticks, death_ticks, (category as u8, step, phase, scope), flags)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Of changes of several processes at one time, which came first is not known: here each has its own.
    #[test]
    fn figures_are_those_of_the_whole(
        acts in proptest::collection::vec((0u32..2, 1u64..8, act()), 1..90),
        keep in keep(),
        cut in 1usize..40,
    ) {
        let (trace, sums) = perform(&acts);
        let Twice { short, whole, kept, full, .. } = &twice(&trace.entries, keep, cut);
        let report = kept.report(Instant::Peak).expect("a report");
        // Against plain sums.
        let device = report.devices.first();
        prop_assert_eq!(device.map_or(0, |device| device.peak.live.bytes), sums.peak);
        if sums.peak > 0 {
            prop_assert_eq!(report.devices[0].peak.live.time_s, sums.peak_at as f64 / 1e9);
            prop_assert_eq!(report.category_peaks.unknown.bytes, sums.peak);
        }
        prop_assert_eq!(report.host.peak.bytes, sums.host_peak);
        prop_assert_eq!((report.totals.allocations, report.totals.bytes, report.totals.frees), (sums.made, sums.made_bytes, sums.freed));
        let live = short.devices().map(|device| device.rows.live_bytes()).sum::<u64>();
        prop_assert_eq!((live, short.host().live_bytes()), (sums.live, sums.host_live));
        // Against the whole profile: everything that is told without asking for a moment.
        let says = |profile: &Profile| plain(profile.report(Instant::Peak).expect("a report"));
        let (mut said, mut expected) = (says(kept), says(full));
        if let Some(summed) = &report.kept {
            // The end may lie before the last sums: then it is told in figures alone.
            let begin = summed.spans.last().expect("the end").begin_s;
            for report in [&mut said, &mut expected] {
                report.end = report.end.take().filter(|end| end.time_s > begin);
                report.host.end = report.host.end.take().filter(|end| end.time_s > begin);
            }
        }
        prop_assert_eq!(&said, &expected);
        // At every moment that is kept, and not beyond it.
        let spans = report.kept.as_ref().map(|kept| kept.spans.clone()).unwrap_or_default();
        let stride = (trace.now / 16 + 1) as usize;
        for time in (0..=trace.now).step_by(stride) {
            let at = Instant::Time(Nanoseconds(time));
            let seconds = time as f64 / 1e9;
            let here = spans.iter().any(|span| span.begin_s <= seconds && span.end_s.is_none_or(|end| seconds < end));
            if report.kept.is_some() && !here {
                let error = kept.report(at).expect_err("summed").to_string();
                prop_assert!(error.contains("summed only") && error.contains(&keep.to_string()), "{}", error);
                continue;
            }
            let [told, all] = [&kept, &full].map(|profile| profile.report(at).expect("kept"));
            prop_assert_eq!((told.at, told.host.at), (all.at, all.host.at), "{}", time);
        }
        for step in &expected.steps {
            let at = Instant::Step(step.step);
            if let Ok(told) = kept.report(at) {
                prop_assert_eq!(told.at, full.report(at).expect("all").at, "step {}", step.step);
            } else {
                prop_assert!(report.kept.is_some());
            }
        }
        // Rows that lived in what is kept.
        if let Some(kept) = &report.kept {
            let lived = |allocation: &&Allocation| kept.spans.iter().any(|span| {
                let ended = allocation.death_ticks > 0 && (allocation.death_ticks as f64) / 1e9 <= span.begin_s;
                !ended && span.end_s.is_none_or(|end| (allocation.birth_ticks as f64) / 1e9 <= end)
            });
            let rows = |model: &Model| {
                let mut rows: Vec<Row> = model.allocations().iter().filter(lived).map(row).collect();
                rows.sort_unstable();
                rows
            };
            prop_assert_eq!(rows(short), rows(whole));
        }
        // As views open both profiles.
        let query = Query { at: At::Live, steps: 0..1000, rows: Some(RowsQuery { window: 0..1000, ..RowsQuery::default() }), ..Query::default() };
        let told = |profile: &Profile| {
            let answer = Explorer::of_profile(profile).expect("opened").answer(&query);
            (answer.peak.map(|peak| (peak.state.rows, peak.state.time)), answer.steps_total, answer.session.allocations, answer.rows.map(|rows| rows.total))
        };
        prop_assert_eq!(told(kept), told(full));
    }

    /// Whatever comes late, is refused, holds blocks or ends: sums of now, totals and what lives are exact, and nothing panics.
    #[test]
    fn what_lives_is_exact_whatever_happens(
        deeds in proptest::collection::vec((prop_oneof![3 => Just(0u32), 1 => 1u32..3], 0u64..8, proptest::bool::weighted(0.1), deed()), 1..80),
        keep in keep(),
        cut in 1usize..30,
    ) {
        // A refusal of what is not kept any more comes too late.
        let refused = |deed: &Deed| matches!(deed, Deed::Refuse { .. } | Deed::RefuseAtOnce { .. });
        let deeds: Vec<_> = deeds.into_iter().filter(|(_, _, _, deed)| !refused(deed)).collect();
        let Twice { short, whole, kept, full, .. } = &twice(&session(&deeds, true), keep, cut);
        let sums = |model: &Model| model.devices().map(|device| (device.rows, device.managed)).collect::<Vec<_>>();
        prop_assert_eq!(sums(short), sums(whole));
        prop_assert_eq!(short.host(), whole.host());
        prop_assert_eq!(short.progress(), whole.progress());
        let report = |profile: &Profile| profile.report(Instant::Peak).expect("a report");
        prop_assert_eq!(report(kept).totals, report(full).totals);
        for (of_kept, of_whole) in report(kept).devices.iter().zip(&report(full).devices) {
            prop_assert_eq!(&of_kept.ledger_at_end.rows, &of_whole.ledger_at_end.rows);
        }
        let _ = Explorer::of_profile(kept).expect("opened").answer(&Query::default());
    }
}

/// A loop that keeps one more of every ten, in steps.
fn training(steps: u64) -> Vec<Entry> {
    let mut trace = Trace::new(&["./train"], None);
    trace.process(0, 7);
    trace.device(0, 0, UUID, 1 << 40);
    trace.tagged(0, 0x1000, 1000, Category::Weights, "weights");
    for step in 1..=steps {
        trace.now = step * 1_000_000;
        trace.step(0, step);
        for part in 0..3 {
            trace.now += 1000;
            let name = trace.name(0, "activations");
            let address = 0x10_0000 * (part + 1);
            trace.alloc(0, address, 100 + step % 7 * 10 + part);
            trace.event(0, Event::Tag { address, name, category: Category::Activations, origin: Origin::Tagged });
        }
        for part in 0..3 {
            trace.free(0, 0x10_0000 * (part + 1));
        }
    }
    trace.now += 1000;
    trace.end(0);
    trace.entries
}

/// Killed before each thing that is done to a file: what is there tells of everything that was recorded.
#[test]
fn a_kill_at_every_write_of_a_checkpoint_loses_nothing() {
    let keep = Keep::Last(Span::Allocations(6));
    let entries = with_keep(&training(40), keep);
    let mut whole = Model::new();
    let mut killed_at = 0;
    let mut written = BTreeMap::new();
    for last in 0.. {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal");
        let mut steps = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            write(&journal, &entries, keep, 24, &mut || {
                steps += 1;
                if steps > last {
                    // As a kill would, it leaves everything as it is.
                    std::panic::resume_unwind(Box::new("killed"));
                }
            });
        }));
        let short = read(&journal);
        // What had been recorded by then, from the segments that there were: all of it counts.
        let recorded = short.progress().allocations;
        let expected = written.entry(recorded).or_insert_with(|| {
            whole = Model::new();
            for entry in &entries {
                if whole.progress().allocations == recorded && matches!(entry, Entry::Records { records, .. } if records.iter().any(|record| record.kind() == memscope_wire::event::kind::ALLOC)) {
                    break;
                }
                whole.apply(entry);
            }
            (whole.progress().peak_live_bytes, whole.progress().allocations)
        });
        assert_eq!((short.progress().peak_live_bytes, recorded), *expected, "killed before step {last}");
        if outcome.is_ok() {
            assert_eq!(recorded, 1 + 40 * 3);
            break;
        }
        killed_at += 1;
        assert!(recorded >= 3, "something had been recorded when sums were first written");
    }
    assert!(killed_at > 50, "{killed_at} kills");
}

/// Nothing is cut off behind sums that cannot be read, and a memscope that cannot read them says so.
#[test]
fn damaged_sums_are_told_and_the_rest_stays_as_it_is() {
    let keep = Keep::Last(Span::Allocations(6));
    let place = tempfile::tempdir().expect("a folder");
    let session = SessionInfo { keep: Some(keep), ..SessionInfo::begin(vec!["train".into()]) };
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).expect("a session");
    let entries = with_keep(&training(40), keep);
    write(&folder.journal(), &entries[..entries.len() - 1], keep, 24, &mut || ());
    let summed = folder.path().join("journal.summed");
    let whole = std::fs::read(&summed).expect("sums");
    let files = || {
        let files = std::fs::read_dir(folder.path()).expect("a folder").flatten();
        files.filter_map(|file| Some((file.file_name(), std::fs::read(file.path()).ok()?))).collect::<BTreeMap<_, _>>()
    };
    for (at, value) in [(whole.len() / 2, whole[whole.len() / 2] ^ 1), (8, 99)] {
        let mut damaged = whole.clone();
        damaged[at] = value;
        std::fs::write(&summed, damaged).expect("written");
        let before = files();
        let error = memscope_core::recover::recover(&folder).expect_err("damaged").to_string();
        assert!(error.contains("journal.summed"), "{error}");
        assert_eq!(files(), before);
    }
    std::fs::write(&summed, whole).expect("written");
    let recovery = memscope_core::recover::recover(&folder).expect("recovered");
    assert_eq!((recovery.records_added, recovery.running.len()), (0, 0));
    assert_eq!(read(&folder.journal()).progress().allocations, 1 + 40 * 3);
    folder.remove().expect("removed");
}
