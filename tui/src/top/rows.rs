//! The processes as a list: which are let through, and in what order.
//!
//! Owns: the columns, the order and the filter. Refuses: where they stand on the screen (`processes`).

use std::cmp::Ordering;

use memscope_core::monitor::{Kind, MonitorProcess, MonitorView};

/// A column of the list of processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Process id.
    Pid,
    /// User.
    User,
    /// Number of the GPU and its instance.
    Device,
    /// Compute, graphics or both.
    Kind,
    /// GPU memory.
    Memory,
    /// Its share of the device's or the instance's.
    Share,
    /// What it is for, under memscope.
    Categories,
    /// Processor time.
    Cpu,
    /// Resident host memory.
    HostMemory,
    /// Command line.
    Command,
}

impl Column {
    /// All columns, from left to right.
    pub const ALL: [Column; 10] = [
        Column::Pid,
        Column::User,
        Column::Device,
        Column::Kind,
        Column::Memory,
        Column::Share,
        Column::Categories,
        Column::Cpu,
        Column::HostMemory,
        Column::Command,
    ];

    /// Figures begin with the largest, words with the first of the alphabet.
    pub const fn begins_descending(self) -> bool {
        matches!(self, Column::Memory | Column::Share | Column::Categories | Column::Cpu | Column::HostMemory)
    }

    /// Its position from left to right.
    pub fn position(self) -> usize {
        Column::ALL.iter().position(|column| *column == self).unwrap_or(0)
    }
}

/// A process on a device, whatever its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: Option<u64>,
    /// Device and instance.
    pub place: (u32, Option<u32>),
}

impl Identity {
    /// Of this process.
    pub fn of(process: &MonitorProcess) -> Identity {
        let place = (process.device, process.instance);
        Identity { pid: process.pid, start_time: process.start_time, place }
    }
}

/// Order and filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrangement {
    /// The column by which the list is sorted.
    pub sort: Column,
    /// Largest (last in the alphabet) first.
    pub descending: bool,
    /// Words that must all occur, in any case, in process id, user, kind, GPU or command.
    pub filter: String,
}

impl Default for Arrangement {
    fn default() -> Arrangement {
        Arrangement { sort: Column::Memory, descending: true, filter: String::new() }
    }
}

impl Arrangement {
    /// Sorts by this column, or turns the order when it already is.
    pub fn by(&mut self, column: Column) {
        if self.sort == column {
            self.descending = !self.descending;
        } else {
            self.sort = column;
            self.descending = column.begins_descending();
        }
    }

    /// Sorts by a neighbour of the column.
    pub fn shift(&mut self, by: isize) {
        let count = Column::ALL.len() as isize;
        let position = (self.sort.position() as isize + by).rem_euclid(count) as usize;
        self.sort = Column::ALL[position];
        self.descending = self.sort.begins_descending();
    }

    /// Positions of the view's processes that are let through, in order. What is not known comes last in either direction.
    pub fn order(&self, view: &MonitorView, into: &mut Vec<usize>) {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        into.clear();
        into.extend((0..view.processes.len()).filter(|index| passes(&view.processes[*index], &words)));
        into.sort_by(|a, b| {
            let (first, second) = (&view.processes[*a], &view.processes[*b]);
            self.compare(view, first, second).then_with(|| a.cmp(b))
        });
    }

    fn compare(&self, view: &MonitorView, a: &MonitorProcess, b: &MonitorProcess) -> Ordering {
        let turn = |order: Ordering| if self.descending { order.reverse() } else { order };
        let share = |process: &MonitorProcess| share(view, process);
        let live = |process: &MonitorProcess| process.ledger.as_ref().map(|rows| rows.live);
        match self.sort {
            Column::Pid => turn(a.pid.cmp(&b.pid)),
            Column::User => known(a.user.as_ref(), b.user.as_ref(), turn, Ord::cmp),
            Column::Device => turn((a.device, a.instance).cmp(&(b.device, b.instance))),
            Column::Kind => turn(a.kind.cmp(&b.kind)),
            Column::Memory => known(a.memory_used, b.memory_used, turn, Ord::cmp),
            Column::Share => known(share(a), share(b), turn, f64::total_cmp),
            Column::Categories => known(live(a), live(b), turn, Ord::cmp),
            Column::Cpu => known(a.cpu_percent, b.cpu_percent, turn, f64::total_cmp),
            Column::HostMemory => known(a.host_memory, b.host_memory, turn, Ord::cmp),
            Column::Command => known(a.command.as_ref(), b.command.as_ref(), turn, Ord::cmp),
        }
    }
}

/// Percent of the device's (or the instance's) memory that a process holds.
pub fn share(view: &MonitorView, process: &MonitorProcess) -> Option<f64> {
    let total = view.memory_total(process).filter(|total| *total > 0)?;
    Some(process.memory_used? as f64 * 100.0 / total as f64)
}

/// What a process does on its GPU, as short as nvidia-smi says it.
pub const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Compute => "C",
        Kind::Graphics => "G",
        Kind::Both => "C+G",
    }
}

fn known<T>(
    a: Option<T>,
    b: Option<T>,
    turn: impl Fn(Ordering) -> Ordering,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => turn(compare(&a, &b)),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn passes(process: &MonitorProcess, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let text = format!(
        "{} {} {} gpu{} {}",
        process.pid,
        process.user.as_deref().unwrap_or_default(),
        process.kind.name(),
        process.device,
        process.command.as_deref().unwrap_or_default()
    );
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> MonitorView {
        let process = |pid, user: &str, memory_used, cpu_percent, command: &str| MonitorProcess {
            pid,
            user: Some(user.into()),
            memory_used,
            cpu_percent,
            command: Some(command.into()),
            ..MonitorProcess::default()
        };
        MonitorView {
            processes: vec![
                process(3, "ada", Some(10), Some(5.0), "python Train.py"),
                process(1, "bob", None, Some(50.0), "xorg"),
                process(2, "ada", Some(30), None, "python eval.py"),
            ],
            ..MonitorView::default()
        }
    }

    fn pids(arrangement: &Arrangement) -> Vec<u32> {
        let (view, mut order) = (view(), Vec::new());
        arrangement.order(&view, &mut order);
        order.iter().map(|index| view.processes[*index].pid).collect()
    }

    #[test]
    fn what_is_not_known_comes_last_in_either_direction() {
        let mut arrangement = Arrangement::default();
        assert_eq!(pids(&arrangement), [2, 3, 1]);
        arrangement.by(Column::Memory);
        assert_eq!(pids(&arrangement), [3, 2, 1]);
        arrangement.by(Column::Cpu);
        assert_eq!(pids(&arrangement), [1, 3, 2]);
    }

    #[test]
    fn every_column_sorts() {
        let by = |column| {
            let mut arrangement = Arrangement { sort: Column::Kind, ..Arrangement::default() };
            arrangement.by(column);
            pids(&arrangement)
        };
        assert_eq!(by(Column::Pid), [1, 2, 3]);
        assert_eq!(by(Column::User), [3, 2, 1], "equal ones stay in their order");
        assert_eq!(by(Column::Command), [3, 2, 1], "capitals come first, as in the C locale");
        let mut arrangement = Arrangement::default();
        let mut seen = Vec::new();
        for _ in Column::ALL {
            seen.push(arrangement.sort);
            arrangement.shift(1);
        }
        assert_eq!(arrangement.sort, Column::Memory, "after the last comes the first");
        assert!(Column::ALL.iter().all(|column| seen.contains(column)));
        arrangement.shift(-1);
        assert_eq!(arrangement.sort, Column::Kind);
    }

    #[test]
    fn all_words_of_a_filter_must_occur_somewhere() {
        let passing = |filter: &str| pids(&Arrangement { filter: filter.into(), ..Arrangement::default() });
        assert_eq!(passing("PYTHON"), [2, 3]);
        assert_eq!(passing("ada train"), [3]);
        assert_eq!(passing("gpu0 compute 1"), [1]);
        assert_eq!(passing("nothing"), [0; 0]);
        assert_eq!(passing("  "), [2, 3, 1]);
    }
}
