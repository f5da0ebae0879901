//! `memscope demo`: the whole path on one command, on any machine.

use std::ffi::OsString;

use anyhow::{Context, Result};

use crate::arguments::DemoArguments;
use crate::commands::run;
use crate::driver;
use crate::output::say;

/// Device for the demo where no GPU is found.
const SIMULATED: &str = "h100-80gb";

/// Runs `memscope sample gpt` under memscope, on the GPU if there is one, else on a simulated device.
pub fn demo(mut arguments: DemoArguments) -> Result<i32> {
    let quiet = arguments.record.quiet;
    let note = |line: String| {
        if !quiet {
            say(&line);
        }
    };
    match arguments.record.device {
        Some(device) => note(format!("training the GPT sample on a simulated {} ({})", device.name, device.key)),
        None => match driver::find() {
            Ok(driver) => note(format!("training the GPT sample on {}", driver.devices[0])),
            Err(reason) => {
                let device = memscope_wire::device::find(SIMULATED).context("the catalogue has the demo's device")?;
                note(format!("{reason}: training the GPT sample on a simulated {} ({SIMULATED})", device.name));
                arguments.record.device = Some(*device);
            }
        },
    }
    let memscope = std::env::current_exe().context("cannot find memscope's own program file")?;
    let mut command: Vec<OsString> = vec![memscope.into(), "sample".into(), "gpt".into()];
    command.append(&mut arguments.arguments);
    run::record(&arguments.record, &command, "gpt")
}
