//! `memscope sample`: the bundled trainers. They are ordinary CUDA programs and know nothing of memscope but the client API.

use anyhow::Result;

use crate::arguments::{Sample, SampleArguments};

/// Trains; progress goes to stdout.
pub fn sample(arguments: SampleArguments) -> Result<i32> {
    match arguments.sample {
        Sample::Gpt(gpt) => memscope_samples::gpt::run(&gpt)?,
    }
    Ok(0)
}
