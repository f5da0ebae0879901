//! The view as plain text, for pipes and scripts that a person reads.
//!
//! Owns: the two tables. Refuses: colours, and to cut anything to the width of a terminal. What is not known is `N/A`.

use super::view::{MonitorDevice, MonitorProcess, MonitorView};
use crate::report::units::{bytes, share};

/// What stands for a value that is not known.
pub const ABSENT: &str = "N/A";

/// Which end of a column is even.
#[derive(Clone, Copy)]
enum Even {
    Left,
    Right,
}

impl MonitorView {
    /// Two tables: GPUs and processes.
    pub fn text(&self) -> String {
        let mut text = format!(
            "driver {}, {}, {}\n\n",
            self.driver.as_deref().unwrap_or(ABSENT),
            crate::report::units::count(self.devices.len() as u64, "GPU", "GPUs"),
            crate::report::units::count(self.processes.len() as u64, "process", "processes"),
        );
        text += &self.devices_text();
        text += "\n";
        text += &self.processes_text();
        let silent: Vec<String> = self
            .devices
            .iter()
            .filter(|device| !device.processes_known && device.age_ms.is_some())
            .map(|device| device.index.to_string())
            .collect();
        if !silent.is_empty() {
            text += &format!("\nNVML does not tell the processes of GPU {}.\n", silent.join(", "));
        }
        text
    }

    fn devices_text(&self) -> String {
        use Even::{Left, Right};
        let head =
            ["GPU", "NAME", "USED", "TOTAL", "MEM%", "GPU%", "TEMP", "POWER", "CLOCKS", "FAN", "PCIE", "RX", "TX"];
        let even = [Left, Left, Right, Right, Right, Right, Right, Right, Right, Right, Left, Right, Right];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let mut remarks = String::new();
        for device in &self.devices {
            rows.push(device_row(device));
            for instance in &device.instances {
                let name = instance.name.as_deref().unwrap_or(ABSENT);
                let mut row = vec![format!("{}:{}", device.index, instance.index), name.to_owned()];
                row.extend(memory(instance.memory_used, instance.memory_total));
                rows.push(row);
            }
            if let Some(error) = &device.error {
                remarks += &format!("GPU {}: {error}\n", device.index);
            } else if device.age_ms.is_none_or(|age| age > 2 * self.interval_ms) {
                let age = device.age_ms.map_or("has not answered yet".to_owned(), |age| {
                    format!("answered {:.1} s ago", age as f64 / 1000.0)
                });
                remarks += &format!("GPU {}: {age}\n", device.index);
            }
        }
        table(&rows, &even) + &remarks
    }

    fn processes_text(&self) -> String {
        use Even::{Left, Right};
        if self.processes.is_empty() {
            return "no processes\n".to_owned();
        }
        let head = ["PID", "USER", "GPU", "TYPE", "GPU-MEM", "MEM%", "CPU%", "HOST-MEM", "COMMAND"];
        let mut even = vec![Right, Left, Left, Left, Right, Right, Right, Right, Left];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.processes.iter().map(|process| self.process_row(process)));
        // The column of categories is there when somebody runs under memscope.
        if self.processes.iter().any(|process| process.ledger.is_some()) {
            even.insert(8, Left);
            rows[0].insert(8, "CATEGORIES".to_owned());
            for (row, process) in rows[1..].iter_mut().zip(&self.processes) {
                row.insert(8, categories(process));
            }
        }
        table(&rows, &even)
    }

    fn process_row(&self, process: &MonitorProcess) -> Vec<String> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| ABSENT.to_owned());
        let place = process.instance.map_or(String::new(), |instance| format!(":{instance}"));
        let [used, _, percent] = memory(process.memory_used, self.memory_total(process));
        vec![
            process.pid.to_string(),
            text(&process.user),
            format!("{}{place}", process.device),
            process.kind.name().to_owned(),
            used,
            percent,
            known(process.cpu_percent, |percent| format!("{percent:.1}")),
            known(process.host_memory, bytes),
            text(&process.command),
        ]
    }
}

fn device_row(device: &MonitorDevice) -> Vec<String> {
    let mut row = vec![device.index.to_string(), device.name.clone().unwrap_or_else(|| ABSENT.to_owned())];
    row.extend(memory(device.memory_used, device.memory_total));
    row.push(known(device.utilization_percent, |percent| format!("{percent}%")));
    row.push(known(device.temperature_celsius, |degrees| format!("{degrees} C")));
    let watts = |value: Option<u32>| known(value, |milliwatts| format!("{:.0}", f64::from(milliwatts) / 1000.0));
    row.push(pair(watts(device.power_milliwatts), watts(device.power_limit_milliwatts), "W"));
    let megahertz = |value: Option<u32>| known(value, |megahertz| megahertz.to_string());
    row.push(pair(megahertz(device.clock_megahertz), megahertz(device.memory_clock_megahertz), "MHz"));
    row.push(known(device.fan_percent, |percent| format!("{percent}%")));
    let link = device.pcie_generation.zip(device.pcie_width);
    row.push(known(link, |(generation, width)| format!("gen {generation} x{width}")));
    let rate = |value: Option<u64>| known(value, |value| format!("{}/s", bytes(value)));
    row.push(rate(device.pcie_receive));
    row.push(rate(device.pcie_send));
    row
}

/// Used, total, share.
fn memory(used: Option<u64>, total: Option<u64>) -> [String; 3] {
    let percent = used.zip(total).map(|(used, total)| share(used, total));
    [known(used, bytes), known(total, bytes), known(percent, |percent| format!("{percent:.0}%"))]
}

fn known<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), text)
}

fn pair(first: String, second: String, unit: &str) -> String {
    if first == ABSENT && second == ABSENT { first } else { format!("{first} / {second} {unit}") }
}

/// The categories that hold something, largest first.
fn categories(process: &MonitorProcess) -> String {
    let Some(rows) = &process.ledger else { return "-".to_owned() };
    let mut named: Vec<(&str, u64)> = rows.by_category.named().into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    named.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    if rows.cached > 0 {
        named.push(("cached", rows.cached));
    }
    let texts: Vec<String> = named.iter().map(|(name, value)| format!("{name} {}", bytes(*value))).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}

fn table(rows: &[Vec<String>], even: &[Even]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..even.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(even.iter().zip(&widths))
            .map(|(cell, (even, &width))| match even {
                Even::Left => format!("{cell:<width$}"),
                Even::Right => format!("{cell:>width$}"),
            })
            .collect();
        text += cells.join("  ").trim_end();
        text += "\n";
    }
    text
}
