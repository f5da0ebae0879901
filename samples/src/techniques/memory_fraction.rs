//! A limit below the device's capacity: `--memory-fraction F` lets the trainer hold F · capacity bytes and no more.
//!
//! An allocation that would go beyond it fails as if the device were full, before the driver is asked. Counted are the bytes
//! of tensors, as they were asked for; the context and what the driver rounds up are not. By the definition of PyTorch's
//! `set_per_process_memory_fraction`.

use crate::Error;

/// A share of the device's memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MemoryFraction(f64);

impl MemoryFraction {
    /// More than 0 and at most 1.
    ///
    /// # Errors
    /// [`Error::Arguments`] when it is not.
    pub fn new(share: f64) -> Result<MemoryFraction, Error> {
        match share > 0.0 && share <= 1.0 {
            true => Ok(MemoryFraction(share)),
            false => Err(Error::Arguments(format!(
                "--memory-fraction {share} is not a share of the device's memory: it must be above 0 and at most 1"
            ))),
        }
    }

    /// The share of `total` bytes.
    pub fn of(self, total: u64) -> u64 {
        (self.0 * total as f64) as u64
    }

    /// The share itself.
    pub fn share(self) -> f64 {
        self.0
    }
}

/// How much of a limit is in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub fraction: MemoryFraction,
    /// Bytes that may be held.
    pub limit: u64,
    /// Bytes of the device.
    pub total: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_the_whole() {
        let share = |share| MemoryFraction::new(share).map(|fraction| fraction.of(24 << 30));
        assert_eq!(share(0.5).unwrap(), 12 << 30);
        assert_eq!(share(1.0).unwrap(), 24 << 30);
        for wrong in [0.0, -0.5, 1.1, f64::NAN, f64::INFINITY] {
            assert!(share(wrong).unwrap_err().to_string().contains("is not a share"), "{wrong}");
        }
    }
}
