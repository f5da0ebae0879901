//! What the monitor of a machine shows: plain data, the same for the screen, the printed text and the JSON document.
//!
//! Owns: the shapes and their JSON schema. Refuses: to ask anybody (`device`, `host`), columns and colours. A value that is not
//! known is `None` (`null` in JSON), never 0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::Rows;

/// Version of the JSON document; fields may be added within a version.
pub const SCHEMA_VERSION: u32 = 1;

/// The machine at one moment: every GPU and every process that NVML sees. Bytes, unless a name says otherwise.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MonitorView {
    /// Version of this document.
    pub schema_version: u32,
    /// How many rounds of questions this is the answer to, from 1; 0 before the first.
    pub round: u64,
    /// When, in milliseconds since 1970 (UTC).
    pub time_ms: u64,
    /// Time between two rounds, in milliseconds.
    pub interval_ms: u64,
    /// Version of the driver.
    pub driver: Option<String>,
    /// Sessions of this user that are being recorded, whose processes have a ledger; `null` before they have been looked for.
    pub sessions: Option<u32>,
    /// Of those, the ones whose recording is still being read, so that their processes have none yet.
    pub sessions_behind: Option<u32>,
    /// The GPUs, in NVML's order.
    pub devices: Vec<MonitorDevice>,
    /// The processes on them, by device, then process id. A process on two devices is there twice.
    pub processes: Vec<MonitorProcess>,
}

/// One GPU.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MonitorDevice {
    /// NVML's number.
    pub index: u32,
    /// UUID as nvidia-smi spells it; `null` before the first answer.
    pub uuid: Option<String>,
    /// Product name.
    pub name: Option<String>,
    /// Age of the values below, in milliseconds; `null` before the first answer. A driver that is slow makes it grow.
    pub age_ms: Option<u64>,
    /// Why there are no values, when NVML refuses the device: a sentence.
    pub error: Option<String>,
    /// Total memory.
    pub memory_total: Option<u64>,
    /// Memory in use, without what firmware and driver reserve.
    pub memory_used: Option<u64>,
    /// Memory that firmware and driver reserve.
    pub memory_reserved: Option<u64>,
    /// Percent of time with a kernel running.
    pub utilization_percent: Option<u32>,
    /// Degrees Celsius.
    pub temperature_celsius: Option<u32>,
    /// Fan, percent of its full speed.
    pub fan_percent: Option<u32>,
    /// Milliwatts.
    pub power_milliwatts: Option<u32>,
    /// Enforced limit of the power, milliwatts.
    pub power_limit_milliwatts: Option<u32>,
    /// Graphics clock.
    pub clock_megahertz: Option<u32>,
    /// Memory clock.
    pub memory_clock_megahertz: Option<u32>,
    /// Generation of the PCIe link now.
    pub pcie_generation: Option<u32>,
    /// Lanes of the PCIe link now.
    pub pcie_width: Option<u32>,
    /// Received over PCIe, bytes a second.
    pub pcie_receive: Option<u64>,
    /// Sent over PCIe, bytes a second.
    pub pcie_send: Option<u64>,
    /// Whether NVML tells the device's processes; when not, their absence means nothing.
    pub processes_known: bool,
    /// The instances of a device that is divided (MIG).
    pub instances: Vec<MonitorInstance>,
}

/// An instance of a divided device (MIG).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MonitorInstance {
    /// NVML's number among the places of its device.
    pub index: u32,
    /// UUID, with `MIG-`.
    pub uuid: Option<String>,
    /// Name with its profile.
    pub name: Option<String>,
    /// Total memory.
    pub memory_total: Option<u64>,
    /// Memory in use.
    pub memory_used: Option<u64>,
}

/// One process on one GPU.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MonitorProcess {
    /// Process id.
    pub pid: u32,
    /// Its start, in clock ticks since boot: with the pid it names one process; `null` when it is not visible here (it is gone,
    /// or NVML counts in another PID namespace).
    pub start_time: Option<u64>,
    /// NVML's number of the GPU.
    pub device: u32,
    /// Number of the instance of a divided GPU.
    pub instance: Option<u32>,
    /// What it uses the GPU for.
    pub kind: Kind,
    /// GPU memory in use, as NVML counts it.
    pub memory_used: Option<u64>,
    /// Name of its user, or the user's number when there is no name.
    pub user: Option<String>,
    /// Percent of one core, between the last two rounds.
    pub cpu_percent: Option<f64>,
    /// Resident host memory.
    pub host_memory: Option<u64>,
    /// Its command line; in brackets its short name when it has none.
    pub command: Option<String>,
    /// What its GPU memory is for, when it runs under memscope.
    pub ledger: Option<Rows>,
}

/// What a process uses a GPU for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It computes.
    #[default]
    Compute,
    /// It draws.
    Graphics,
    /// It does both.
    Both,
}

impl Kind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Compute => "compute",
            Kind::Graphics => "graphics",
            Kind::Both => "both",
        }
    }
}

impl MonitorView {
    /// The total memory of a process's device, or of its instance.
    pub fn memory_total(&self, process: &MonitorProcess) -> Option<u64> {
        let device = self.devices.iter().find(|device| device.index == process.device)?;
        match process.instance {
            Some(index) => device.instances.iter().find(|instance| instance.index == index)?.memory_total,
            None => device.memory_total,
        }
    }
}

/// The JSON schema of [`MonitorView`], as docs/top.schema.json holds it.
pub fn schema() -> String {
    let schema = schemars::schema_for!(MonitorView);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
