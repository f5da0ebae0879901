//! What a journal says, entry by entry. Readers of finished, running and broken sessions all get these.
//!
//! Owns: the vocabulary between capture (source, telemetry) and analysis (allocation, ledger, timeline, findings).
//! Refuses: bytes on disk (`format`) and any interpretation of the records.

use std::fmt;

use memscope_wire::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use crate::keep::Keep;
use crate::report::units;

/// Index of a process within its session, in the order in which the logs were found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct ProcessIndex(pub u32);

/// Nanoseconds since the session began (CLOCK_MONOTONIC minus the session's start).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Nanoseconds(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Bytes(pub u64);

/// One entry.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    /// First entry: what the session is.
    Session(SessionInfo),
    /// A process's log was found.
    Process(ProcessInfo),
    /// How a process's ticks become time; may come again with better knowledge. Applies to all records of the process.
    Clock(ProcessIndex, Calibration),
    /// Records `first_slot ..` of a process, in slot order, without gaps between entries of one process. A slot that was
    /// claimed and never committed is a record of kind 0.
    Records {
        /// Whose.
        process: ProcessIndex,
        /// Slot of the first record.
        first_slot: u64,
        /// The records.
        records: Vec<Record>,
    },
    /// What NVML said at one moment.
    Telemetry(TelemetrySample),
    /// Counters of a process's log, cumulative; may come again.
    Counters(ProcessIndex, Counters),
    /// All that was before, in few figures, and what of it still lives: in the place of the entries that are not kept.
    Summed(Checkpoint),
    /// The session ended in an orderly way.
    End(SessionEnd),
}

/// What the session is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SessionInfo {
    /// memscope's version.
    pub version: String,
    /// Command line of the program, as given.
    pub command: Vec<String>,
    /// The simulated device (catalogue key or bytes, `*count`) when the session runs on one.
    pub simulated: Option<String>,
    /// False when kernels and copies are skipped (`--no-compute`).
    pub compute: bool,
    /// CLOCK_MONOTONIC nanoseconds at the start: time 0 of the session.
    pub start_monotonic_ns: u64,
    /// CLOCK_REALTIME nanoseconds at the start.
    pub start_realtime_ns: u64,
    /// Boot id, 16 bytes.
    pub boot_id: [u8; 16],
    /// Process id of memscope.
    pub recorder_pid: u32,
    /// Why the interposer could not be loaded into the program, when the check before the launch saw a reason: a sentence.
    pub obstacle: Option<String>,
    /// Name of the machine, by which sessions on a disk that several share are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What the launcher of a distributed job calls that machine, where it has a name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Of how much use of a device the user wants to be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Threshold>,
    /// What of the session is kept allocation by allocation, when that is not everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
}

impl SessionInfo {
    /// What its machine is called.
    pub fn called(&self) -> Option<&str> {
        self.node.as_deref().or(self.host.as_deref())
    }
}

/// How full a device may be before that is said.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    /// A share of its total memory, in thousandths.
    Share(u16),
    /// Bytes.
    Bytes(u64),
}

impl Threshold {
    /// In bytes of a device with this total memory; `None` of a share of a total that is not known.
    pub fn bytes_of(self, total: Option<u64>) -> Option<u64> {
        match self {
            Threshold::Share(share) => Some((u128::from(total?) * u128::from(share) / 1000) as u64),
            Threshold::Bytes(bytes) => Some(bytes),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Threshold::Share(share) if share % 10 == 0 => write!(formatter, "{} %", share / 10),
            Threshold::Share(share) => write!(formatter, "{}.{} %", share / 10, share % 10),
            Threshold::Bytes(bytes) => formatter.write_str(&units::bytes(bytes)),
        }
    }
}

/// A profiled process, from its log's header.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its index from now on.
    pub process: ProcessIndex,
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent_pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// Which program of this process (exec replaces it).
    pub exec_count: u32,
    /// CLOCK_MONOTONIC nanoseconds at which the program began; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// Rank in a distributed job, if its launcher named one.
    pub rank: Option<u32>,
    /// How many ranks that job has, if its launcher said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world_size: Option<u32>,
    /// Rank on its node, if its launcher named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_rank: Option<u32>,
    /// What it calls itself, where that is not its program's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Path of the executable.
    pub executable: String,
    /// Its argument vector (may be cut).
    pub command: Vec<String>,
}

/// Ticks to time: nanoseconds(t) = first_ns + (t − first_ticks) · (last_ns − first_ns) / (last_ticks − first_ticks),
/// in CLOCK_MONOTONIC nanoseconds. With equal ticks the scale is 1 (the clock is CLOCK_MONOTONIC itself).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// Ticks of the first reading.
    pub first_ticks: u64,
    /// CLOCK_MONOTONIC nanoseconds of the first reading.
    pub first_ns: u64,
    /// Ticks of the last reading.
    pub last_ticks: u64,
    /// CLOCK_MONOTONIC nanoseconds of the last reading.
    pub last_ns: u64,
}

/// Counters of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Events that could not be written.
    pub dropped: u64,
    /// CLOCK_MONOTONIC nanoseconds at which the first was lost because nobody read the log; `None` if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_ns: Option<u64>,
    /// Slots claimed and never committed, skipped by the reader.
    pub uncommitted: u64,
    /// Faults of the interposer.
    pub faults: u64,
    /// True once the process is gone.
    pub ended: bool,
    /// CLOCK_MONOTONIC nanoseconds of its orderly exit, once it is gone; `None` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_ns: Option<u64>,
}

/// One poll of NVML. An absent value is one that the driver did not give.
///
/// Each device is polled by a thread of its own, so that a slow one holds up no other: a sample usually covers one device,
/// and devices are told apart by their UUID, never by their position.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TelemetrySample {
    /// Just before the first question to the driver.
    pub begin: Nanoseconds,
    /// Just after the last answer. An event between `begin` and `time` may or may not be in the figures.
    pub time: Nanoseconds,
    /// The devices that were asked.
    pub devices: Vec<DeviceSample>,
}

/// NVML's answer for one device.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DeviceSample {
    /// UUID as NVML spells it without the `GPU-` prefix, e.g. `53494d55-4c41-5445-442d-4750552d3030`.
    pub uuid: String,
    /// Product name.
    pub name: Option<String>,
    /// Total memory, bytes.
    pub total: Option<u64>,
    /// Used memory as in nvmlDeviceGetMemoryInfo_v2 (without the firmware's reservation), bytes.
    pub used: Option<u64>,
    /// Reserved by firmware and driver (_v2), bytes.
    pub reserved: Option<u64>,
    /// Percent of time with a kernel running.
    pub utilization: Option<u32>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Milliwatts.
    pub power: Option<u32>,
    /// Graphics clock, MHz.
    pub clock: Option<u32>,
    /// Memory clock, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock: Option<u32>,
    /// Enforced power limit, milliwatts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit: Option<u32>,
    /// Fan, percent of its full speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan: Option<u32>,
    /// Generation of the PCIe link now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_generation: Option<u32>,
    /// Lanes of the PCIe link now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_width: Option<u32>,
    /// Received over PCIe, bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_receive: Option<u64>,
    /// Sent over PCIe, bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_send: Option<u64>,
    /// Processes on the device; `None` when the list is not available.
    pub processes: Option<Vec<ProcessSample>>,
}

/// NVML's answer for one process on one device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Process id in the host's namespace.
    pub pid: u32,
    /// Bytes in use; `None` when the driver does not tell.
    pub used: Option<u64>,
}

/// How the session ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SessionEnd {
    /// When.
    pub time: Nanoseconds,
    /// Status as memscope returned it (128+N for a signal); `None` if the program could not be waited for.
    pub exit_status: Option<i32>,
    /// Why processes have no logs, where they could say so: names as in the wire format, and how many processes each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<(String, u32)>,
    /// What is known beyond that where no process has a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_logs: Option<WithoutLogs>,
    /// Processes of the program that still ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlived: Vec<Survivor>,
}

/// A process that still ran when the recording ended: what it did from then on is not in the session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Survivor {
    /// Process id.
    pub pid: u32,
    /// What the kernel called it then; empty where that could not be seen.
    pub name: String,
}

impl Survivor {
    /// The process with this pid.
    pub fn of(pid: u32) -> Survivor {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Survivor { pid, name: name.trim_end().to_owned() }
    }
}

/// `4711 (train)`.
impl fmt::Display for Survivor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name[..] {
            "" => write!(formatter, "{}", self.pid),
            name => write!(formatter, "{} ({name})", self.pid),
        }
    }
}

/// `4711 (train), 4712 (sh)`.
pub fn named(survivors: &[Survivor]) -> String {
    survivors.iter().map(Survivor::to_string).collect::<Vec<_>>().join(", ")
}

/// How memscope's library met a program none of whose processes has a log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WithoutLogs {
    /// It was loaded into a process that could reach the folder of logs.
    pub loaded: bool,
    /// Such a process opened a library by RTLD_DEEPBIND, which finds the driver past every preload.
    #[serde(default)]
    pub deeply: bool,
    /// Programs that such processes started without the library in their environment; a few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started_without: Vec<String>,
    /// The signal that ended the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What memscope saw of its processes.
    #[serde(default)]
    pub seen: Seen,
}

/// What was seen of a program's processes while they ran and none had a log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Of the CUDA driver, in processes that have memscope's library.
    pub driver: DriverSeen,
    /// A process that cannot have a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<PassedOver>,
}

/// Whether a process with memscope's library had loaded the CUDA driver.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverSeen {
    /// No such process was looked at.
    #[default]
    Unknown,
    /// None had, at the last look at each.
    Absent,
    /// This program had.
    In(String),
}

/// A process of the program that cannot have a log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PassedOver {
    /// Why: a sentence that names its program.
    pub reason: String,
    /// What to do about it.
    pub advice: String,
}

impl PassedOver {
    /// Programs that do something (`what`) without LD_PRELOAD in their environment.
    pub fn by_environment(programs: &[String], what: &str) -> PassedOver {
        let (first, names) = (programs.first().map_or("PROGRAM", String::as_str), programs.join(", "));
        PassedOver {
            reason: format!(
                "{names} {what} without memscope's library, because LD_PRELOAD is not in its environment (env -i, sudo and the like empty \
                 it); no process that has the library called a CUDA function that memscope records"
            ),
            advice: format!(
                "if {first} uses a device: start memscope behind what empties the environment (`sudo memscope run -- {first}`), or have \
                 LD_PRELOAD and MEMSCOPE_LOG_DIR let through"
            ),
        }
    }
}
