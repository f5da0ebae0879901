//! C programs that reach the driver in each of the three ways, and that free what they must not: exact counts, and output identical with
//! and without memscope.

use memscope_wire::env as names;

use crate::memscope::{Place, number, stderr, stdout};

const MIB: u64 = 1 << 20;

#[test]
fn every_way_to_the_driver_is_recorded_exactly() {
    let place = Place::new();
    let program = place.compile_linked("three_ways");
    let simulator = place.simulator();
    for way in ["link", "dlsym", "proc"] {
        let alone = place
            .command(&program)
            .arg(way)
            .env("LD_LIBRARY_PATH", &simulator)
            .env(names::SIMULATOR_DEVICES, "2147483648")
            .env(names::SIMULATOR_STATE, place.path("alone.state"))
            .output()
            .unwrap();
        assert_eq!(alone.status.code(), Some(4), "{way}: {}{}", stdout(&alone), stderr(&alone));

        let (under, report) = place.record(&format!("--device 2GiB -- {} {way}", program.display()));
        assert_eq!((stdout(&under), stderr(&under)), (stdout(&alone), stderr(&alone)), "{way}");
        assert_eq!(under.status.code(), alone.status.code(), "{way}");

        assert_eq!(number(&report, "/totals/allocations"), 100 + 50 + 1 + 1 + 1, "{way}");
        assert_eq!(number(&report, "/totals/frees"), 99 + 50 + 1 + 1 + 1, "{way}");
        // The pitch of the simulated driver is 512 bytes: 10 rows of 100 bytes take 5,120.
        let bytes = 100 * MIB + 50 * 4096 + 3 * MIB + 5_120 + 5 * MIB;
        assert_eq!(number(&report, "/totals/bytes"), bytes, "{way}");
        assert_eq!(number(&report, "/devices/0/peak/live/bytes"), 100 * MIB + 4096, "{way}");
        assert_eq!(number(&report, "/devices/0/ledger_at_end/live"), MIB, "{way}: what was never freed");
        assert_eq!(number(&report, "/peak/by_category/unknown"), 100 * MIB + 4096, "{way}");
        assert_eq!(number(&report, "/host/peak/bytes"), 5 * MIB, "{way}");
        let kinds: Vec<_> =
            report["findings"].as_array().unwrap().iter().map(|finding| finding["kind"].as_str().unwrap()).collect();
        assert!(kinds.contains(&"oom") && kinds.contains(&"free_refused"), "{way}: {kinds:?}");
    }
}

#[test]
fn frees_of_what_is_not_there_are_refused_by_the_driver_and_change_nothing() {
    let place = Place::new();
    let program = place.compile_linked("frees");
    let mut alone = place.command(&program);
    alone.env("LD_LIBRARY_PATH", place.simulator()).env(names::SIMULATOR_DEVICES, "1073741824");
    let alone = alone.env(names::SIMULATOR_STATE, place.path("alone.state")).output().unwrap();
    let expected = "nothing freed\nunknown refused\ninside refused\nonce freed\ntwice refused\nordered, at once freed\n\
                    ordered, twice refused\ndevice memory as the host's refused\nhost memory freed\nhost memory, twice refused\n";
    assert_eq!((alone.status.code(), stdout(&alone).as_str()), (Some(6), expected));
    let (under, report) = place.record(&format!("--device 1GiB -- {}", program.display()));
    assert_eq!((under.status.code(), stdout(&under), stderr(&under)), (Some(6), stdout(&alone), stderr(&alone)));
    assert_eq!((number(&report, "/totals/allocations"), number(&report, "/totals/frees")), (4, 3));
    assert_eq!(number(&report, "/devices/0/peak/live/bytes"), 7 * MIB);
    assert_eq!(number(&report, "/devices/0/ledger_at_end/live"), 4 * MIB, "what was never freed");
    assert_eq!(number(&report, "/host/peak/bytes"), MIB);
    let findings = report["findings"].as_array().unwrap();
    let refused = findings.iter().find(|finding| finding["kind"] == "free_refused").expect("said");
    assert_eq!(number(refused, "/frees"), 6);
}
