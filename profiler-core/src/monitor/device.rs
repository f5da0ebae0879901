//! One GPU, asked on a thread of its own.
//!
//! Owns: the handles of a device and of its instances, fetched once, and its last answer. Refuses: to hold up anybody: a device
//! that takes long, or never answers, misses rounds, and its last answer grows old.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::round::Rounds;
use super::view::{Kind, MonitorDevice, MonitorInstance};
use crate::journal::entry::DeviceSample;
use crate::telemetry::{NOT_AVAILABLE, ask_rest};

/// Rounds between two tries to get a handle that NVML refused.
const RETRY_ROUNDS: u64 = 10;

/// What a device said last.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub device: MonitorDevice,
    pub processes: Vec<Listed>,
    /// When it was complete; `None` before the first.
    pub complete: Option<Instant>,
}

/// A process in NVML's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Listed {
    pub pid: u32,
    pub used: Option<u64>,
    pub kind: Kind,
    pub instance: Option<u32>,
}

/// Where a device's thread leaves its answers.
#[derive(Default)]
pub(super) struct Slot(Mutex<Answer>);

impl Slot {
    pub fn new(index: u32) -> Slot {
        Slot(Mutex::new(Answer { device: MonitorDevice { index, ..MonitorDevice::default() }, ..Answer::default() }))
    }

    pub fn answer(&self) -> MutexGuard<'_, Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device's thread: answers once a round, until the rounds end.
pub(super) fn serve(nvml: &Nvml, index: u32, slot: &Arc<Slot>, rounds: &Rounds) {
    let mut asked: Option<Asked<'_>> = None;
    let mut round = 0;
    let mut retry = 0;
    while let Some(next) = rounds.wait_after(round) {
        round = next;
        if asked.is_none() && round >= retry {
            match nvml.device_by_index(index) {
                Ok(device) => asked = Some(Asked::new(index, device)),
                Err(error) => {
                    slot.answer().device.error = Some(format!("NVML gives no access to it: {error}"));
                    retry = round + RETRY_ROUNDS;
                }
            }
        }
        if let Some(asked) = &mut asked {
            asked.ask();
            // Both answers live on, so that a round needs no memory.
            let mut shown = slot.answer();
            std::mem::swap(&mut *shown, &mut asked.answer);
            shown.complete = Some(Instant::now());
        }
        rounds.done(index as usize, round);
    }
}

/// A device with what does not change about it.
struct Asked<'nvml> {
    index: u32,
    device: Device<'nvml>,
    uuid: Option<String>,
    name: Option<String>,
    instances: Vec<Instance<'nvml>>,
    /// Process ids on instances that were not known when the instances were last fetched.
    unplaced: Vec<u32>,
    answer: Answer,
}

/// An instance of a divided device.
struct Instance<'nvml> {
    device: Device<'nvml>,
    index: u32,
    uuid: Option<String>,
    name: Option<String>,
}

impl<'nvml> Asked<'nvml> {
    fn new(index: u32, device: Device<'nvml>) -> Asked<'nvml> {
        let mut asked = Asked {
            index,
            uuid: device.uuid().ok(),
            name: device.name().ok(),
            device,
            instances: Vec::new(),
            unplaced: Vec::new(),
            answer: Answer::default(),
        };
        asked.fetch_instances();
        asked
    }

    fn fetch_instances(&mut self) {
        self.instances.clear();
        if !self.device.mig_mode().is_ok_and(|mode| mode.current == 1) {
            return;
        }
        for index in 0..self.device.mig_device_count().unwrap_or(0) {
            let Ok(device) = self.device.mig_device_by_index(index) else { continue };
            let (uuid, name) = (device.uuid().ok(), device.name().ok());
            self.instances.push(Instance { device, index, uuid, name });
        }
    }

    fn ask(&mut self) {
        let mut sample = DeviceSample::default();
        let memory = self.device.memory_info();
        let compute = self.device.running_compute_processes().ok();
        let graphics = self.device.running_graphics_processes().ok();
        ask_rest(&self.device, &mut sample);
        let processes_known = compute.is_some();

        self.answer.processes.clear();
        let stale = self.ask_instances();
        let placed = self.answer.processes.len();
        list(&mut self.answer.processes, compute.as_deref(), graphics.as_deref(), None);
        self.answer.processes.sort_unstable_by_key(|process| (process.pid, process.instance));
        self.place_again(stale, placed, compute.as_deref().unwrap_or_default());

        copy(&mut self.answer.device.uuid, &self.uuid);
        copy(&mut self.answer.device.name, &self.name);
        let device = &mut self.answer.device;
        device.error = memory.as_ref().err().filter(|error| is_grave(error)).map(|error| format!("NVML says: {error}"));
        let memory = memory.as_ref().ok();
        device.index = self.index;
        device.memory_total = memory.and_then(|memory| given(memory.total));
        device.memory_used = memory.and_then(|memory| given(memory.used));
        device.memory_reserved = memory.and_then(|memory| given(memory.reserved));
        device.utilization_percent = sample.utilization;
        device.temperature_celsius = sample.temperature;
        device.fan_percent = sample.fan;
        device.power_milliwatts = sample.power;
        device.power_limit_milliwatts = sample.power_limit;
        device.clock_megahertz = sample.clock;
        device.memory_clock_megahertz = sample.memory_clock;
        device.pcie_generation = sample.pcie_generation;
        device.pcie_width = sample.pcie_width;
        device.pcie_receive = sample.pcie_receive;
        device.pcie_send = sample.pcie_send;
        device.processes_known = processes_known;
    }

    /// Asks the instances; true when one of them is no longer there.
    fn ask_instances(&mut self) -> bool {
        let mut stale = false;
        let shown = &mut self.answer.device.instances;
        shown.resize_with(self.instances.len(), MonitorInstance::default);
        for (instance, shown) in self.instances.iter().zip(shown) {
            let memory = instance.device.memory_info();
            stale |= memory.is_err();
            let memory = memory.ok();
            shown.index = instance.index;
            copy(&mut shown.uuid, &instance.uuid);
            copy(&mut shown.name, &instance.name);
            shown.memory_total = memory.as_ref().and_then(|memory| given(memory.total));
            shown.memory_used = memory.as_ref().and_then(|memory| given(memory.used));
            let compute = instance.device.running_compute_processes().ok();
            let graphics = instance.device.running_graphics_processes().ok();
            list(&mut self.answer.processes, compute.as_deref(), graphics.as_deref(), Some(instance.index));
        }
        stale
    }

    /// Fetches the instances anew when the device was divided in another way: one is gone, or a process runs on one that is not
    /// known. A process that cannot be placed even so (no permission) is no reason to do it again.
    fn place_again(&mut self, stale: bool, placed: usize, compute: &[ProcessInfo]) {
        if !stale && self.answer.processes.len() == placed && self.unplaced.is_empty() {
            return;
        }
        let on_instance = |pid| compute.iter().any(|process| process.pid == pid && process.gpu_instance_id.is_some());
        let unplaced: Vec<u32> = self
            .answer
            .processes
            .iter()
            .filter(|process| process.instance.is_none() && on_instance(process.pid))
            .map(|process| process.pid)
            .collect();
        if stale || unplaced != self.unplaced {
            self.fetch_instances();
            self.unplaced = unplaced;
        }
    }
}

/// Adds the processes of both lists, each once: one with a compute and a graphics context is in both with the same figure. A
/// process that is already there is on an instance, of which the whole device's list tells again.
fn list(
    to: &mut Vec<Listed>,
    compute: Option<&[ProcessInfo]>,
    graphics: Option<&[ProcessInfo]>,
    instance: Option<u32>,
) {
    let known = if instance.is_none() { to.len() } else { 0 };
    let begin = to.len();
    let lists = [(compute, Kind::Compute), (graphics, Kind::Graphics)];
    for (process, kind) in lists.iter().flat_map(|(list, kind)| list.unwrap_or_default().iter().map(|p| (p, *kind))) {
        let used = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => given(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        if to[..known].iter().any(|listed| listed.pid == process.pid) {
            continue;
        }
        match to[begin..].iter_mut().find(|listed| listed.pid == process.pid) {
            Some(listed) => {
                listed.used = listed.used.max(used);
                if listed.kind != kind {
                    listed.kind = Kind::Both;
                }
            }
            None => to.push(Listed { pid: process.pid, used, kind, instance }),
        }
    }
}

/// Whether an error means that the device as a whole does not answer, and not that it lacks one value.
fn is_grave(error: &NvmlError) -> bool {
    !matches!(error, NvmlError::NotSupported | NvmlError::NoPermission | NvmlError::FailedToLoadSymbol(_))
}

/// A number that may be NVML's "not available".
fn given(value: u64) -> Option<u64> {
    (value != NOT_AVAILABLE).then_some(value)
}

/// Copies a text into the memory that is already there.
fn copy(to: &mut Option<String>, from: &Option<String>) {
    match (to, from) {
        (Some(to), Some(from)) => from.clone_into(to),
        (to, from) => *to = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, used: u64) -> ProcessInfo {
        let used_gpu_memory = UsedGpuMemory::Used(used);
        ProcessInfo { pid, used_gpu_memory, gpu_instance_id: None, compute_instance_id: None }
    }

    #[test]
    fn a_process_in_both_lists_does_both() {
        let mut all = Vec::new();
        list(&mut all, Some(&[process(1, 10), process(2, 20)]), Some(&[process(2, 20), process(3, u64::MAX)]), None);
        let listed = |pid, used, kind| Listed { pid, used, kind, instance: None };
        let expected =
            [listed(1, Some(10), Kind::Compute), listed(2, Some(20), Kind::Both), listed(3, None, Kind::Graphics)];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_process_on_an_instance_is_not_told_again_by_the_whole_device() {
        let mut all = Vec::new();
        list(&mut all, Some(&[process(1, 10)]), None, Some(4));
        list(&mut all, Some(&[process(1, 10), process(2, 20)]), None, None);
        let places: Vec<_> = all.iter().map(|listed| (listed.pid, listed.instance)).collect();
        assert_eq!(places, [(1, Some(4)), (2, None)]);
        // On two instances it is there twice.
        list(&mut all, Some(&[process(1, 10)]), None, Some(5));
        assert_eq!(all.last().map(|listed| (listed.pid, listed.instance)), Some((1, Some(5))));
    }
}
