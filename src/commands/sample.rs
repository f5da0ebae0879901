//! `memscope sample`: the bundled trainers. They are ordinary CUDA programs and know nothing of memscope but the client API.

use anyhow::Result;
use memscope_samples::Error;

use crate::arguments::{Sample, SampleArguments};
use crate::output::{USAGE, complain_as};

/// Trains; progress goes to stdout. An error is the sample's own, and says so: under `memscope run` it stands among
/// memscope's lines.
pub fn sample(arguments: SampleArguments) -> Result<i32> {
    let (name, result) = match arguments.sample {
        Sample::Gpt(gpt) => ("sample gpt", memscope_samples::gpt::run(&gpt)),
        Sample::Resnet(resnet) => ("sample resnet", memscope_samples::resnet::run(&resnet)),
    };
    let Err(error) = result else { return Ok(0) };
    complain_as(name, &error.to_string());
    Ok(if matches!(error, Error::Arguments(_)) { USAGE } else { 1 })
}
