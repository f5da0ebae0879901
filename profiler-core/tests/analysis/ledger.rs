//! Random sessions: the model against the naive reference, at every entry and over the whole history. And damaged ones.

use memscope_core::allocation::Model;
use memscope_core::journal::entry::{Entry, ProcessIndex};
use memscope_core::profile::{self, Profile};
use memscope_core::report::{Instant, Report, Rows};
use memscope_wire::Category;
use proptest::prelude::*;

use crate::deeds::{UUIDS, deed, key, plain, session, sums};
use crate::reference::{Deed as Kind, Place, Sums, World};

fn sums_of_report(rows: &Rows) -> Sums {
    let by = rows.by_category;
    let live = [by.unknown, by.weights, by.gradients, by.activations, by.optimizer, by.inputs, by.workspace];
    Sums { reserved: rows.reserved, live, rounding: rows.rounding, cached: rows.cached }
}

/// The running ledgers of every device that has a name.
fn compare_now(model: &Model, world: &World) -> Result<(), TestCaseError> {
    prop_assert_eq!(sums(model.host()), world.now(&Place::Host));
    prop_assert!(model.host().adds_up());
    for device in model.devices() {
        prop_assert!(device.rows.adds_up() && device.managed.adds_up(), "{:?}", device);
        let Some(uuid) = &device.uuid else { continue };
        prop_assert_eq!(sums(&device.rows), world.now(&Place::Device(plain(uuid))));
        prop_assert_eq!(sums(&device.managed), world.now(&Place::Managed(plain(uuid))));
    }
    Ok(())
}

/// Peaks, steps and the end of a device against its whole history.
fn compare_history(report: &Report, world: &World, uuid: [u8; 16]) -> Result<(), TestCaseError> {
    let Some(device) = report.devices.iter().find(|device| plain(&device.uuid) == key(uuid)) else {
        prop_assert!(!world.places().contains(&Place::Device(key(uuid))));
        return Ok(());
    };
    let history = world.history(&Place::Device(key(uuid)));
    let managed = world.history(&Place::Managed(key(uuid)));
    let first = |value: fn(&Sums) -> u64| {
        let mut largest = (0, 0.0, None);
        for (time, sums, step, _) in &history {
            if value(sums) > largest.0 {
                largest = (value(sums), *time as f64 / 1e9, step.map(|(number, _)| number));
            }
        }
        largest
    };
    let live = device.peak.live;
    prop_assert_eq!((live.bytes, live.time_s, live.step), first(Sums::live_bytes));
    let reserved = device.peak.reserved;
    prop_assert_eq!((reserved.bytes, reserved.time_s, reserved.step), first(|sums| sums.reserved));
    prop_assert_eq!(device.ledger_at_peak.is_some(), live.bytes > 0);
    if let Some(ledger) = &device.ledger_at_peak {
        let at = history.iter().find(|(_, sums, _, _)| sums.live_bytes() == live.bytes).map(|(_, sums, _, _)| *sums);
        prop_assert_eq!(Some(sums_of_report(&ledger.rows)), at);
    }
    let kept = history.iter().rposition(|(_, _, _, deed)| *deed != Kind::Ended);
    let none_left = |place| world.now(&place).reserved == 0;
    let all_given = kept.is_some_and(|position| position + 1 == history.len())
        && none_left(Place::Device(key(uuid)))
        && none_left(Place::Managed(key(uuid)));
    let kept = if all_given { history.iter().rposition(|(_, _, _, deed)| *deed == Kind::Took) } else { kept };
    let end = kept.map_or(Sums::default(), |position| history[position].1);
    prop_assert_eq!(sums_of_report(&device.ledger_at_end.rows), end);
    let ledger = &device.ledger_at_end;
    prop_assert!(managed.iter().map(|(_, sums, _, _)| sums.reserved).max().unwrap_or(0) >= ledger.managed.reserved);
    for step in report.steps.iter().filter(|step| plain(&step.device) == key(uuid)) {
        let within = history.iter().filter(|(_, _, there, _)| *there == Some((step.step, step.turn)));
        let largest = within.map(|(_, sums, _, _)| sums.live_bytes()).max();
        prop_assert_eq!(Some(step.peak.bytes), largest, "step {}", step.name());
    }
    let begun = history.iter().filter_map(|(_, _, step, _)| *step).collect::<std::collections::BTreeSet<_>>();
    let here = report.steps.iter().filter(|step| plain(&step.device) == key(uuid));
    let reported = here.map(|step| (step.step, step.turn));
    prop_assert_eq!(reported.collect::<std::collections::BTreeSet<_>>(), begun);
    Ok(())
}

fn compare_categories(report: &Report, world: &World) -> Result<(), TestCaseError> {
    let peaks = &report.category_peaks;
    let reported = [
        peaks.unknown,
        peaks.weights,
        peaks.gradients,
        peaks.activations,
        peaks.optimizer,
        peaks.inputs,
        peaks.workspace,
    ];
    for (category, reported) in Category::ALL.into_iter().zip(reported) {
        let devices = world.places().into_iter().filter(|place| matches!(place, Place::Device(_)));
        let largest = devices
            .flat_map(|place| world.history(&place))
            .map(|(_, sums, _, _)| sums.live[category as usize])
            .max()
            .unwrap_or(0);
        prop_assert_eq!(reported.bytes, largest, "{}", category.name());
    }
    let history = world.history(&Place::Host);
    let host = history.iter().map(|(_, sums, _, _)| sums.live_bytes()).max().unwrap_or(0);
    prop_assert_eq!(report.host.peak.bytes, host);
    prop_assert_eq!(report.host.moment.is_some(), host > 0);
    if let Some(moment) = &report.host.moment {
        let at = history.iter().find(|(_, sums, _, _)| sums.live_bytes() == host).expect("a peak");
        prop_assert_eq!((moment.bytes, moment.step), (host, at.2.map(|(number, _)| number)));
        prop_assert_eq!(moment.by_category.numbers(), at.1.live);
    }
    Ok(())
}

/// A profile answers as the model does, and its rows agree with what it holds ready.
fn compare_profile(model: &Model, last: u64) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.mscope");
    let written = profile::write(model, &path, false).expect("written");
    let profile = Profile::open(&path).expect("opened");
    let report = |instant| model.report(instant).expect("a report");
    prop_assert_eq!(&written, &report(Instant::Peak));
    prop_assert_eq!(profile.verify().expect("readable").disagreements, Vec::<String>::new());
    let times =
        [0, last / 3, last / 2, last].map(|time| Instant::Time(memscope_core::journal::entry::Nanoseconds(time)));
    let steps = written.steps.iter().chain(&written.host.steps).map(|step| Instant::Step(step.step));
    for instant in [Instant::Peak, Instant::End].into_iter().chain(times).chain(steps) {
        prop_assert_eq!(profile.report(instant).expect("a report"), report(instant), "{}", instant);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_is_exact_at_every_event(
        deeds in proptest::collection::vec((prop_oneof![3 => Just(0u32), 1 => 1u32..3], 0u64..8, proptest::bool::weighted(0.1), deed()), 1..70),
        announced: bool,
    ) {
        let entries = session(&deeds, announced);
        let mut model = Model::new();
        for (position, entry) in entries.iter().enumerate() {
            model.apply(entry);
            compare_now(&model, &World::of(&entries[..=position]))?;
        }
        let world = World::of(&entries);
        let report = model.report(Instant::Peak).expect("a report");
        for uuid in UUIDS {
            compare_history(&report, &world, uuid)?;
        }
        compare_categories(&report, &world)?;
        compare_profile(&model, 70 * 8)?;
    }
}

/// A record of any kind with any words; small numbers among them, so that they meet.
fn any_record() -> impl Strategy<Value = memscope_wire::Record> {
    let kind = prop_oneof![0u32..70, any::<u32>()];
    let word = || prop_oneof![3 => 0u64..6, 1 => any::<u64>(), 1 => (0u64..8).prop_map(|small| u64::MAX - small)];
    (kind, 0u32..3, word(), [word(), word(), word(), word(), word(), word()])
        .prop_map(|(head, thread, ticks, words)| memscope_wire::Record { head, thread, ticks, words })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_journal_does_no_harm(
        batches in proptest::collection::vec((0u32..2, prop_oneof![0u64..40, any::<u64>()], proptest::collection::vec(any_record(), 0..40)), 0..5),
    ) {
        let mut model = Model::new();
        for (process, first_slot, records) in batches {
            model.apply(&Entry::Records { process: ProcessIndex(process), first_slot, records });
            model.progress();
        }
        for device in model.devices() {
            prop_assert!(device.rows.adds_up() && device.managed.adds_up());
        }
        let report = model.finish();
        memscope_core::report::text(&report, memscope_core::report::Style::Plain);
        compare_profile(&model, 1000)?;
    }
}
