//! Sessions of which not everything is kept: figures of the whole are exact, what is kept is told as if all was, and whatever is
//! killed leaves a session that can be read.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use memscope_core::allocation::{Allocation, Model};
use memscope_core::explorer::{Answer, At, BandsQuery, Explorer, FlameQuery, Query, RowsQuery, Target, WindowQuery};
use memscope_core::findings::Severity;
use memscope_core::journal::Chain;
use memscope_core::journal::entry::{Entry, Nanoseconds, SessionInfo};
use memscope_core::keep::{Keep, Span, write_in_segments};
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, KeptReport, KeptTime, Report, StepReport};
use memscope_core::session::SessionFolder;
use memscope_wire::{Category, Event, MemoryKind, Origin};
use proptest::prelude::*;

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
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1u64..5000, proptest::bool::weighted(0.2)).prop_map(|(bytes, host)| Act::Make { bytes, host }),
        5 => (0usize..8).prop_map(|which| Act::Free { which }),
        2 => Just(Act::Step),
        1 => (0u8..3).prop_map(|name| Act::Phase { name }),
        1 => (0u8..3).prop_map(|name| Act::Scope { name }),
        1 => Just(Act::Sample),
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
    for (process, passes, act) in acts {
        trace.now += passes;
        let mine = &mut live[*process as usize];
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
                step[*process as usize] += 1;
                trace.step(*process, step[*process as usize]);
            }
            Act::Phase { name } => trace.phase(*process, ["forward", "backward", "optimizer"][name as usize]),
            Act::Scope { name } => {
                if name == 0 {
                    trace.pop(*process);
                } else {
                    trace.push(*process, ["", "encoder", "decoder"][name as usize]);
                }
            }
            Act::Sample => trace.sample(UUID_TEXT, 1 << 40, 1 << 30, 0, &[(7, 1 << 29)]),
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
        let entries = with_keep(&trace.entries, keep);
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal");
        write(&journal, &entries, keep, cut, &mut || ());
        let short = read(&journal);
        let mut whole = Model::new();
        entries.iter().for_each(|entry| { whole.apply(entry); });

        let full = profile_of(&whole, folder.path(), "whole.mscope");
        let kept = profile_of(&short, folder.path(), "kept.mscope");
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
        let (mut said, mut expected) = (says(&kept), says(&full));
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
            prop_assert_eq!(rows(&short), rows(&whole));
        }
        // As views open both profiles.
        let query = Query { at: At::Live, steps: 0..1000, rows: Some(RowsQuery { window: 0..1000, ..RowsQuery::default() }), ..Query::default() };
        let told = |profile: &Profile| {
            let answer = Explorer::of_profile(profile).expect("opened").answer(&query);
            (answer.peak.map(|peak| (peak.state.rows, peak.state.time)), answer.steps_total, answer.session.allocations, answer.rows.map(|rows| rows.total))
        };
        prop_assert_eq!(told(&kept), told(&full));
    }

    /// At every moment a view says how much its list covers, and that is true; where it says nothing, the list is whole.
    #[test]
    fn lists_say_how_much_they_cover(
        acts in proptest::collection::vec((0u32..2, 1u64..8, act()), 1..90),
        keep in keep(),
        cut in 1usize..40,
    ) {
        let (trace, _) = perform(&acts);
        let entries = with_keep(&trace.entries, keep);
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal");
        write(&journal, &entries, keep, cut, &mut || ());
        let mut whole = Model::new();
        entries.iter().for_each(|entry| { whole.apply(entry); });
        let open = |model: &Model, name: &str| Explorer::of_profile(&profile_of(model, folder.path(), name)).expect("opened");
        let (mut kept, mut full) = (open(&read(&journal), "kept.mscope"), open(&whole, "whole.mscope"));
        let range = Nanoseconds(0)..Nanoseconds(trace.now);
        let steps: Vec<u64> = full.answer(&Query { steps: 0..1000, ..Query::default() }).steps.iter().map(|step| step.number).collect();
        let times = (0..=trace.now).step_by((trace.now / 16 + 1) as usize).map(|time| At::Time(Nanoseconds(time)));
        let moments = times.chain(steps.into_iter().map(At::Step)).chain([At::Peak, At::Live]);
        for (at, target) in moments.flat_map(|at| [Target::All, Target::Host].map(|target| (at, target))) {
            let query = Query {
                target,
                at,
                rows: Some(RowsQuery { window: 0..1000, ..RowsQuery::default() }),
                scopes: true,
                flame: Some(FlameQuery { parts: 1000, ..FlameQuery::default() }),
                window: Some(WindowQuery { range: range.clone(), buckets: trace.now as usize }),
                bands: Some(BandsQuery { range: range.clone(), columns: trace.now as usize, ..BandsQuery::default() }),
                ..Query::default()
            };
            let [told, all] = [&mut kept, &mut full].map(|explorer| explorer.answer(&query));
            let rows = |answer: &Answer| {
                let rows = &answer.rows.as_ref().expect("asked for").rows;
                let row = |row: &memscope_core::explorer::Row| match row {
                    memscope_core::explorer::Row::Allocation(row) => (row.pid, row.address, row.birth, row.bytes, row.memory),
                    memscope_core::explorer::Row::Group(_) => panic!("not grouped"),
                };
                rows.iter().map(row).collect::<std::collections::BTreeSet<_>>()
            };
            // Which rows count in the target's live bytes.
            let counts = |memory: MemoryKind| memory.on_host() == told.of_host;
            let (listed, live) = (rows(&told), all.now.state.rows.live_bytes());
            let bytes = listed.iter().filter(|row| counts(row.4)).map(|row| row.3).sum::<u64>();
            prop_assert!(listed.is_subset(&rows(&all)), "{:?}", at);
            // Host memory beside the target's is not what is spoken of.
            let of_target = |rows: std::collections::BTreeSet<_>| rows.into_iter().filter(|row: &(u32, u64, Nanoseconds, u64, MemoryKind)| counts(row.4)).collect::<Vec<_>>();
            match told.now.partial {
                Some(partial) => {
                    prop_assert_eq!(partial.listed, bytes, "{:?}", at);
                    prop_assert_eq!(partial.whole, Some(told.now.state.rows.live_bytes()));
                    prop_assert!(bytes < told.now.state.rows.live_bytes());
                    prop_assert!(told.nearest_listed().is_some() && told.covers(&partial).contains("summed only"));
                }
                None => prop_assert_eq!(of_target(listed), of_target(rows(&all)), "{:?}", at),
            }
            // Of a time that is summed only the series tells: the largest moment of the time around it.
            let exact = !matches!(at, At::Time(time) if told.session.listed.as_ref().is_some_and(|listed| !listed.has(time)));
            let told_live = told.now.state.rows.live_bytes();
            prop_assert!(if exact { told.now.state.rows.live == all.now.state.rows.live } else { told_live >= live }, "{:?}: {} and {}", at, told_live, live);
            let device = |answer: &Answer| answer.devices.iter().map(|device| device.rows.live_bytes()).sum::<u64>();
            prop_assert!(if exact && target == Target::All && !told.of_host { device(&told) == device(&all) } else { device(&told) >= device(&all) }, "{:?}", at);
            prop_assert!(told.now.host.live_bytes() >= all.now.host.live_bytes(), "{:?}", at);
            prop_assert_eq!(told.flame.as_ref().map(|flame| flame.whole()), Some(told_live), "{:?}", at);
            prop_assert_eq!(told.top_scopes_bytes, told_live, "{:?}", at);
            // Over time: of each bucket the largest moment, and what bands and the rest make.
            let buckets = |answer: &Answer| answer.window.as_ref().expect("asked for").buckets.iter().map(|bucket| (bucket.rows.live_bytes(), bucket.host.iter().sum::<u64>())).collect::<Vec<_>>();
            prop_assert_eq!(buckets(&told), buckets(&all), "{:?}", target);
            let most = |answer: &Answer| answer.bands.as_ref().expect("asked for").rest.iter().map(|rest| rest.drawn + rest.bytes()).max();
            prop_assert_eq!(most(&told), most(&all), "{:?}", target);
        }
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
        let entries = with_keep(&session(&deeds, true), keep);
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal");
        write(&journal, &entries, keep, cut, &mut || ());
        let short = read(&journal);
        let mut whole = Model::new();
        entries.iter().for_each(|entry| { whole.apply(entry); });
        let sums = |model: &Model| model.devices().map(|device| (device.rows, device.managed)).collect::<Vec<_>>();
        prop_assert_eq!(sums(&short), sums(&whole));
        prop_assert_eq!(short.host(), whole.host());
        prop_assert_eq!(short.progress(), whole.progress());
        let full = profile_of(&whole, folder.path(), "whole.mscope");
        let kept = profile_of(&short, folder.path(), "kept.mscope");
        let report = |profile: &Profile| profile.report(Instant::Peak).expect("a report");
        prop_assert_eq!(report(&kept).totals, report(&full).totals);
        for (of_kept, of_whole) in report(&kept).devices.iter().zip(&report(&full).devices) {
            prop_assert_eq!(&of_kept.ledger_at_end.rows, &of_whole.ledger_at_end.rows);
        }
        let _ = Explorer::of_profile(&kept).expect("opened").answer(&Query::default());
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

#[test]
fn a_step_that_is_kept_is_told_in_full_and_another_in_its_peak() {
    let keep = Keep::Steps(Some(3), Some(4));
    let entries = with_keep(&training(200), keep);
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    write(&journal, &entries, keep, 50, &mut || ());
    let profile = profile_of(&read(&journal), folder.path(), "kept.mscope");
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
    let keep = Keep::Peaks;
    let entries = with_keep(&training(200), keep);
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    write(&journal, &entries, keep, 50, &mut || ());
    let profile = profile_of(&read(&journal), folder.path(), "kept.mscope");
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
    let entries = with_keep(&trace.entries, Keep::Peaks);
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    write(&journal, &entries, Keep::Peaks, 20, &mut || ());
    let profile = profile_of(&read(&journal), folder.path(), "kept.mscope");
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
        let keep = Keep::Steps(from, to);
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal");
        write(&journal, &with_keep(entries, keep), keep, cut, &mut || ());
        let report = profile_of(&read(&journal), folder.path(), "kept.mscope").report(Instant::Peak).expect("a report");
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
    assert_eq!(kept.sentence(), "kept: all; the run was too short for steps:500..600 to drop anything");
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
            let folder = tempfile::tempdir().expect("a folder");
            let journal = folder.path().join("journal");
            write_after(u32::MAX - 1 - remaining, &journal, &with_keep(&entries, keep), keep, 50, &mut || ());
            let profile = profile_of(&read(&journal), folder.path(), "kept.mscope");
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
