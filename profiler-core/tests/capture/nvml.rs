//! Telemetry over a small NVML, written in C and built by the test with the linker's compiler (`cc`), whose answers are
//! what drivers give in the hard cases.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use memscope_core::clock;
use memscope_core::journal::entry::{DeviceSample, Entry, ProcessSample, SessionInfo, TelemetrySample};
use memscope_core::recorder::{self, Recorder};
use memscope_core::recover::entries;
use memscope_core::session::SessionFolder;
use memscope_core::telemetry::{Options, Poller};

/// Device 0 answers everything, and takes a while for the throughput of its PCIe link, as drivers do; device 1 has nothing but
/// its UUID: memory and list are "not supported" or "no permission", and it takes a while for it.
const NVML: &str = r#"
#include <string.h>
#include <unistd.h>
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process;
static char devices[2];
static int fetched;
#define SECOND(d) ((char *)(d) == devices + 1)
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int e) { return "an error"; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { strcpy(s, "550.54"); return 0; }
int nvmlSystemGetNVMLVersion(char *s, unsigned n) { strcpy(s, "12.550.54"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { if (++fetched > 2) return 999; *d = devices + i; return 0; }
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) { strcpy(s, SECOND(d) ? "GPU-2222" : "GPU-1111"); return 0; }
int nvmlDeviceGetName(void *d, char *s, unsigned n) { if (SECOND(d)) return 3; strcpy(s, "A Device"); return 0; }
int nvmlDeviceGetMemoryInfo_v2(void *d, memory *m) {
    if (SECOND(d)) { usleep(PAUSE); return 4; }
    if (m->version != (sizeof(memory) | 2 << 24)) return 25;
    m->total = 1000; m->reserved = ~0ull; m->free = 300; m->used = 600; return 0; }
int nvmlDeviceGetUtilizationRates(void *d, unsigned *u) { if (SECOND(d)) return 3; u[0] = 0; u[1] = 1; return 0; }
int nvmlDeviceGetTemperature(void *d, int s, unsigned *t) { if (SECOND(d)) return 3; *t = 41; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *p) { if (SECOND(d)) return 3; *p = ~0u; return 0; }
int nvmlDeviceGetClockInfo(void *d, int c, unsigned *m) { if (SECOND(d)) return 3; *m = c == 2 ? 9501 : 1410; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *p) { if (SECOND(d)) return 3; *p = 350000; return 0; }
int nvmlDeviceGetFanSpeed_v2(void *d, unsigned f, unsigned *p) { if (SECOND(d) || f) return 3; *p = 30; return 0; }
int nvmlDeviceGetCurrPcieLinkGeneration(void *d, unsigned *g) { if (SECOND(d)) return 3; *g = 4; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(void *d, unsigned *w) { if (SECOND(d)) return 3; *w = 16; return 0; }
int nvmlDeviceGetPcieThroughput(void *d, int c, unsigned *k) {
    if (SECOND(d)) return 3;
    usleep(LINK_PAUSE); *k = c == 1 ? 7000 : ~0u; return 0; }
static int list(process *from, unsigned have, unsigned *n, process *to) {
    if (*n < have) { *n = have; return 7; }
    memcpy(to, from, have * sizeof *from); *n = have; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *p) {
    process some[] = {{10, 100}, {20, ~0ull}, {30, 300}};
    return SECOND(d) ? 4 : list(some, 3, n, p); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned *n, process *p) {
    process some[] = {{30, 300}, {5, 50}};
    return list(some, 2, n, p); }
"#;

/// What device 0 takes for each of the two directions of its link.
const LINK_PAUSE: Duration = Duration::from_millis(100);

fn library(folder: &Path, pause: Duration) -> PathBuf {
    let (source, library) = (folder.join("nvml.c"), folder.join("libnvidia-ml.so.1"));
    std::fs::write(&source, NVML).unwrap();
    let built = Command::new("cc")
        .arg(format!("-DPAUSE={}", pause.as_micros()))
        .arg(format!("-DLINK_PAUSE={}", LINK_PAUSE.as_micros()))
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.expect("a C compiler, which Rust needs for linking").success());
    library
}

fn samples(poller: &mut Poller, enough: impl Fn(&[TelemetrySample]) -> bool) -> Vec<TelemetrySample> {
    let begin = Instant::now();
    let mut samples = Vec::new();
    while !enough(&samples) {
        samples.extend(poller.take());
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", poller.unavailable());
        std::thread::sleep(Duration::from_millis(1));
    }
    samples
}

#[test]
fn what_the_driver_does_not_give_is_absent_and_a_slow_device_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let library = Some(library(folder.path(), Duration::from_millis(800)));
    let start = clock::monotonic_ns();
    let mut poller = Poller::start(Options { library, interval: Duration::from_millis(2), start_monotonic_ns: start });
    let of = |samples: &[TelemetrySample], uuid: &str| -> Vec<TelemetrySample> {
        samples.iter().filter(|sample| sample.devices[0].uuid == uuid).cloned().collect()
    };
    let all = samples(&mut poller, |all| of(all, "2222").len() >= 2);
    let (fast, slow) = (of(&all, "1111"), of(&all, "2222"));
    assert!(fast.len() > 2 * slow.len(), "{} and {} samples", fast.len(), slow.len());
    let process = |pid, used| ProcessSample { pid, used };
    let expected = DeviceSample {
        uuid: "1111".into(),
        name: Some("A Device".into()),
        total: Some(1000),
        used: Some(600),
        reserved: None,
        utilization: Some(0),
        temperature: Some(41),
        power: None,
        clock: Some(1410),
        memory_clock: Some(9501),
        power_limit: Some(350_000),
        fan: Some(30),
        pcie_generation: Some(4),
        pcie_width: Some(16),
        pcie_receive: Some(7_000_000),
        pcie_send: None,
        processes: Some(vec![process(5, Some(50)), process(10, Some(100)), process(20, None), process(30, Some(300))]),
    };
    assert_eq!(fast[0].devices, [expected]);
    assert_eq!(slow[0].devices, [DeviceSample { uuid: "2222".into(), ..DeviceSample::default() }]);
    assert!(slow[0].time.0 - slow[0].begin.0 >= 800_000_000, "the answer's time is from question to answer");
    // The link's throughput is asked after the window: its two pauses lie between a window's end and the next one's begin.
    let between = |pair: &[TelemetrySample]| Duration::from_nanos(pair[1].begin.0 - pair[0].time.0);
    assert!(fast.windows(2).all(|pair| pair[0].time <= pair[1].begin && between(pair) >= 2 * LINK_PAUSE));
    assert_eq!((poller.missed(), poller.unavailable()), (0, None));
}

#[test]
fn a_program_that_ends_at_once_still_has_a_sample_of_each_device() {
    let place = tempfile::tempdir().unwrap();
    let library = Some(library(place.path(), Duration::from_millis(100)));
    let session = SessionInfo::begin(vec!["true".into()]);
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).unwrap();
    // The second device answers after a while, and neither is asked twice.
    let interval = Duration::from_secs(3600);
    let telemetry = Some(Poller::start(Options { library, interval, start_monotonic_ns: session.start_monotonic_ns }));
    let options = recorder::Options { telemetry, ..recorder::Options::default() };
    Recorder::start(&folder, options, None).unwrap().finish(Some(0)).unwrap();
    let entries: Vec<Entry> = entries(&folder).unwrap().map(Result::unwrap).collect();
    let mut uuids: Vec<&str> = Vec::new();
    for entry in &entries {
        if let Entry::Telemetry(sample) = entry {
            uuids.extend(sample.devices.iter().map(|device| device.uuid.as_str()));
        }
    }
    uuids.sort_unstable();
    assert_eq!(uuids, ["1111", "2222"]);
    assert!(matches!(entries.last(), Some(Entry::End(_))), "the samples come before the end");
    folder.remove().unwrap();
}

#[test]
fn a_probe_tells_versions_and_devices() {
    let folder = tempfile::tempdir().unwrap();
    let probe = Poller::probe(Some(library(folder.path(), Duration::ZERO).as_os_str())).unwrap();
    assert_eq!((probe.driver.as_deref(), probe.nvml.as_deref()), (Some("550.54"), Some("12.550.54")));
    assert_eq!(probe.devices.len(), 2);
    assert_eq!((probe.devices[0].used, probe.devices[1].used), (Some(600), None));
}

#[test]
fn without_nvml_there_is_a_reason_and_nothing_else() {
    let library = Some(PathBuf::from("/no/such/libnvidia-ml.so.1"));
    let interval = Duration::from_millis(1);
    let mut poller = Poller::start(Options { library, interval, start_monotonic_ns: 0 });
    let begin = Instant::now();
    while poller.unavailable().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(1));
    }
    let reason = poller.unavailable().unwrap();
    assert!(reason.starts_with("libnvidia-ml.so.1 cannot be loaded (/no/such"), "{reason}");
    assert!(poller.take().is_empty());
    // Would not return before the test's time is over if it waited for what never comes.
    poller.wait_for_first(Duration::MAX);
    assert_eq!(Poller::probe(Some("/no/such/libnvidia-ml.so.1".as_ref())).unwrap_err(), reason);
}
