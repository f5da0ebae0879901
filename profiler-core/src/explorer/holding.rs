//! What each process holds on each device.
//!
//! Owns: the ledgers of a monitor of many sessions. Refuses: anything over time.

use crate::ledger::EventRows;
use crate::report::device_text;

use super::explorer::Explorer;

/// The device memory of one process on one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holding {
    /// Process id.
    pub pid: u32,
    /// Start of the process, in clock ticks since boot: with the pid it names one process.
    pub start_time: u64,
    /// UUID of the device, with `GPU-`; `unknown-N` when only ordinal N is known.
    pub device: String,
    /// The ledger now.
    pub rows: EventRows,
}

impl Explorer {
    /// What each process that still runs holds on each device that it has used, now. Takes as long as there are such pairs.
    pub fn holdings(&mut self) -> Vec<Holding> {
        // Keeps memory bounded when nothing else is asked.
        self.advance();
        let mut holdings: Vec<Holding> = Vec::new();
        for process in self.model.processes.iter().filter(|process| !process.counters.ended) {
            let first = holdings.len();
            for (device, rows) in &process.held {
                let device = device_text(&self.model, self.model.resolve(*device) as usize);
                match holdings[first..].iter_mut().find(|holding| holding.device == device) {
                    Some(known) => known.rows.merge(rows),
                    None => {
                        let (pid, start_time) = (process.info.pid, process.info.start_time);
                        holdings.push(Holding { pid, start_time, device, rows: *rows });
                    }
                }
            }
        }
        holdings
    }
}
