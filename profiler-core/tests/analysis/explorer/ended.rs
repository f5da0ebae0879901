//! Whole sessions: an explorer that took in all entries, and one that opened the profile, answer as the report does.

use memscope_core::allocation::Model;
use memscope_core::explorer::{
    Answer, At, DeviceView, Explorer, Gravest, Grouping, Limits, MomentView, Query, Row, RowsQuery, Running, StepView,
    Target, overview_of,
};
use memscope_core::findings::Detail;
use memscope_core::journal::entry::{Entry, Nanoseconds};
use memscope_core::ledger::EventRows;
use memscope_core::profile::{self, Profile};
use memscope_core::report::{ByCategory, HostReport, Instant, Report, Rows, Snapshot};
use memscope_wire::Category;

use crate::reports::{layers, out_of_memory};
use crate::trace::{Trace, training};

fn nanoseconds(seconds: f64) -> Nanoseconds {
    Nanoseconds((seconds * 1e9).round() as u64)
}

pub fn explorer(entries: &[Entry], limits: Limits) -> Explorer {
    let mut explorer = Explorer::new(limits);
    entries.iter().for_each(|entry| explorer.apply(entry));
    explorer
}

/// Writes a model as a profile and opens it.
pub fn through_a_profile(model: &Model) -> Profile {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.mscope");
    profile::write(model, &path, false).expect("written");
    Profile::open(&path).expect("opened")
}

fn rows(rows: &EventRows) -> Rows {
    Rows::from(rows)
}

/// A moment of one device as the report and the explorer tell it.
fn compare(answer: &Answer, snapshot: &Snapshot, what: &str) {
    let state = &answer.now.state;
    assert_eq!(rows(&state.rows), snapshot.ledger.rows, "{what}");
    assert_eq!(rows(&state.managed), snapshot.ledger.managed, "{what}");
    assert_eq!(state.time, nanoseconds(snapshot.time_s), "{what}");
    assert_eq!(state.step, snapshot.step, "{what}");
    assert_eq!(answer.now.phase, snapshot.phase.clone().unwrap_or_default(), "{what}");
    let sample = answer.now.device.as_ref().map(|sample| (&sample.rows).into());
    assert_eq!(sample, snapshot.ledger.device, "{what}");
    let scopes: Vec<_> = answer
        .top_scopes
        .iter()
        .map(|scope| (scope.path.clone(), ByCategory::from_numbers(scope.live), scope.allocations))
        .collect();
    let expected: Vec<_> = snapshot
        .top_scope_groups
        .iter()
        .map(|scope| (scope.scope.clone(), scope.by_category, scope.allocations))
        .collect();
    assert_eq!(scopes, expected, "{what}");
    let list = answer.rows.as_ref().expect("rows were asked for");
    let mut found: Vec<_> = list
        .rows
        .iter()
        .filter_map(|row| match row {
            // The report tells of device memory.
            Row::Allocation(row) if row.memory != memscope_wire::MemoryKind::Managed => {
                Some((row.bytes, row.address, row.scope.clone(), row.step, row.birth, row.pid))
            }
            _ => None,
        })
        .collect();
    let mut largest: Vec<_> = snapshot
        .top_allocations
        .iter()
        .map(|row| (row.bytes, row.address, row.scope.clone(), row.step, nanoseconds(row.time_s), row.pid))
        .collect();
    found.sort();
    largest.sort();
    if largest.len() < 20 {
        assert_eq!(found, largest, "{what}");
    } else {
        assert!(largest.iter().all(|row| found.contains(row)), "{what}");
    }
    let live: u64 = found.iter().map(|row| row.0).sum();
    assert_eq!(live, snapshot.bytes, "{what}: the list is complete");
}

/// The groups by name are those of the report, as far as that tells them.
fn compare_groups(answer: &Answer, snapshot: &Snapshot, what: &str) {
    let list = answer.rows.as_ref().expect("rows were asked for");
    let found: Vec<_> = list
        .rows
        .iter()
        .filter_map(|row| match row {
            Row::Group(row) => Some(row),
            Row::Allocation(_) => None,
        })
        .map(|row| (row.label.clone(), ByCategory::from_numbers(row.live), row.allocations))
        .collect();
    let told = snapshot.top_groups.iter().map(|group| {
        let category =
            Category::ALL.into_iter().find(|category| category.name() == group.category).expect("a category");
        let mut live = [0; Category::ALL.len()];
        live[category as usize] = group.bytes;
        (group.name.clone(), ByCategory::from_numbers(live), group.allocations)
    });
    let told: Vec<_> = told.collect();
    assert_eq!(found.len(), list.matching, "{what}: the list is complete");
    // The report tells of device memory; a list has managed and pinned memory too.
    if answer.now.state.managed.reserved > 0 || answer.now.host.reserved > 0 {
        return;
    }
    // The report tells the first twenty.
    assert_eq!(found[..found.len().min(20)], told, "{what}");
}

/// Every moment that reports tell, of every device.
pub fn compare_with_reports(explorer: &mut Explorer, report: impl Fn(Instant) -> Report, last: u64) {
    let whole = report(Instant::Peak);
    let list = RowsQuery { window: 0..100_000, ..RowsQuery::default() };
    let mut ask = |target: Target, at: At, group: Option<Grouping>| {
        let rows = Some(RowsQuery { group, ..list.clone() });
        explorer.answer(&Query { target, at, rows, steps: 0..1000, ..Query::default() })
    };
    let everything = ask(Target::All, At::Live, None);
    assert_eq!(everything.session.allocations, whole.totals.allocations + whole.totals.blocks);
    assert_eq!(everything.session.exit_status, whole.exit_status);
    assert_eq!(everything.session.last_time, nanoseconds(whole.duration_s));
    assert_eq!(everything.session.state, Running::Ended);
    assert_eq!(*everything.findings, whole.findings);
    assert_eq!(everything.devices.len(), whole.devices.len());
    // Of devices without a UUID, several may go by one name.
    let position = |uuid: &str| {
        let mut found = (0..).zip(&whole.devices).filter(|(_, device)| device.uuid == uuid);
        let position = found.next().expect("a device").0;
        found.next().is_none().then_some(position)
    };
    for (number, (device, said)) in (0..).zip(everything.devices.iter().zip(&whole.devices)) {
        assert_eq!((&device.uuid, &device.name, device.capacity), (&said.uuid, &said.name, said.capacity));
        assert_eq!(device.peak_live, said.peak.live.bytes);
        let answer = ask(Target::Device(number), At::Live, None);
        assert_eq!(rows(&answer.now.state.rows), said.ledger_at_end.rows);
        let peak = answer.peak.as_ref();
        assert_eq!(peak.map(|peak| rows(&peak.state.rows)), said.ledger_at_peak.map(|ledger| ledger.rows));
        if position(&said.uuid).is_none() {
            continue;
        }
        let steps: Vec<_> = answer
            .steps
            .iter()
            .map(|step| (step.number, step.begin, step.end, step.peak, ByCategory::from_numbers(step.at_peak)))
            .collect();
        let expected: Vec<_> = whole
            .steps
            .iter()
            .filter(|step| step.device == said.uuid)
            .map(|step| {
                (step.step, nanoseconds(step.begin_s), step.end_s.map(nanoseconds), step.peak.bytes, step.by_category)
            })
            .collect();
        assert_eq!(steps, expected);
    }
    // Older profiles do not have it.
    if whole.host.moment.is_some() {
        for (instant, at) in [(Instant::Peak, At::Peak), (Instant::End, At::Live)] {
            let host = report(instant).host;
            let snapshot = if instant == Instant::Peak { host.moment } else { host.end }.expect("something was live");
            let what = format!("host memory, {instant}");
            compare(&ask(Target::Host, at, None), &snapshot, &what);
            compare_groups(&ask(Target::Host, at, Some(Grouping::Name)), &snapshot, &what);
        }
        for step in &whole.host.steps {
            let snapshot = report(Instant::Step(step.step)).host.at.expect("a step");
            let (at, what) = (At::Step(step.step), format!("host memory, step {}", step.step));
            compare(&ask(Target::Host, at, None), &snapshot, &what);
        }
        for time in [0, last / 7, last / 3, last / 2, last * 9 / 10, last, last * 2].map(Nanoseconds) {
            let snapshot = report(Instant::Time(time)).host.at.expect("a moment");
            let (at, what) = (At::Time(time), format!("host memory, time {}", time.0));
            compare(&ask(Target::Host, at, None), &snapshot, &what);
        }
        let answer = ask(Target::Host, At::Live, None);
        let steps: Vec<_> = (answer.steps.iter())
            .map(|step| (step.number, step.begin.0, step.peak, ByCategory::from_numbers(step.at_peak)))
            .collect();
        let expected: Vec<_> = (whole.host.steps.iter())
            .map(|step| (step.step, nanoseconds(step.begin_s).0, step.peak.bytes, step.by_category))
            .collect();
        assert_eq!(steps, expected, "steps of host memory");
        // Where there is no device memory, that is what is shown unless something else is asked for.
        if everything.of_host {
            assert_eq!(
                (&everything.now.state, &everything.peak, &everything.series),
                (&answer.now.state, &answer.peak, &answer.series)
            );
        }
    }
    for (process, said) in everything.processes.iter().zip(&whole.processes) {
        assert_eq!((process.pid, process.rank, process.ended), (said.pid, said.rank, said.ended));
    }
    for instant in [Instant::Peak, Instant::End] {
        let snapshot = report(instant);
        let snapshot = if instant == Instant::Peak { snapshot.peak } else { snapshot.end };
        let Some(snapshot) = snapshot else { continue };
        let at = if instant == Instant::Peak { At::Peak } else { At::Live };
        let Some(device) = position(&snapshot.device) else { continue };
        let (target, what) = (Target::Device(device), instant.to_string());
        compare(&ask(target, at, None), &snapshot, &what);
        compare_groups(&ask(target, at, Some(Grouping::Name)), &snapshot, &what);
    }
    for step in &whole.steps {
        let snapshot = report(Instant::Step(step.step)).at.expect("a step");
        let Some(device) = position(&snapshot.device) else { continue };
        let (target, at, what) = (Target::Device(device), At::Step(step.step), format!("step {}", step.step));
        compare(&ask(target, at, None), &snapshot, &what);
        compare_groups(&ask(target, at, Some(Grouping::Name)), &snapshot, &what);
    }
    for time in [0, last / 7, last / 3, last / 2, last * 9 / 10, last, last * 2] {
        let time = Nanoseconds(time);
        let Some(snapshot) = report(Instant::Time(time)).at else { continue };
        let Some(device) = position(&snapshot.device) else { continue };
        let (target, at, what) = (Target::Device(device), At::Time(time), format!("time {}", time.0));
        compare(&ask(target, at, None), &snapshot, &what);
        compare_groups(&ask(target, at, Some(Grouping::Name)), &snapshot, &what);
    }
}

/// A session as a whole, its profile, and the report of the model that the profile gives.
pub fn check(entries: &[Entry], last: u64) {
    let mut model = Model::new();
    entries.iter().for_each(|entry| drop(model.apply(entry)));
    let report = |instant| model.report(instant).expect("a report");
    compare_with_reports(&mut explorer(entries, Limits::default()), report, last);
    let profile = through_a_profile(&model);
    let again = profile.model().expect("a model");
    for instant in [Instant::Peak, Instant::End, Instant::Time(Nanoseconds(last / 2))] {
        assert_eq!(again.report(instant).expect("a report"), report(instant));
    }
    let mut explorer = Explorer::of_profile(&profile).expect("an explorer");
    compare_with_reports(&mut explorer, report, last);
    compare_overview(&overview_of(&profile).expect("an overview"), &mut explorer);
}

/// What is told before the rows are read is told again after, with more to it.
fn compare_overview(overview: &Answer, explorer: &mut Explorer) {
    let target = overview.target;
    let mut ask = |at| explorer.answer(&Query { target, at, steps: 0..usize::MAX, ..Query::default() });
    let (answer, end) = (ask(overview.at), ask(At::Live));
    let moment = |moment: &MomentView| {
        let state = moment.state;
        (state.time, state.step, state.rows, state.managed, moment.phase.clone(), moment.capacity)
    };
    assert_eq!(target, answer.target);
    if overview.of_host != answer.of_host {
        // Device memory that nothing was ever asked of, and managed memory, are known from the rows alone.
        assert!(overview.of_host);
        return;
    }
    if overview.devices.is_empty() {
        // A profile holds nothing ready of what has no device.
        return;
    }
    assert_eq!(overview.peak.as_ref().map(moment), answer.peak.as_ref().map(moment));
    assert_eq!(overview.at, if overview.peak.is_some() { At::Peak } else { At::Live });
    // Where no device memory was ever live, the report has no moment.
    let known = |answer: &Answer| match overview.peak {
        Some(_) => moment(&answer.now),
        None => (Nanoseconds(0), None, answer.now.state.rows, answer.now.state.managed, String::new(), None),
    };
    assert_eq!(known(overview), known(&answer));
    assert_eq!((&overview.series, &overview.step_marks), (&answer.series, &answer.step_marks));
    let device = |device: &DeviceView| {
        let DeviceView { uuid, name, ordinal, capacity, rows, peak_live, .. } = device.clone();
        (uuid, name, ordinal, capacity, rows, peak_live)
    };
    let devices = |answer: &Answer| answer.devices.iter().map(device).collect::<Vec<_>>();
    if overview.devices.len() == 1 {
        assert_eq!(devices(overview), devices(&end));
    }
    let step = |step: &StepView| StepView { allocations: 0, shape: Vec::new(), leaks: false, ..step.clone() };
    let steps = |answer: &Answer| answer.steps.iter().map(step).collect::<Vec<_>>();
    assert_eq!((overview.steps_total, steps(overview)), (answer.steps_total, steps(&answer)));
    assert_eq!((&overview.refusals, &overview.findings), (&answer.refusals, &answer.findings));
    let gravest = |answer: &Answer| answer.gravest.clone().map(|gravest| Gravest { process: None, ..gravest });
    assert_eq!(gravest(overview), gravest(&answer));
    assert_eq!(overview.session.last_time, answer.session.last_time);
    assert_eq!((&overview.top_scopes, overview.top_scopes_bytes), (&answer.top_scopes, answer.top_scopes_bytes));
}

#[test]
fn a_training_loop_is_told_as_its_report_tells_it() {
    check(&training().entries, 4_245_000_000);
}

#[test]
fn refusals_and_layers_are_too() {
    check(&out_of_memory().entries, 2_500_000_000);
    let mut trace = layers();
    trace.end(0);
    check(&trace.entries, 1_000_000);
}

#[test]
fn a_session_without_anything_has_answers() {
    let mut trace = Trace::new(&["./nothing"], None);
    trace.end(0);
    check(&trace.entries, 1);
    let mut explorer = Explorer::new(Limits::default());
    for at in [At::Live, At::Peak, At::Step(3), At::Time(Nanoseconds(5))] {
        for target in [Target::All, Target::Device(3), Target::Process(1)] {
            let query = Query { target, at, rows: Some(RowsQuery::default()), scopes: true, ..Query::default() };
            let answer = explorer.answer(&query);
            assert_eq!((answer.target, answer.peak.is_none()), (Target::All, true));
            assert_eq!(answer.scopes.expect("asked for").len(), 1, "the root");
        }
    }
}

/// This one was written before processes told their devices and ends.
#[test]
fn an_older_profile_is_told_too() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/profile/before");
    let seed = std::fs::read(path).expect("the seed");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("old.mscope");
    std::fs::write(&path, &seed[1..]).expect("written");
    let profile = Profile::open(&path).expect("opened");
    let report = |instant| profile.report(instant).expect("a report");
    compare_with_reports(&mut Explorer::of_profile(&profile).expect("an explorer"), report, 4_245_000_000);
    let mut anew = profile.model().expect("a model").report(Instant::Peak).expect("a report");
    for finding in &mut anew.findings {
        // When that was, was not told then.
        if let Detail::LargeCached { time_s, .. } = &mut finding.detail {
            assert!(time_s.take().is_some());
        }
    }
    // Nor what each process held.
    for process in &mut anew.processes {
        assert!(process.peak_live.take().is_some() && process.peak_reserved.take().is_some());
        assert!(process.peak_by_category.take().is_some() && !std::mem::take(&mut process.devices).is_empty());
    }
    // Nor what host memory was made of.
    let host = std::mem::take(&mut anew.host);
    anew.host = HostReport { peak: host.peak, at_peak: host.at_peak, at_end: host.at_end, ..HostReport::default() };
    assert_eq!(anew, report(Instant::Peak));
}
