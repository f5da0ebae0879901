//! Lists of a moment whose allocations are not all there.

use memscope_core::explorer::{Answer, At, BandsQuery, Explorer, FlameQuery, Query, RowsQuery, Target, WindowQuery};
use memscope_core::journal::entry::Nanoseconds;
use memscope_wire::MemoryKind;
use proptest::prelude::*;

use super::{act, keep, perform, twice};

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// At every moment a view says how much its list covers, and that is true; where it says nothing, the list is whole.
    #[test]
    fn lists_say_how_much_they_cover(
        acts in proptest::collection::vec((0u32..2, 1u64..8, act()), 1..90),
        keep in keep(),
        cut in 1usize..40,
    ) {
        let (trace, _) = perform(&acts);
        let session = twice(&trace.entries, keep, cut);
        let [mut kept, mut full] = [&session.kept, &session.full].map(|profile| Explorer::of_profile(profile).expect("opened"));
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
}
