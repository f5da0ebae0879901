//! Thresholds of a device's use: passed by what the driver gave, or by what NVML saw; told once each time, also in a profile.

use memscope_core::explorer::{Alertness, Explorer, Limits};
use memscope_core::findings::{Detail, Finding, ThresholdPassed};
use memscope_core::journal::entry::{Entry, Threshold};
use memscope_core::profile::{self, Profile};
use memscope_core::report::Instant;
use memscope_wire::Category;

use crate::trace::{Trace, UUID, UUID_TEXT};

const MIB: u64 = 1 << 20;
const TOTAL: u64 = 1000 * MIB;
/// Longer than the window around a sample.
const FAR: u64 = 50_000_000;

/// A device of 1,000 MiB with thresholds of 80 % and 950 MiB.
fn start() -> Trace {
    let mut trace = Trace::new(&["train"], None);
    if let Entry::Session(session) = &mut trace.entries[0] {
        session.alerts = vec![Threshold::Share(800), Threshold::Bytes(950 * MIB)];
    }
    trace.process(0, 31);
    trace.device(0, 0, UUID, TOTAL);
    trace
}

fn passed(findings: &[Finding]) -> Vec<&ThresholdPassed> {
    let mut passed = Vec::new();
    for finding in findings {
        if let Detail::ThresholdPassed(one) = &finding.detail {
            passed.push(one.as_ref());
        }
    }
    passed
}

/// Feeds an explorer, and asks it when it has been alarmed.
struct Follower {
    explorer: Explorer,
    alertness: Alertness,
    taken: usize,
}

impl Follower {
    fn new(limits: Limits) -> Follower {
        let alertness = Alertness::of(vec![Threshold::Share(800), Threshold::Bytes(950 * MIB)]);
        Follower { explorer: Explorer::new(limits), alertness, taken: 0 }
    }

    /// Threshold, which time, used.
    fn told(&mut self, trace: &Trace) -> Vec<(String, u64, u64)> {
        let mut alarmed = false;
        for entry in &trace.entries[self.taken..] {
            self.explorer.apply(entry);
            alarmed |= self.alertness.is_alarmed(entry);
        }
        self.taken = trace.entries.len();
        let told = if alarmed { self.explorer.thresholds_passed() } else { Vec::new() };
        passed(&told).into_iter().map(|one| (one.threshold.clone(), one.times, one.used / MIB)).collect()
    }
}

#[test]
fn what_the_driver_gave_passes_a_threshold_once_until_it_has_fallen() {
    let mut trace = start();
    let mut follower = Follower::new(Limits::default());
    trace.phase(0, "forward");
    trace.push(0, "model");
    trace.tagged(0, 0x1_0000_0000, 500 * MIB, Category::Weights, "w");
    trace.alloc(0, 0x8_0000_0000, 300 * MIB);
    assert_eq!(follower.told(&trace), [], "80 % is not more than 80 %");
    trace.alloc(0, 0x9_0000_0000, MIB);
    assert_eq!(follower.told(&trace), [("80 %".into(), 1, 801)]);
    // 801 - 41 = 760 = 95 % of 800: fallen far enough; 801 - 40 is not.
    trace.alloc(0, 0xa_0000_0000, 40 * MIB);
    trace.free(0, 0xa_0000_0000);
    trace.alloc(0, 0xa_0000_0000, 40 * MIB);
    assert_eq!(follower.told(&trace), []);
    trace.free(0, 0xa_0000_0000);
    trace.free(0, 0x9_0000_0000);
    trace.free(0, 0x8_0000_0000);
    trace.alloc(0, 0x8_0000_0000, 460 * MIB);
    assert_eq!(follower.told(&trace), [("80 %".into(), 2, 960), ("950.0 MiB".into(), 1, 960)]);
    trace.ended(0);
    trace.end(0);
    let report = trace.model().report(Instant::Peak).expect("a report");
    let found = passed(&report.findings);
    assert_eq!(found.iter().map(|one| (one.times, one.used / MIB)).collect::<Vec<_>>(), [(2, 801), (1, 960)]);
    assert_eq!((found[0].live, found[0].by_category.weights), (801 * MIB, 500 * MIB));
    assert_eq!((found[0].phase.as_deref(), found[0].step), (Some("forward"), None));
    let largest = found[0].largest.as_ref().expect("something was live");
    assert_eq!((largest.category.as_str(), largest.scope.as_deref()), ("weights", Some("model")));

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.mscope");
    profile::write(&trace.model(), &path, false).expect("written");
    let profile = Profile::open(&path).expect("read");
    assert_eq!(profile.findings(), report.findings);
    assert_eq!(profile.model().and_then(|model| model.report(Instant::Peak)).expect("again").findings, report.findings);
}

#[test]
fn what_others_use_counts_as_nvml_saw_it_last() {
    let mut trace = start();
    let mut follower = Follower::new(Limits::default());
    trace.alloc(0, 0x1_0000_0000, 200 * MIB);
    trace.now += FAR;
    // Others have 450 MiB, the driver itself 50.
    trace.sample(UUID_TEXT, TOTAL, 650 * MIB, 50 * MIB, &[(31, 200 * MIB), (99, 450 * MIB)]);
    trace.now += FAR;
    trace.alloc(0, 0x2_0000_0000, 100 * MIB);
    assert_eq!(follower.told(&trace), [], "800");
    trace.alloc(0, 0x3_0000_0000, MIB);
    assert_eq!(follower.told(&trace), [("80 %".into(), 1, 801)]);
    trace.now += FAR;
    trace.sample(UUID_TEXT, TOTAL, 910 * MIB, 50 * MIB, &[(31, 301 * MIB), (99, 609 * MIB)]);
    assert_eq!(follower.told(&trace), [("950.0 MiB".into(), 1, 960)], "nothing of ours has changed");
}

#[test]
fn a_sample_taken_between_a_call_and_its_record_makes_no_alarm() {
    let mut trace = start();
    let mut follower = Follower::new(Limits::default());
    trace.now += FAR;
    // The driver has given 700 MiB, and the record follows.
    trace.sample(UUID_TEXT, TOTAL, 700 * MIB, 0, &[(31, 700 * MIB)]);
    trace.now += 1_000;
    trace.alloc(0, 0x1_0000_0000, 700 * MIB);
    trace.now += FAR;
    trace.alloc(0, 0x8_0000_0000, 50 * MIB);
    assert_eq!(follower.told(&trace), []);
}
