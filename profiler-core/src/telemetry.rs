//! What NVML says, polled.
//!
//! Owns: the threads that ask NVML, and turning its answers into samples in which an absent value is absent. Refuses: to
//! hold anything up. NVML is loaded and asked on threads of its own, one a device, and a driver that hangs costs its own
//! device's samples only.
//!
//! Handles are fetched once. A value that the driver refuses, cannot give here (permissions, MIG, another PID namespace) or
//! gives as its "not available" number is `None`, never 0.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use crate::clock;
use crate::journal::entry::{DeviceSample, Nanoseconds, ProcessSample, TelemetrySample};

/// Samples kept for a slow receiver; more are counted as missed.
const WAITING_SAMPLES: usize = 1024;
/// How long the end waits for threads that are inside the driver.
const PATIENCE: Duration = Duration::from_millis(500);
/// NVML's number for a value that it does not have.
pub(crate) const NOT_AVAILABLE: u64 = u64::MAX;

/// How to poll.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of libnvidia-ml.so.1; without one, the loader looks for it.
    pub library: Option<PathBuf>,
    /// From the beginning of one poll to the next.
    pub interval: Duration,
    /// CLOCK_MONOTONIC nanoseconds at the session's time 0.
    pub start_monotonic_ns: u64,
}

/// Polls until it is dropped.
pub struct Poller {
    samples: Receiver<TelemetrySample>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    status: Mutex<Status>,
    changed: Condvar,
    missed: AtomicU64,
}

#[derive(Default)]
struct Status {
    stop: bool,
    /// Threads that poll or are about to.
    threads: usize,
    /// Of those, the ones from which a first sample may still come.
    unheard: usize,
    unavailable: Option<String>,
}

/// What NVML says once, for `doctor`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// The driver's version.
    pub driver: Option<String>,
    /// NVML's version.
    pub nvml: Option<String>,
    /// The devices.
    pub devices: Vec<DeviceSample>,
}

impl Poller {
    /// Begins to poll, and returns at once: NVML is loaded on a thread of its own, which may take seconds. Where there is
    /// no NVML, no samples come, and [`Poller::unavailable`] says why.
    pub fn start(options: Options) -> Poller {
        let (sender, samples) = sync_channel(WAITING_SAMPLES);
        let shared = Arc::new(Shared::default());
        shared.enter();
        let of_thread = Arc::clone(&shared);
        let spawned = spawn("nvml".to_owned(), move || {
            if let Err(reason) = begin(&options, &sender, &of_thread) {
                of_thread.status().unavailable = Some(reason);
            }
            of_thread.hear();
            of_thread.leave();
        });
        if let Err(error) = spawned {
            shared.status().unavailable = Some(format!("no thread for NVML: {error}"));
            shared.hear();
            shared.leave();
        }
        Poller { samples, shared }
    }

    /// Asks NVML once about everything. Errors: why there is no NVML, as a sentence.
    pub fn probe(library: Option<&OsStr>) -> Result<Probe, String> {
        let nvml = load(library)?;
        let count = nvml.device_count().map_err(|error| format!("NVML does not count the devices: {error}"))?;
        let devices = (0..count).filter_map(|index| {
            let device = nvml.device_by_index(index).ok()?;
            let known = Known::of(&device, index);
            let mut sample = known.ask_memory(&device);
            ask_rest(&device, &mut sample);
            Some(sample)
        });
        Ok(Probe {
            devices: devices.collect(),
            driver: nvml.sys_driver_version().ok(),
            nvml: nvml.sys_nvml_version().ok(),
        })
    }

    /// The samples since the last call.
    pub fn take(&mut self) -> Vec<TelemetrySample> {
        self.samples.try_iter().collect()
    }

    /// Waits until each device has given its first sample or never will, at most for this time.
    pub fn wait_for_first(&self, time: Duration) {
        let status = self.shared.status();
        let waited = self.shared.changed.wait_timeout_while(status, time, |status| status.unheard > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Why there are no samples, if there are none to come: a sentence.
    pub fn unavailable(&self) -> Option<String> {
        self.shared.status().unavailable.clone()
    }

    /// Samples that were lost because nobody took them.
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        let mut status = self.shared.status();
        status.stop = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + PATIENCE;
        while status.threads > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // A thread hangs in the driver; it ends with the process.
                return;
            }
            let waited = self.shared.changed.wait_timeout(status, left);
            status = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) {
        let mut status = self.status();
        status.threads += 1;
        status.unheard += 1;
    }

    /// No first sample is to be waited for any more from one of the threads.
    fn hear(&self) {
        self.status().unheard -= 1;
        self.changed.notify_all();
    }

    fn leave(&self) {
        self.status().threads -= 1;
        self.changed.notify_all();
    }

    /// Waits; true when it is time to stop.
    fn pause(&self, time: Duration) -> bool {
        let status = self.status();
        let waited = self.changed.wait_timeout_while(status, time, |status| !status.stop);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }
}

/// Loads NVML. Errors: why there is none, as a sentence.
pub(crate) fn load(library: Option<&OsStr>) -> Result<Nvml, String> {
    let mut builder = Nvml::builder();
    if let Some(path) = library {
        builder.lib_path(path);
    }
    builder.init().map_err(|error| match error {
        NvmlError::LibloadingError(error) => {
            format!("libnvidia-ml.so.1 cannot be loaded ({error}): no NVIDIA driver here")
        }
        error => format!("NVML does not start: {error}"),
    })
}

/// Loads NVML and gives each device a thread. `Err`: why nothing will come.
fn begin(options: &Options, sender: &SyncSender<TelemetrySample>, shared: &Arc<Shared>) -> Result<(), String> {
    let nvml = Arc::new(load(options.library.as_deref().map(OsStr::new))?);
    let count = nvml.device_count().map_err(|error| format!("NVML does not count the devices: {error}"))?;
    if count == 0 {
        return Err("NVML sees no device".to_owned());
    }
    for index in 0..count {
        let (nvml, sender, of_thread) = (Arc::clone(&nvml), sender.clone(), Arc::clone(shared));
        let (interval, start_ns) = (options.interval, options.start_monotonic_ns);
        shared.enter();
        let spawned = spawn(format!("nvml-{index}"), move || {
            match nvml.device_by_index(index) {
                Ok(device) => poll(&Known::of(&device, index), &device, interval, start_ns, &sender, &of_thread),
                Err(_) => of_thread.hear(),
            }
            of_thread.leave();
        });
        if let Err(error) = spawned {
            shared.hear();
            shared.leave();
            return Err(format!("no thread for device {index}: {error}"));
        }
    }
    Ok(())
}

fn poll(
    known: &Known,
    device: &Device<'_>,
    interval: Duration,
    start_ns: u64,
    sender: &SyncSender<TelemetrySample>,
    shared: &Shared,
) {
    let now = || Nanoseconds(clock::monotonic_ns().saturating_sub(start_ns));
    let mut heard = false;
    loop {
        let begin = now();
        let mut sample = known.ask_memory(device);
        // What follows takes its time (the throughput of the PCIe link alone 40 ms) and does not belong to the window.
        let time = now();
        ask_rest(device, &mut sample);
        let end = now();
        let sent = sender.try_send(TelemetrySample { begin, time, devices: vec![sample] });
        if let Err(TrySendError::Full(_)) = sent {
            shared.missed.fetch_add(1, Ordering::Relaxed);
        }
        if !std::mem::replace(&mut heard, true) {
            shared.hear();
        }
        if let Err(TrySendError::Disconnected(_)) = sent {
            return;
        }
        // A slow driver is left alone for at least a quarter of the interval.
        let pause = interval.saturating_sub(Duration::from_nanos(end.0 - begin.0)).max(interval / 4);
        if shared.pause(pause) {
            return;
        }
    }
}

/// What does not change about a device.
struct Known {
    uuid: String,
    name: Option<String>,
}

impl Known {
    fn of(device: &Device<'_>, index: u32) -> Known {
        let uuid = device.uuid().unwrap_or_else(|_| format!("unknown-{index}"));
        Known { uuid: uuid.strip_prefix("GPU-").unwrap_or(&uuid).to_owned(), name: device.name().ok() }
    }

    /// Asks for memory and processes, next to each other: the ledger needs them to be of one moment.
    fn ask_memory(&self, device: &Device<'_>) -> DeviceSample {
        let memory = device.memory_info().ok();
        let given = |value: u64| (value != NOT_AVAILABLE).then_some(value);
        let processes = merge(device.running_compute_processes().ok(), device.running_graphics_processes().ok());
        DeviceSample {
            uuid: self.uuid.clone(),
            name: self.name.clone(),
            total: memory.as_ref().and_then(|memory| given(memory.total)),
            used: memory.as_ref().and_then(|memory| given(memory.used)),
            reserved: memory.as_ref().and_then(|memory| given(memory.reserved)),
            processes,
            ..DeviceSample::default()
        }
    }
}

/// Asks for everything else that changes.
pub(crate) fn ask_rest(device: &Device<'_>, sample: &mut DeviceSample) {
    // NVML gives the throughput in KB/s, averaged over 20 ms, during which it blocks.
    let throughput = |counter| number(device.pcie_throughput(counter)).map(|kilobytes| u64::from(kilobytes) * 1000);
    sample.utilization = percent(device.utilization_rates().map(|rates| rates.gpu));
    sample.temperature = number(device.temperature(TemperatureSensor::Gpu));
    sample.power = number(device.power_usage());
    sample.power_limit = number(device.enforced_power_limit());
    sample.clock = number(device.clock_info(Clock::Graphics));
    sample.memory_clock = number(device.clock_info(Clock::Memory));
    // Of several fans the first: they turn together unless somebody set them apart.
    sample.fan = number(device.fan_speed(0));
    sample.pcie_generation = number(device.current_pcie_link_gen());
    sample.pcie_width = number(device.current_pcie_link_width());
    sample.pcie_receive = throughput(PcieUtilCounter::Receive);
    sample.pcie_send = throughput(PcieUtilCounter::Send);
}

/// A share that may be nonsense.
fn percent(answer: Result<u32, NvmlError>) -> Option<u32> {
    answer.ok().filter(|value| *value <= 100)
}

/// A number that may be NVML's "not available".
fn number(answer: Result<u32, NvmlError>) -> Option<u32> {
    answer.ok().filter(|value| *value != u32::MAX)
}

/// Both lists as one, a process once. A process with a compute and a graphics context is in both with the same figure.
/// Without the list of compute processes the answer would mislead, so there is none.
fn merge(compute: Option<Vec<ProcessInfo>>, graphics: Option<Vec<ProcessInfo>>) -> Option<Vec<ProcessSample>> {
    let mut by_pid: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for process in compute?.into_iter().chain(graphics.unwrap_or_default()) {
        let used = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) if bytes != NOT_AVAILABLE => Some(bytes),
            _ => None,
        };
        let known = by_pid.entry(process.pid).or_default();
        *known = used.max(*known);
    }
    Some(by_pid.into_iter().map(|(pid, used)| ProcessSample { pid, used }).collect())
}

pub(crate) fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name).spawn(body).map(drop)
}
