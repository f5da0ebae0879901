//! Spans of time, and allocations as bands over them: random sessions against the naive reference, at every nanosecond.

use memscope_core::explorer::{
    Answer, Band, BandOrder, BandsQuery, BandsView, Explorer, Limits, Query, Target, WindowQuery, WindowView,
};
use memscope_core::journal::entry::Nanoseconds;
use proptest::prelude::*;

use super::ended::{explorer, through_a_profile};
use super::live::{FRESH, Part, Step, deeds, is_refusal, of_all_processes, targets};
use crate::deeds::{session, sums};
use crate::reference::{Life, Sums, When, World};

fn ask(explorer: &mut Explorer, target: Target, window: WindowQuery, bands: BandsQuery) -> Answer {
    explorer.answer(&Query { target, window: Some(window), bands: Some(bands), ..Query::default() })
}

/// Memory that counts, of a part.
fn counts<'w>(world: &'w World, part: &'w Part) -> impl Fn(&&Life) -> bool + 'w {
    |life| part.counts(life.memory) && !life.outside && part.has(world, life)
}

/// All moments at which something of a part began or ended.
fn moments(lives: &[&Life]) -> Vec<When> {
    let mut moments: Vec<When> = lives.iter().flat_map(|life| [Some(life.birth), life.death]).flatten().collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

fn leaves(lives: &[&Life], lives_then: impl Fn(&Life) -> bool) -> u64 {
    lives.iter().filter(|life| life.is_leaf() && lives_then(life)).count() as u64
}

fn check_window(view: &WindowView, world: &World, part: &Part) -> Result<(), TestCaseError> {
    let lives: Vec<&Life> = world.lives.iter().filter(counts(world, part)).collect();
    let some = counts(world, part);
    let sums_of = |then: &dyn Fn(&Life) -> bool| world.sums_of(|life| some(&life) && then(life));
    let moments = moments(&lives);
    for (number, bucket) in view.buckets.iter().enumerate() {
        let end = view.buckets.get(number + 1).map_or(view.range.end, |next| next.begin);
        let begin = bucket.begin;
        prop_assert!(begin < end);
        let before = |life: &Life| life.birth.0 < begin.0 && life.death.is_none_or(|death| death.0 >= begin.0);
        let mut largest: (u64, Sums, u64) = (begin.0, sums_of(&before), leaves(&lives, before));
        let mut reserved = largest.1.reserved;
        for when in moments.iter().filter(|when| (begin.0..end.0).contains(&when.0)) {
            let then = |life: &Life| life.birth <= *when && life.death.is_none_or(|death| death > *when);
            let sums = sums_of(&then);
            reserved = reserved.max(sums.reserved);
            if sums.live_bytes() > largest.1.live_bytes() {
                largest = (when.0, sums, leaves(&lives, then));
            }
        }
        prop_assert_eq!(bucket.time.0, largest.0, "bucket {} of {:?}", number, view.range);
        prop_assert_eq!(sums(&bucket.rows), largest.1, "bucket {} of {:?}", number, view.range);
        prop_assert_eq!((bucket.allocations, bucket.reserved), (Some(largest.2), reserved));
    }
    Ok(())
}

/// The naive choice: all that live within the range, by area, then bytes, the older ones first.
fn largest<'w>(lives: &[&'w Life], query: &BandsQuery) -> Vec<&'w Life> {
    let (start, end) = (query.range.start.0, query.range.end.0);
    let death = |life: &Life| life.death.map_or(u64::MAX, |death| death.0);
    let shown = |life: &&&Life| life.is_leaf() && life.birth.0 < end && death(life) > start;
    let mut chosen: Vec<&Life> =
        lives.iter().filter(shown).filter(|life| life.requested >= query.least_bytes).copied().collect();
    let area = |life: &Life| u128::from(life.requested) * u128::from(death(life).min(end) - life.birth.0.max(start));
    chosen.sort_by_key(|life| (std::cmp::Reverse((area(life), life.requested)), life.birth));
    chosen.truncate(query.limit);
    chosen.sort_by_key(|life| life.birth);
    chosen
}

fn check_bands(view: &BandsView, query: &BandsQuery, world: &World, part: &Part) -> Result<(), TestCaseError> {
    let lives: Vec<&Life> = world.lives.iter().filter(counts(world, part)).collect();
    let (start, end) = (query.range.start.0, query.range.end.0);
    let shown = |life: &Life| life.birth.0 < end && life.death.is_none_or(|death| death.0 > start);
    prop_assert_eq!(view.alive, leaves(&lives, shown));
    let found: Vec<_> =
        view.bands.iter().map(|band| (band.pick.birth.0, band.bytes, band.address, band.category)).collect();
    let expected: Vec<_> =
        largest(&lives, query).iter().map(|life| (life.birth.0, life.requested, life.address, life.category)).collect();
    prop_assert_eq!(&found, &expected);
    prop_assert!(view.rest_exact);
    for time in start..end {
        let alive = |life: &Life| counts(world, part)(&life) && life.lives_at(time);
        let expected = world.sums_of(alive).live;
        let rest = view.rest_at(Nanoseconds(time)).expect("told from the beginning on");
        let (mut live, mut drawn, mut count) = (rest.live, 0, rest.allocations);
        for band in &view.bands {
            let Some(offset) = view.offset(band, Nanoseconds(time)) else { continue };
            live[band.category as usize] += band.bytes;
            if query.order == BandOrder::Stacked {
                prop_assert_eq!(offset, drawn, "it lies on those that are older");
                let hit = (band.height > 0).then(|| view.hit(Nanoseconds(time), offset + band.height - 1)).flatten();
                let same = |hit| matches!(hit, memscope_core::explorer::Hit::Band(at) if view.bands[at] == *band);
                prop_assert!(band.height == 0 || hit.is_some_and(same));
            }
            drawn += band.bytes;
            count += 1;
        }
        prop_assert_eq!(live, expected, "drawn and rest are all that lives, at {}", time);
        prop_assert_eq!(drawn, rest.drawn);
        prop_assert_eq!(count, leaves(&lives, |life| life.lives_at(time)));
        if query.order == BandOrder::Stacked {
            prop_assert!(rest.drawn + rest.bytes() <= view.height);
        }
    }
    if query.order == BandOrder::Address {
        check_addresses(view, &lives, shown)?;
    }
    Ok(())
}

/// Everything lies where its address says, and the axis has no gap.
fn check_addresses(view: &BandsView, lives: &[&Life], shown: impl Fn(&Life) -> bool) -> Result<(), TestCaseError> {
    let mut end = 0;
    for span in &view.axis {
        prop_assert_eq!(span.offset, end);
        end += span.bytes;
    }
    prop_assert_eq!(view.height, end);
    let place = |process: u32, address: u64, bytes: u64| {
        let within = |span: &&memscope_core::explorer::AddressSpan| {
            span.process == process && span.address <= address && address + bytes <= span.address + span.bytes
        };
        view.axis.iter().find(within).map(|span| span.offset + (address - span.address))
    };
    for band in &view.bands {
        let offset = view.points[band.points.start as usize].1;
        prop_assert_eq!(Some(offset), place(band.process, band.address, band.granted));
    }
    let containers: Vec<&&Life> = lives.iter().filter(|life| !life.block && life.held_blocks && shown(life)).collect();
    prop_assert_eq!(view.segments.len(), containers.len());
    for container in containers {
        let offset = place(container.process as u32, container.address, container.bytes);
        let is = |segment: &&memscope_core::explorer::SegmentBand| {
            segment.pick.birth.0 == container.birth.0
                && segment.bytes == container.bytes
                && Some(segment.offset) == offset
        };
        prop_assert!(view.segments.iter().any(|segment| is(&segment)));
    }
    Ok(())
}

/// Everything about each band is found by what the band says. The clock of these sessions stands still now and then: what began
/// at one address at one time cannot be told apart.
fn check_picks(explorer: &mut Explorer, target: Target, view: &BandsView, world: &World) -> Result<(), TestCaseError> {
    let alike = |band: &Band| {
        let is = |life: &&Life| {
            let (process, address) = (band.process as usize, band.address);
            (life.process, life.address, life.birth.0) == (process, address, band.pick.birth.0)
        };
        world.lives.iter().filter(is).count()
    };
    let bands: Vec<&Band> = view.bands.iter().filter(|band| alike(band) == 1).collect();
    let picks = bands.iter().map(|band| band.pick).collect();
    let details = explorer.answer(&Query { target, picks, ..Query::default() }).picks;
    prop_assert_eq!(details.len(), bands.len());
    for (band, detail) in bands.into_iter().zip(details) {
        let row = &detail.row;
        prop_assert_eq!((row.id, row.birth, detail.death), (band.pick.id, band.pick.birth, band.death));
        prop_assert_eq!((row.address, row.bytes, row.granted), (band.address, band.bytes, band.granted));
        let scope = view.scope(band).expect("the scope of each band is told");
        prop_assert_eq!((&row.name, &row.scope), (&band.name, &scope.path));
    }
    Ok(())
}

fn check(
    steps: &[Step],
    announced: bool,
    queries: &[(u64, u64, usize, usize, u64, bool)],
) -> Result<(), TestCaseError> {
    let entries = session(steps, announced);
    let world = World::of(&entries);
    let mut explorer = explorer(&entries, Limits::NONE);
    let model = crate::deeds::model_of(&entries);
    let mut of_profile = Explorer::of_profile(&through_a_profile(&model)).expect("it opens");
    let first = explorer.answer(&Query::default());
    let last = first.session.last_time.0;
    for (from, length, buckets, limit, least_bytes, by_address) in queries {
        let start = from % (last + 1);
        let range = Nanoseconds(start)..Nanoseconds(start + length);
        let window = WindowQuery { range: range.clone(), buckets: *buckets };
        // Nothing is known of what comes after the end.
        let end = range.end.min(Nanoseconds(last + 1)).max(range.start);
        let order = if *by_address { BandOrder::Address } else { BandOrder::Stacked };
        let (limit, least_bytes) = (*limit, *least_bytes);
        let bands = BandsQuery { range: range.start..end, order, limit, least_bytes, ..BandsQuery::default() };
        for (target, part) in targets(&first) {
            let answer = ask(&mut explorer, target, window.clone(), bands.clone());
            let view = answer.window.as_deref().expect("asked for");
            check_window(view, &world, &part)?;
            let view = answer.bands.as_deref().expect("asked for");
            check_bands(view, &bands, &world, &part)?;
            check_picks(&mut explorer, target, view, &world)?;
            let again = ask(&mut of_profile, target, window.clone(), bands.clone());
            prop_assert_eq!(&again.window.expect("asked for").buckets, &answer.window.expect("asked for").buckets);
            prop_assert_eq!(again.bands.expect("asked for").bands.len(), view.bands.len());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn spans_and_bands_are_those_of_the_reference(
        steps in of_all_processes(),
        announced: bool,
        queries in proptest::collection::vec((0u64..500, 1u64..300, 1usize..40, 0usize..6, 0u64..300, any::<bool>()), 1..4),
    ) {
        check(&steps, announced, &queries)?;
    }

    #[test]
    fn spans_of_one_process_are_told_while_it_runs(
        steps in deeds(Just(0u32)).prop_map(|deeds| deeds.into_iter().filter(|(_, _, _, deed)| !is_refusal(deed)).collect::<Vec<_>>()),
        rarely in 1usize..9,
    ) {
        let entries = session(&steps, true);
        let mut explorer = Explorer::new(FRESH);
        for (position, entry) in entries[..entries.len() - 1].iter().enumerate() {
            explorer.apply(entry);
            if position % rarely > 0 {
                continue;
            }
            let world = World::of(&entries[..=position]);
            let first = explorer.answer(&Query::default());
            let range = Nanoseconds(0)..Nanoseconds(first.session.last_time.0 + 1);
            for (target, part) in targets(&first) {
                let window = WindowQuery { range: range.clone(), buckets: 7 };
                let bands = BandsQuery { range: range.clone(), limit: 3, ..BandsQuery::default() };
                let answer = ask(&mut explorer, target, window, bands.clone());
                check_window(answer.window.as_deref().expect("asked for"), &world, &part)?;
                check_bands(answer.bands.as_deref().expect("asked for"), &bands, &world, &part)?;
            }
        }
    }
}
