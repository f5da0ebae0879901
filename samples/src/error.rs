//! What can go wrong in a sample, each as one line that says what to do next.

use crate::techniques::MemoryFraction;

/// An error of a sample.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument, or arguments together, that no model can be built from. Found before the device is touched.
    #[error("{0}")]
    Arguments(String),

    /// The CUDA driver library is not on this machine.
    #[error(
        "libcuda was not found: this machine has no NVIDIA driver. To train on a simulated device, run it under \
         `memscope run --device rtx3090-24gb -- …`"
    )]
    NoDriver,

    /// There is a driver and no GPU.
    #[error(
        "the CUDA driver sees no GPU. To train on a simulated device, run it under \
         `memscope run --device rtx3090-24gb -- …`"
    )]
    NoDevice,

    /// An allocation that the device could not hold.
    #[error("out of device memory: `{tensor}` ({category}) needs {bytes} bytes{}", of_which_free(.free, .total, .fraction))]
    OutOfMemory {
        /// Name of the tensor.
        tensor: String,
        /// What it is for, in memscope's word.
        category: &'static str,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes free when it was asked, if the driver told.
        free: Option<u64>,
        /// Bytes of the device, if the driver told.
        total: Option<u64>,
        /// The fraction of them that the trainer may hold, if it was that which had no room.
        fraction: Option<MemoryFraction>,
    },

    /// A call of the driver that failed for another reason.
    #[error("{call} failed for {subject}: {result}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// The tensor, kernel or device that it was called for.
        subject: String,
        /// The result as the driver spells it, e.g. `CUDA_ERROR_INVALID_VALUE`.
        result: String,
    },

    /// A rank without a device of its own.
    #[error(
        "there is no CUDA device {ordinal}: the driver shows {count}. Each rank needs a device of its own; simulated ones are \
         made by `memscope run --device 8GiB --devices {needed} -- …`", needed = .ordinal + 1
    )]
    TooFewDevices {
        /// The device that was asked for, from 0.
        ordinal: usize,
        /// Devices that there are.
        count: usize,
    },

    /// A rank that could not be started, or failed; or one that stops since another one did.
    #[error("{0}")]
    Ranks(String),

    /// A trial of `--batch auto` that another rank had no memory for.
    #[error("out of device memory: rank {rank} has no room for its share")]
    Abandoned {
        /// That rank.
        rank: usize,
    },

    /// Progress could not be written to standard output.
    #[error("cannot write progress to standard output: {0}")]
    Output(#[from] std::io::Error),
}

fn of_which_free(free: &Option<u64>, total: &Option<u64>, fraction: &Option<MemoryFraction>) -> String {
    match (free, total, fraction) {
        (Some(free), Some(total), None) => format!(", and {free} of the device's {total} bytes are free"),
        (Some(free), Some(total), Some(fraction)) => format!(
            ", and {free} of the {} bytes are free that --memory-fraction {} allows of the device's {total}",
            fraction.of(*total),
            fraction.share()
        ),
        _ => String::new(),
    }
}
