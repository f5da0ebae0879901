//! The whole session in the order of time: peaks, steps, series, and the ledger at each of them.
//!
//! Owns: the walk over changes. Over settled facts, in which every category is known and every refused free is taken back, it
//! is the second pass, and peaks by category are exact. While a session runs it goes on as changes come, and what is learned
//! late is put right in what was kept. Refuses: words (`report`) and judgement (`findings`).
//!
//! Order is the slot within a process and time across processes. A process's clock never goes back here: a record that was
//! stamped before its predecessor in slot order counts as simultaneous with it.

mod amend;
mod begins;
mod clock;
mod device;
mod late;
mod lives;
mod merge;
mod passing;
mod samples;
mod series;
mod settle;
mod shape;
mod walk;

use memscope_wire::MemoryKind;

use serde::{Deserialize, Serialize};

use crate::allocation::Allocation;
use crate::journal::entry::Nanoseconds;
use crate::ledger::{CATEGORIES, DeviceRows, EventRows};

pub use passing::{Passing, Passings};
pub use series::{BUCKETS, Bucket, Series};
pub use shape::Shape;

pub(crate) use begins::StepBegins;
pub(crate) use device::DeviceTrack;
pub(crate) use late::Late;
pub(crate) use merge::{Merge, Walked};
pub(crate) use walk::Walk;

/// Order of a lifetime's end that has not come.
pub const ALIVE: u32 = u32::MAX;

/// The last position of a change: what comes after it has no position of its own, so that what lived when cannot be told.
pub const LAST: u32 = ALIVE - 1;

/// A lifetime as positions in the session's order of changes, which begin at 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lifetime {
    /// Position of the birth.
    pub birth: u32,
    /// Position of the death; [`ALIVE`] while there is none.
    pub death: u32,
}

impl Lifetime {
    /// True when the allocation is live right after the change at this position.
    pub const fn spans(&self, order: u32) -> bool {
        self.birth <= order && order < self.death
    }
}

/// A largest value: how many bytes, when, in which step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Extreme {
    /// Bytes.
    pub bytes: u64,
    /// When it was first reached.
    pub time: Nanoseconds,
    /// In which step; `None` before the first.
    pub step: Option<u64>,
}

/// The ledgers of a device, or of host memory, right after one change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// Position of the change in the session's order.
    pub order: u32,
    /// When.
    pub time: Nanoseconds,
    /// In which step of the processes on this device.
    pub step: Option<u64>,
    /// In which phase, a name.
    pub phase: u32,
    /// Device memory; of host memory, that.
    pub rows: EventRows,
    /// Managed memory.
    pub managed: EventRows,
}

/// A step on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepFigures {
    /// Its number.
    pub number: u64,
    /// Which time it is that the number comes, from 1: a program may count anew, as each epoch does, and so does the next program.
    pub turn: u32,
    /// When it first began.
    pub begin: Nanoseconds,
    /// Where live bytes were largest, the beginning included.
    pub peak: State,
    /// Where it last ended; `None` for a step that the session's end cut short. At the end of a process, the time is that of
    /// its end, and the rest is as it was before its last memory was given back.
    pub end: Option<State>,
    /// True when it ended because its processes did.
    pub with_process: bool,
    /// Allocations and blocks that began in it.
    pub births: u64,
    /// Live bytes over its duration.
    pub shape: Shape,
}

/// The device rows of one sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SampleRows {
    /// The rows.
    pub rows: DeviceRows,
    /// In which step.
    pub step: Option<u64>,
    /// True when no driver event of the device lies in the sample's window: the rows are exact.
    pub settled: bool,
}

/// Everything over time of one device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Where live bytes were largest; `None` when nothing was ever live.
    pub live: Option<State>,
    /// Largest reserved bytes.
    pub reserved: Option<State>,
    /// Largest use that a sample saw.
    pub device_used: Option<Extreme>,
    /// Each category's own maximum, by number.
    pub categories: [Extreme; CATEGORIES],
    /// Steps in the order in which they first began.
    pub steps: Vec<StepFigures>,
    /// The last moment before memory was only given back: by the ends of processes, or, where nothing was left to them, by the
    /// program's last frees.
    pub end: State,
    /// Device rows at each sample.
    pub samples: Vec<SampleRows>,
    /// By threshold of the session: when the use of the device passed it.
    pub passings: Vec<Passings>,
    /// Live bytes over time, few enough to draw.
    pub series: Series,
}

impl State {
    /// Takes in an allocation that is live at this moment, of the device, or of host memory.
    pub(crate) fn enter(&mut self, allocation: &Allocation) {
        match allocation.memory {
            MemoryKind::Managed => self.managed.enter(allocation),
            MemoryKind::Device | MemoryKind::Pool | MemoryKind::Host | MemoryKind::Pageable => {
                self.rows.enter(allocation)
            }
        }
    }
}

impl DeviceFigures {
    /// A moment without any memory yet, in the step that runs at this time.
    pub(crate) fn state_at(&self, order: u32, time: Nanoseconds) -> State {
        let step = self.steps[..self.steps.partition_point(|step| step.begin <= time)].last();
        State { order, time, step: step.map(|step| step.number), ..State::default() }
    }

    /// The step of this number that began last at or before a time.
    pub(crate) fn step_at(&self, number: u64, time: Nanoseconds) -> Option<usize> {
        let begun = self.steps.partition_point(|step| step.begin <= time);
        self.steps[..begun].iter().rposition(|step| step.number == number)
    }

    /// Of all the times that a number came the one in which most was live; of equal ones the first. It looks at all steps: whoever
    /// asks often asks [`DeviceTrack::step_named`].
    pub(crate) fn step_named(&self, number: u64) -> Option<&StepFigures> {
        device::largest_step(self.steps.iter().filter(|step| step.number == number))
    }

    /// The exact device rows that speak best for this moment: of those that met the same reserved memory, the nearest in time;
    /// else the nearest of all.
    pub fn sample_near(&self, state: &State) -> Option<&SampleRows> {
        let here = self.samples.partition_point(|sample| sample.rows.time < state.time);
        let (before, after) = self.samples.split_at(here);
        let mut before = before.iter().rev().filter(|sample| sample.settled).peekable();
        let mut after = after.iter().filter(|sample| sample.settled).peekable();
        let mut nearest = None;
        // Outwards, so that of a long session only the neighbourhood is looked at.
        loop {
            let distance = |sample: &&SampleRows| state.distance(sample.rows.time, state.rows.reserved);
            let earlier_first = match (before.peek(), after.peek()) {
                (Some(earlier), Some(later)) => distance(earlier) <= distance(later),
                (earlier, _) => earlier.is_some(),
            };
            let Some(sample) = (if earlier_first { before.next() } else { after.next() }) else { return nearest };
            if sample.rows.reserved == state.rows.reserved {
                return Some(sample);
            }
            nearest = nearest.or(Some(sample));
        }
    }
}

impl State {
    /// How badly a telemetry sample speaks for this moment; the smallest is the best. A sample that met the same reserved
    /// memory explains it, however early it came; among those, and among the others, the nearest in time.
    pub(crate) fn distance(&self, time: Nanoseconds, reserved: u64) -> (bool, u64, Nanoseconds) {
        (reserved != self.rows.reserved, time.0.abs_diff(self.time.0), time)
    }
}

/// A marker in the order of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MarkerMoment {
    /// Position in the model's markers.
    pub marker: u32,
    pub order: u32,
    pub time: Nanoseconds,
    /// The device of a refused allocation on a device.
    pub device: Option<u16>,
    /// That device's ledger at that moment.
    pub state: Option<Box<State>>,
}

/// What the second pass yields.
#[derive(Debug)]
pub(crate) struct Settled {
    /// By allocation.
    pub lifetimes: Vec<Lifetime>,
    /// Changes in all: the last position.
    pub changes: u32,
    /// By the model's position of the device.
    pub devices: Vec<DeviceFigures>,
    /// Host memory.
    pub host: DeviceFigures,
    pub markers: Vec<MarkerMoment>,
    /// Where the steps of each process begin.
    pub begins: StepBegins,
    /// Times of births and deaths come from here: when each process that ended gave back what it held.
    pub exits: Vec<Option<Nanoseconds>>,
    /// When positions came to their end, if they did.
    pub stands_since: Option<Nanoseconds>,
    pub last_time: Nanoseconds,
}
