//! The monitor of the whole machine: every GPU and every process that NVML sees, round after round.
//!
//! Owns: the threads that ask NVML, one a device (`device`), the beat that they keep (`round`), what the operating system says
//! about the processes (`host`), what their memory is for when they run under memscope (`sessions`), and the view of all that
//! (`view`), which can be printed (`text`). Refuses: terminals, windows and signals; and to be held up: a device that does not
//! answer shows its last answer and the age of it.

mod device;
mod host;
mod round;
mod sessions;
mod text;
mod view;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;

use crate::clock;
use crate::explorer::Holding;
use crate::telemetry::{load, spawn};
use device::{Answer, Slot, serve};
use host::Host;
use round::Rounds;
use sessions::Sessions;
pub use view::{
    Kind, MonitorDevice, MonitorInstance, MonitorProcess, MonitorView, SCHEMA_VERSION as VIEW_SCHEMA_VERSION, schema,
};

/// How long a round waits for a device that has always answered in time. A real one takes 40 ms for the throughput of its PCIe
/// link.
const GRACE: Duration = Duration::from_millis(200);

/// How to watch.
pub struct Options {
    /// Path of libnvidia-ml.so.1; without one, the loader looks for it.
    pub library: Option<PathBuf>,
    /// From the beginning of one round to the next.
    pub interval: Duration,
    /// Called from the monitor's thread when there is a new view, and when it turns out that there will be none.
    pub notify: Option<Box<dyn Fn() + Send>>,
}

/// Watches the machine until it is dropped.
pub struct Monitor {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    view: Arc<MonitorView>,
    unavailable: Option<String>,
    rounds: Option<Arc<Rounds>>,
    over: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Monitor {
    /// Begins to watch, and returns at once: NVML is loaded on a thread of its own, which may take seconds.
    pub fn start(options: Options) -> Monitor {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let spawned = spawn("monitor".to_owned(), move || {
            if let Err(reason) = watch(&options, &of_thread) {
                of_thread.state().unavailable = Some(reason);
                of_thread.changed.notify_all();
                if let Some(notify) = &options.notify {
                    notify();
                }
            }
        });
        if let Err(error) = spawned {
            shared.state().unavailable = Some(format!("no thread for NVML: {error}"));
        }
        Monitor { shared }
    }

    /// The latest view; its `round` is 0 before the first.
    pub fn view(&self) -> Arc<MonitorView> {
        Arc::clone(&self.shared.state().view)
    }

    /// Waits for a view of a later round than this one. `None` when there will be none, or the time is over.
    pub fn wait_after(&self, round: u64, time: Duration) -> Option<Arc<MonitorView>> {
        let is_waiting = |state: &mut State| state.view.round <= round && state.unavailable.is_none();
        let waited = self.shared.changed.wait_timeout_while(self.shared.state(), time, is_waiting);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        (state.view.round > round).then(|| Arc::clone(&state.view))
    }

    /// Why there are no views, if there will be none: a sentence.
    pub fn unavailable(&self) -> Option<String> {
        self.shared.state().unavailable.clone()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Threads inside the driver are not waited for: one that hangs ends with the process.
        let mut state = self.shared.state();
        state.over = true;
        if let Some(rounds) = &state.rounds {
            rounds.end();
        }
    }
}

/// Loads NVML, gives each device a thread, and makes a view each round. `Err`: why there will be none.
fn watch(options: &Options, shared: &Shared) -> Result<(), String> {
    let nvml = Arc::new(load(options.library.as_deref().map(OsStr::new))?);
    let count = nvml.device_count().map_err(|error| format!("NVML does not count the devices: {error}"))?;
    if count == 0 {
        return Err("NVML sees no device".to_owned());
    }
    let rounds = Arc::new(Rounds::new(count as usize));
    {
        let mut state = shared.state();
        if state.over {
            return Ok(());
        }
        state.rounds = Some(Arc::clone(&rounds));
    }
    let slots: Vec<Arc<Slot>> = (0..count).map(|index| Arc::new(Slot::new(index))).collect();
    for (index, slot) in slots.iter().enumerate() {
        spawn_device(&nvml, index as u32, slot, &rounds)?;
    }
    let driver = nvml.sys_driver_version().ok();
    let mut composer = Composer { host: Host::new(), sessions: Sessions::start(options.interval), driver, slots };
    let grace = GRACE.min(options.interval / 2);
    let mut next = Instant::now();
    while let Some(round) = rounds.run(Instant::now() + grace) {
        let view = Arc::new(composer.view(round, options.interval));
        shared.state().view = view;
        shared.changed.notify_all();
        if let Some(notify) = &options.notify {
            notify();
        }
        // A round that came late is not made up for.
        next = (next + options.interval).max(Instant::now());
        if !rounds.rest(next) {
            break;
        }
    }
    Ok(())
}

fn spawn_device(nvml: &Arc<Nvml>, index: u32, slot: &Arc<Slot>, rounds: &Arc<Rounds>) -> Result<(), String> {
    let (nvml, slot, rounds) = (Arc::clone(nvml), Arc::clone(slot), Arc::clone(rounds));
    spawn(format!("nvml-{index}"), move || serve(&nvml, index, &slot, &rounds))
        .map_err(|error| format!("no thread for device {index}: {error}"))
}

/// Puts what all say into one view.
struct Composer {
    host: Host,
    sessions: Sessions,
    driver: Option<String>,
    slots: Vec<Arc<Slot>>,
}

impl Composer {
    fn view(&mut self, round: u64, interval: Duration) -> MonitorView {
        let sessions = self.sessions.count();
        let mut view = MonitorView {
            schema_version: VIEW_SCHEMA_VERSION,
            round,
            time_ms: clock::realtime_ns() / 1_000_000,
            interval_ms: interval.as_millis() as u64,
            driver: self.driver.clone(),
            sessions: sessions.map(|(followed, _)| followed as u32),
            sessions_behind: sessions.map(|(_, behind)| behind as u32),
            devices: Vec::with_capacity(self.slots.len()),
            processes: Vec::new(),
        };
        let mut holdings = Vec::new();
        self.sessions.each(|holding| holdings.push(holding.clone()));
        self.host.begin();
        for slot in &self.slots {
            let answer = slot.answer();
            add(&mut view, &answer, &mut self.host, &holdings);
        }
        view
    }
}

fn add(view: &mut MonitorView, answer: &Answer, host: &mut Host, holdings: &[Holding]) {
    let mut device = answer.device.clone();
    device.age_ms = answer.complete.map(|complete| complete.elapsed().as_millis() as u64);
    for listed in &answer.processes {
        let mut process = MonitorProcess {
            pid: listed.pid,
            device: device.index,
            instance: listed.instance,
            kind: listed.kind,
            memory_used: listed.used,
            ..MonitorProcess::default()
        };
        // NVML may name a process that is gone, or one of another PID namespace.
        if let Some(host) = host.look(listed.pid) {
            process.start_time = Some(host.start_time);
            process.user.clone_from(&host.user);
            process.cpu_percent = host.cpu_percent;
            process.host_memory = Some(host.host_memory);
            process.command.clone_from(&host.command);
            process.ledger = place_of(&device, listed.instance)
                .and_then(|uuid| sessions::rows(holdings, listed.pid, host.start_time, uuid))
                .map(|rows| (&rows).into());
        }
        view.processes.push(process);
    }
    view.devices.push(device);
}

/// The UUID by which a process knows the device, or the instance, that it runs on.
fn place_of(device: &MonitorDevice, instance: Option<u32>) -> Option<&str> {
    let uuid = match instance {
        None => &device.uuid,
        Some(index) => &device.instances.iter().find(|instance| instance.index == index)?.uuid,
    };
    uuid.as_deref().map(sessions::bare)
}
