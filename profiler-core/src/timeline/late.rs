//! What is learned about an allocation after its birth was walked: its category, that it is a container, that its free was
//! refused.
//!
//! Owns: what the walk took each of them for, and the correction. Refuses: what has not been walked yet: the walk meets it as
//! it is.

use std::collections::HashMap;

use memscope_wire::Category;

use crate::allocation::{Allocation, AllocationId, Changes, Model, flag};

use super::amend::Corrections;
use super::walk::Walk;
use super::{ALIVE, Lifetime};

/// As what an allocation was counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    category: Option<Category>,
    leaf: bool,
    revived: bool,
}

/// Facts since the last correction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Late {
    counted: HashMap<AllocationId, Counted>,
}

impl Late {
    /// Takes note of what an entry changed.
    pub fn note(&mut self, changes: &Changes, lifetimes: &[Lifetime]) {
        let walked = |id: &AllocationId| lifetimes.get(id.0 as usize).is_some_and(|lifetime| lifetime.birth > 0);
        for retag in changes.retagged.iter().filter(|retag| walked(&retag.allocation)) {
            self.counted.entry(retag.allocation).or_default().category.get_or_insert(retag.was);
        }
        for id in changes.containers.iter().filter(|id| walked(id)) {
            self.counted.entry(*id).or_default().leaf = true;
        }
        for id in changes.revived.iter().filter(|id| walked(id)) {
            self.counted.entry(*id).or_default().revived = true;
        }
    }

    /// True when there is nothing to correct.
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }
}

impl Walk {
    /// Puts right what was walked before these facts were known.
    pub fn correct(&mut self, model: &Model, late: &mut Late) {
        let mut devices: HashMap<u16, Corrections> = HashMap::new();
        let mut processes: HashMap<u32, Corrections> = HashMap::new();
        let (mut host, mut all) = (Corrections::default(), Corrections::default());
        for (id, counted) in late.counted.drain() {
            let is = model.allocations[id.0 as usize];
            let flags = if counted.leaf { is.flags & !flag::CONTAINER } else { is.flags };
            let was = Allocation { category: counted.category.unwrap_or(is.category), flags, ..is };
            let lifetime = &mut self.lifetimes[id.0 as usize];
            let Lifetime { birth, death } = *lifetime;
            if counted.revived && death != ALIVE {
                lifetime.death = ALIVE;
                self.dead -= 1;
            }
            let correct = |corrections: &mut Corrections| {
                corrections.replace((birth, death), Some(&was), Some(&is));
                if counted.revived && death != ALIVE {
                    corrections.replace((death, ALIVE), None, Some(&is));
                }
            };
            if is.is(flag::OUTSIDE) {
                continue;
            }
            if is.memory.on_host() {
                correct(&mut host);
            } else if let Some(device) = self.resolved.get(is.device as usize) {
                correct(devices.entry(*device).or_default());
                correct(&mut all);
                correct(processes.entry(is.process).or_default());
            }
        }
        self.amend(devices, processes, host, all);
    }

    fn amend(
        &mut self,
        devices: HashMap<u16, Corrections>,
        processes: HashMap<u32, Corrections>,
        mut host: Corrections,
        mut all: Corrections,
    ) {
        host.ready();
        self.host.amend(&host);
        all.ready();
        self.all.iter_mut().for_each(|track| track.amend(&all));
        for (process, mut corrections) in processes {
            corrections.ready();
            self.processes.get_mut(process as usize).into_iter().for_each(|track| track.amend(&corrections));
        }
        for (device, mut corrections) in devices {
            corrections.ready();
            let Some(track) = self.devices.get_mut(device as usize) else { continue };
            track.amend(&corrections);
            // A refusal of an allocation shows the ledger of its device.
            for moment in &mut self.markers {
                if let Some(state) = &mut moment.state
                    && moment.device == Some(device)
                {
                    corrections.apply(state);
                }
            }
        }
    }
}
