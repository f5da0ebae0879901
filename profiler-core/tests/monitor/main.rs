//! The monitor over an NVML whose answers are known: eight devices, forty processes, and the hard cases.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | `synthetic.rs` | the library, built and steered |
//! | `schema.rs` | the JSON document and its schema; the printed text |
//! | this one | the view against what the library says; slow devices, processes that vanish, handles |

mod schema;
mod synthetic;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memscope_core::monitor::{Kind, Monitor, MonitorDevice, MonitorInstance, MonitorProcess, MonitorView};
use synthetic::{GIB, MIB, Sleeper, Synthetic};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(20);

/// The first view that is as wanted.
#[track_caller]
pub fn until(monitor: &Monitor, wanted: impl Fn(&MonitorView) -> bool) -> Arc<MonitorView> {
    let begin = Instant::now();
    let mut round = 0;
    loop {
        let view = monitor.wait_after(round, PATIENCE);
        let view = view.unwrap_or_else(|| panic!("no view after round {round}: {:?}", monitor.unavailable()));
        if wanted(&view) {
            return view;
        }
        assert!(begin.elapsed() < PATIENCE, "{view:#?}");
        round = view.round;
    }
}

/// All devices have answered, and rates are known.
fn complete(view: &MonitorView) -> bool {
    view.round >= 2 && view.devices.iter().all(|device| device.age_ms.is_some())
}

fn device(view: &MonitorView, index: usize) -> MonitorDevice {
    MonitorDevice { age_ms: None, ..view.devices[index].clone() }
}

/// What synthetic.c says of an ordinary device, by its own comments.
fn ordinary(index: u32) -> MonitorDevice {
    MonitorDevice {
        index,
        uuid: Some(format!("GPU-00000000-0000-0000-0000-{index:012}")),
        name: Some("NVIDIA H100 80GB HBM3".into()),
        age_ms: None,
        error: None,
        memory_total: Some(80 * GIB),
        memory_used: Some((10 + u64::from(index)) * GIB),
        memory_reserved: Some(600 * MIB),
        utilization_percent: Some(10 * index),
        temperature_celsius: Some(40 + index),
        fan_percent: Some(30 + index),
        power_milliwatts: Some(100_000 + 10_000 * index),
        power_limit_milliwatts: Some(700_000),
        clock_megahertz: Some(1000 + 100 * index),
        memory_clock_megahertz: Some(2619),
        pcie_generation: Some(5),
        pcie_width: Some(16),
        pcie_receive: Some(1_000_000 * (u64::from(index) + 1)),
        pcie_send: Some(2_000_000 * (u64::from(index) + 1)),
        processes_known: true,
        instances: Vec::new(),
    }
}

#[test]
fn the_view_is_what_the_library_says() {
    let synthetic = Synthetic::new();
    let monitor = synthetic.watch(INTERVAL);
    let view = until(&monitor, complete);
    assert_eq!((view.schema_version, view.interval_ms, view.driver.as_deref()), (1, 20, Some("580.00")));
    assert_eq!(view.devices.len(), 8);
    for index in [0, 1, 2, 4, 6] {
        assert_eq!(device(&view, index), ordinary(index as u32));
    }
    let bare = MonitorDevice {
        name: Some("NVIDIA T400".into()),
        temperature_celsius: None,
        fan_percent: None,
        power_milliwatts: None,
        power_limit_milliwatts: None,
        clock_megahertz: None,
        memory_clock_megahertz: None,
        pcie_generation: None,
        pcie_width: None,
        pcie_receive: None,
        pcie_send: None,
        ..ordinary(3)
    };
    assert_eq!(device(&view, 3), bare);
    assert_eq!(device(&view, 5), MonitorDevice { processes_known: false, ..ordinary(5) });
    let instance = |index| MonitorInstance {
        index,
        uuid: Some(format!("MIG-00000000-0000-0000-0000-{index:012}")),
        name: Some("NVIDIA H100 80GB HBM3 MIG 1g.10gb".into()),
        memory_total: Some(10 * GIB),
        memory_used: Some(GIB),
    };
    let divided = MonitorDevice {
        utilization_percent: None,
        instances: vec![instance(0), instance(1), instance(4)],
        ..ordinary(7)
    };
    assert_eq!(device(&view, 7), divided);
}

#[test]
fn forty_processes_with_what_the_system_says_of_them() {
    let synthetic = Synthetic::new();
    let sleepers: Vec<Sleeper> = (0..35).map(|_| Sleeper::new()).collect();
    let mut text = String::new();
    for (number, sleeper) in sleepers.iter().enumerate() {
        text += &format!("{} {} {} C -\n", number % 5, sleeper.pid(), (number as u64 + 1) * MIB);
    }
    // On an instance; drawing; doing both; without a figure; and one that is not of this PID namespace.
    let own = std::process::id();
    text += &format!("7 {own} {GIB} C 4\n4 {own} - G -\n3 {own} {MIB} B -\n6 {own} - C -\n6 4194304 {MIB} C -\n");
    synthetic.put("processes", &text);
    let monitor = synthetic.watch(INTERVAL);
    let slept = |view: &MonitorView| {
        let sleeps = |process: &&MonitorProcess| process.command.as_deref() == Some("sleep 3600");
        view.processes.iter().filter(sleeps).count() == 35
    };
    let view = until(&monitor, |view| complete(view) && slept(view));
    assert_eq!(view.processes.len(), 40);
    for (number, sleeper) in sleepers.iter().enumerate() {
        let found: Vec<_> = view.processes.iter().filter(|process| process.pid == sleeper.pid()).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].device, found[0].kind), (number as u32 % 5, Kind::Compute));
        assert_eq!(found[0].memory_used, Some((number as u64 + 1) * MIB));
        assert_eq!(found[0].start_time, memscope_core::source::start_time(sleeper.pid()));
        assert_eq!(found[0].cpu_percent, Some(0.0), "it sleeps");
        assert!(found[0].host_memory.is_some_and(|bytes| bytes > 0) && found[0].user.is_some());
    }
    let mine: Vec<_> = view
        .processes
        .iter()
        .filter(|process| process.pid == own)
        .map(|process| (process.device, process.instance, process.kind, process.memory_used))
        .collect();
    let expected = [
        (3, None, Kind::Both, Some(MIB)),
        (4, None, Kind::Graphics, None),
        (6, None, Kind::Compute, None),
        (7, Some(4), Kind::Compute, Some(GIB)),
    ];
    assert_eq!(mine, expected);
    let foreign = view.processes.iter().find(|process| process.pid == 4_194_304).expect("it is listed");
    assert_eq!((foreign.memory_used, &foreign.user, &foreign.command), (Some(MIB), &None, &None));
    assert_eq!((foreign.start_time, foreign.cpu_percent, foreign.host_memory), (None, None, None));
    let on_instance = view.processes.iter().find(|process| process.instance == Some(4)).expect("it is listed");
    assert_eq!(view.memory_total(on_instance), Some(10 * GIB));
}

#[test]
fn a_device_that_does_not_answer_holds_up_nothing() {
    let synthetic = Synthetic::new();
    synthetic.put("hold-2", "");
    let monitor = synthetic.watch(INTERVAL);
    let answered = |view: &MonitorView, index: usize| view.devices[index].age_ms.is_some();
    // The others answer round after round while it does not.
    let view = until(&monitor, |view| view.round >= 5 && (0..8).all(|index| index == 2 || answered(view, index)));
    assert_eq!(view.devices[2], MonitorDevice { index: 2, ..MonitorDevice::default() });
    synthetic.remove("hold-2");
    let view = until(&monitor, |view| answered(view, 2));
    assert_eq!(device(&view, 2), ordinary(2));
    // It had answered before: what it said stays, and grows old.
    synthetic.put("hold-2", "");
    let view = until(&monitor, |view| view.devices[2].age_ms.is_some_and(|age| age > 10 * view.interval_ms));
    assert_eq!(device(&view, 2), ordinary(2));
    assert!(view.devices[1].age_ms < view.devices[2].age_ms);
    synthetic.remove("hold-2");
}

#[test]
fn an_answer_that_takes_half_a_second_is_shown_with_its_age() {
    let synthetic = Synthetic::new();
    synthetic.put("slow-0", "");
    let monitor = synthetic.watch(INTERVAL);
    let first = until(&monitor, |view| view.devices[0].age_ms.is_some());
    assert_eq!(device(&first, 0), ordinary(0));
    // Many rounds go by between two of its answers.
    assert!(first.round > 2, "round {}", first.round);
    let old = until(&monitor, |view| view.devices[0].age_ms > view.devices[1].age_ms);
    assert_eq!(device(&old, 0), ordinary(0));
}

#[test]
fn processes_come_and_go_between_two_answers() {
    let synthetic = Synthetic::new();
    let pids = |view: &MonitorView| view.processes.iter().map(|process| process.pid).collect::<Vec<_>>();
    let staying = Sleeper::new();
    let leaving = Sleeper::new();
    let (stays, leaves) = (staying.pid(), leaving.pid());
    synthetic.put("processes", &format!("0 {stays} 1 C -\n1 {leaves} 2 C -\n"));
    let monitor = synthetic.watch(INTERVAL);
    let seen = until(&monitor, |view| pids(view) == [stays, leaves]);
    let start = |view: &MonitorView, pid| view.processes.iter().find(|process| process.pid == pid)?.start_time;
    assert!(start(&seen, stays).is_some() && start(&seen, leaves).is_some());
    // Gone from the system, still in NVML's list: nothing of it is made up.
    drop(leaving);
    let gone = until(&monitor, |view| pids(view) == [stays, leaves] && start(view, leaves).is_none());
    let ghost = &gone.processes[1];
    assert_eq!((&ghost.command, &ghost.user, ghost.cpu_percent, ghost.memory_used), (&None, &None, None, Some(2)));
    synthetic.put("processes", &format!("0 {stays} 1 C -\n"));
    let last = until(&monitor, |view| pids(view) == [stays]);
    assert_eq!(start(&last, stays), start(&seen, stays));
}

#[test]
fn handles_are_fetched_once() {
    let synthetic = Synthetic::new();
    // A process that nobody finds on a known instance makes the instances be fetched once more, and not again and again.
    let monitor = synthetic.watch(Duration::from_millis(1));
    until(&monitor, |view| view.round >= 50 && complete(view));
    let mut expected: Vec<String> = (0..8).map(|index| format!("device {index}")).collect();
    expected.extend([0, 1, 4].map(|index| format!("instance {index}")));
    assert_eq!(synthetic.handles(), expected);

    synthetic.put("processes", &format!("7 {} 1 C 5\n", std::process::id()));
    let seen = until(&monitor, |view| !view.processes.is_empty());
    assert_eq!((seen.processes[0].device, seen.processes[0].instance), (7, None));
    until(&monitor, |view| view.round >= seen.round + 50);
    let again = synthetic.handles();
    let count = |name: &str| again.iter().filter(|line| *line == name).count();
    assert_eq!((count("device 7"), count("instance 0"), count("instance 4")), (1, 2, 2));
}

#[test]
fn without_nvml_there_is_a_reason() {
    let synthetic = Synthetic::new();
    synthetic.remove("libnvidia-ml.so.1");
    let monitor = synthetic.watch(INTERVAL);
    assert_eq!(monitor.wait_after(0, PATIENCE), None);
    let reason = monitor.unavailable().expect("a reason");
    assert!(reason.starts_with("libnvidia-ml.so.1 cannot be loaded"), "{reason}");
    assert_eq!(monitor.view().round, 0);
}

#[test]
fn whoever_shows_the_view_is_told_of_each() {
    let synthetic = Synthetic::new();
    let (sender, told) = std::sync::mpsc::channel();
    let options = memscope_core::monitor::Options {
        library: Some(synthetic.path("libnvidia-ml.so.1")),
        interval: INTERVAL,
        notify: Some(Box::new(move || sender.send(()).unwrap_or(()))),
    };
    let monitor = Monitor::start(options);
    for round in 1..=3 {
        told.recv_timeout(PATIENCE).expect("a notice");
        assert!(monitor.view().round >= round);
    }
}
