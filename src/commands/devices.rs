//! `memscope devices`: what can be simulated.

use anyhow::Result;
use memscope_wire::device::CATALOGUE;

use crate::arguments::DevicesArguments;
use crate::output::print;

/// Prints the catalogue as a table or as JSON.
pub fn devices(arguments: DevicesArguments) -> Result<i32> {
    if arguments.json {
        let rows: Vec<_> = CATALOGUE
            .iter()
            .map(|device| {
                serde_json::json!({
                    "key": device.key,
                    "name": device.name,
                    "capacity": device.capacity,
                    "compute_capability": format!("{}.{}", device.compute_capability.0, device.compute_capability.1),
                    "multiprocessors": device.multiprocessors,
                })
            })
            .collect();
        print(&format!("{}\n", serde_json::to_string_pretty(&rows)?))?;
        return Ok(0);
    }
    let mut text = format!("{:<14} {:<26} {:>12} {:>8} {:>5}\n", "--device", "name", "memory", "compute", "SMs");
    for device in &CATALOGUE {
        text += &format!(
            "{:<14} {:<26} {:>8} MiB {:>8} {:>5}\n",
            device.key,
            device.name,
            device.capacity >> 20,
            format!("{}.{}", device.compute_capability.0, device.compute_capability.1),
            device.multiprocessors
        );
    }
    text += "\nOr any size: --device 24GiB. Several at once: --devices N. A simulated device decides where an out-of-memory\n\
             comes; what a program computes on it is not to be trusted.\n";
    print(&text)?;
    Ok(0)
}
