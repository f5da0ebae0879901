//! Where every byte is, as sums that must add up.
//!
//! Owns: the rows and their identities. Refuses: to decide when to evaluate them (`allocation` at each event, `timeline` at
//! each moment and sample), and to spread what is not known over what is.
//!
//! *Event rows* hold at every event: `reserved = live (by category) + rounding + cached`. They exist for device memory, for
//! managed memory and for host memory (pinned, and CPU tensors), each alone.
//!
//! *Device rows* hold at a telemetry sample, and are exact where no driver event lies in the sample's window:
//! `device used = this process + other processes + firmware reserved + unowned` and
//! `this process = reserved + unexplained`. A row that the driver does not tell is absent, and so is what follows from it.

use memscope_wire::Category;

use serde::{Deserialize, Serialize};

use crate::allocation::{Allocation, flag};
use crate::journal::entry::{DeviceSample, Nanoseconds};

/// Number of categories.
pub const CATEGORIES: usize = Category::ALL.len();

/// The rows that hold at every event, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EventRows {
    /// What the driver has granted and not taken back.
    pub reserved: u64,
    /// Bytes asked for by what is live, by [`Category`] number.
    pub live: [u64; CATEGORIES],
    /// Granted to what is live, beyond what was asked for.
    pub rounding: u64,
    /// In containers, and in no block.
    pub cached: u64,
    /// Of [`EventRows::cached`]: what the driver's pools keep beyond what is allocated from them.
    pub pools: u64,
}

impl EventRows {
    /// Live bytes of all categories.
    pub fn live_bytes(&self) -> u64 {
        self.live.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))
    }

    /// True when the rows add up.
    pub fn adds_up(&self) -> bool {
        self.reserved == self.live_bytes().wrapping_add(self.rounding).wrapping_add(self.cached)
    }

    /// An allocation is live from now on, with its present category and kind.
    pub fn enter(&mut self, allocation: &Allocation) {
        self.change(allocation, u64::wrapping_add, u64::wrapping_sub);
    }

    /// An allocation is live no more; it must have entered with the same category and kind.
    pub fn leave(&mut self, allocation: &Allocation) {
        self.change(allocation, u64::wrapping_sub, u64::wrapping_add);
    }

    /// Takes over the rows of another ledger that turned out to be the same device.
    pub fn merge(&mut self, other: &EventRows) {
        self.reserved = self.reserved.wrapping_add(other.reserved);
        self.rounding = self.rounding.wrapping_add(other.rounding);
        self.cached = self.cached.wrapping_add(other.cached);
        self.pools = self.pools.wrapping_add(other.pools);
        for (mine, theirs) in self.live.iter_mut().zip(other.live) {
            *mine = mine.wrapping_add(theirs);
        }
    }

    // The sums wrap: a damaged journal may hold any number, and must not end the reader.
    fn change(&mut self, allocation: &Allocation, add: fn(u64, u64) -> u64, subtract: fn(u64, u64) -> u64) {
        if allocation.is(flag::OUTSIDE) {
            return;
        }
        if allocation.is(flag::BLOCK) {
            self.cached = subtract(self.cached, allocation.bytes);
        } else {
            self.reserved = add(self.reserved, allocation.bytes);
        }
        if allocation.is(flag::CONTAINER) {
            self.cached = add(self.cached, allocation.bytes);
            if allocation.is(flag::POOL_RESERVE) {
                self.pools = add(self.pools, allocation.bytes);
            }
        } else {
            let live = &mut self.live[allocation.category as usize];
            *live = add(*live, allocation.requested);
            self.rounding = add(self.rounding, allocation.bytes - allocation.requested);
        }
    }
}

/// What some allocations hold that are live: their number, and bytes asked for by [`Category`] number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sum {
    pub allocations: u64,
    pub live: [u64; CATEGORIES],
}

impl Sum {
    /// Bytes of all categories.
    pub fn bytes(&self) -> u64 {
        self.live.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))
    }

    /// One more.
    pub fn enter(&mut self, allocation: &Allocation) {
        let live = &mut self.live[allocation.category as usize];
        *live = live.wrapping_add(allocation.requested);
        self.allocations = self.allocations.wrapping_add(1);
    }

    /// One less.
    pub fn leave(&mut self, allocation: &Allocation) {
        let live = &mut self.live[allocation.category as usize];
        *live = live.wrapping_sub(allocation.requested);
        self.allocations = self.allocations.wrapping_sub(1);
    }

    /// Takes in others.
    pub fn merge(&mut self, other: &Sum) {
        self.allocations = self.allocations.wrapping_add(other.allocations);
        for (mine, theirs) in self.live.iter_mut().zip(other.live) {
            *mine = mine.wrapping_add(theirs);
        }
    }
}

/// The rows that hold at a telemetry sample, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeviceRows {
    /// When the sample was taken.
    pub time: Nanoseconds,
    /// All that is in use on the device: NVML's used (v2, without the firmware's part) plus what firmware and driver reserve.
    /// It is the total less what is free.
    pub device_used: u64,
    /// Used by the session's processes, as NVML counts it.
    pub this_process: Option<u64>,
    /// Used by all other processes that NVML lists.
    pub other_processes: Option<u64>,
    /// Reserved by firmware and driver.
    pub firmware_reserved: Option<u64>,
    /// Used, and of no process that NVML lists.
    pub unowned: Option<i64>,
    /// The event row at this moment.
    pub reserved: u64,
    /// `this_process − reserved`: contexts, modules, libraries; and managed memory that resides on the device.
    pub unexplained: Option<i64>,
}

impl DeviceRows {
    /// Evaluates the rows; `None` when NVML did not tell what is used. `ours` says whether a process id is the session's.
    pub fn evaluate(
        time: Nanoseconds,
        sample: &DeviceSample,
        reserved: u64,
        ours: impl Fn(u32) -> bool,
    ) -> Option<DeviceRows> {
        let device_used = sample.used?.wrapping_add(sample.reserved.unwrap_or(0));
        let (this_process, other_processes) = match &sample.processes {
            None => (None, None),
            Some(list) => {
                let (mine, others): (Vec<_>, Vec<_>) = list.iter().partition(|process| ours(process.pid));
                // None of ours is listed although we hold memory: NVML counts in another PID namespace, and nothing can
                // be told apart.
                if mine.is_empty() && reserved > 0 {
                    (None, None)
                } else {
                    let sum = |list: Vec<&crate::journal::entry::ProcessSample>| {
                        list.iter().try_fold(0u64, |sum, process| Some(sum.wrapping_add(process.used?)))
                    };
                    (sum(mine), sum(others))
                }
            }
        };
        let unowned = this_process.zip(other_processes).map(|(this, others)| {
            device_used.wrapping_sub(this).wrapping_sub(others).wrapping_sub(sample.reserved.unwrap_or(0)) as i64
        });
        Some(DeviceRows {
            time,
            device_used,
            this_process,
            other_processes,
            firmware_reserved: sample.reserved,
            unowned,
            reserved,
            unexplained: this_process.map(|this| this.wrapping_sub(reserved) as i64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::entry::ProcessSample;

    fn sample(processes: Option<Vec<ProcessSample>>) -> DeviceSample {
        DeviceSample { used: Some(1000), reserved: Some(24), processes, ..DeviceSample::default() }
    }

    #[test]
    fn device_rows_name_every_byte_in_use() {
        let processes = vec![ProcessSample { pid: 7, used: Some(600) }, ProcessSample { pid: 8, used: Some(300) }];
        let rows =
            DeviceRows::evaluate(Nanoseconds(5), &sample(Some(processes)), 550, |pid| pid == 7).expect("used is known");
        assert_eq!(rows.device_used, 1024);
        assert_eq!((rows.this_process, rows.other_processes), (Some(600), Some(300)));
        assert_eq!((rows.unowned, rows.unexplained), (Some(100), Some(50)));
    }

    #[test]
    fn what_the_driver_does_not_tell_stays_absent() {
        let rows = DeviceRows::evaluate(Nanoseconds(5), &sample(None), 550, |_| true).expect("used is known");
        assert_eq!((rows.this_process, rows.other_processes, rows.unowned, rows.unexplained), (None, None, None, None));
        let silent = vec![ProcessSample { pid: 7, used: None }, ProcessSample { pid: 8, used: Some(300) }];
        let rows =
            DeviceRows::evaluate(Nanoseconds(5), &sample(Some(silent)), 1, |pid| pid == 7).expect("used is known");
        assert_eq!((rows.this_process, rows.other_processes, rows.unexplained), (None, Some(300), None));
        assert_eq!(DeviceRows::evaluate(Nanoseconds(5), &DeviceSample::default(), 0, |_| true), None);
    }

    #[test]
    fn a_foreign_pid_namespace_is_not_taken_for_a_small_process() {
        let others = vec![ProcessSample { pid: 90_000, used: Some(600) }];
        let rows = DeviceRows::evaluate(Nanoseconds(5), &sample(Some(others)), 550, |_| false).expect("used is known");
        assert_eq!((rows.this_process, rows.other_processes), (None, None));
    }
}
