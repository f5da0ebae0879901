//! A device as the processes name it, and its running ledger.
//!
//! Owns: identity (UUID), capacity, the ledger of this moment. Refuses: telemetry.

use serde::{Deserialize, Serialize};

use crate::ledger::EventRows;

/// One device of the session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Device {
    /// UUID as NVML spells it, without `GPU-`; `None` while only an ordinal is known.
    pub uuid: Option<String>,
    /// Total memory as the driver gives it, bytes.
    pub capacity: Option<u64>,
    /// CUDA ordinal in the first process that named it.
    pub ordinal: u32,
    /// The ledger of device memory now.
    pub rows: EventRows,
    /// The ledger of managed memory now.
    pub managed: EventRows,
    /// Largest sum of live bytes so far, as seen while the session runs.
    pub peak_live: u64,
    /// The device that this one turned out to be.
    pub(crate) alias: Option<u16>,
}

/// Spells 16 bytes as a UUID.
pub(crate) fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// A UUID in lower case and without a product prefix, so that the driver's and NVML's spellings are equal.
pub(crate) fn canonical(uuid: &str) -> String {
    let lower = uuid.trim().to_ascii_lowercase();
    lower.strip_prefix("gpu-").unwrap_or(&lower).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_uuid_are_equal() {
        let bytes = *b"SIMULATED-GPU-00";
        assert_eq!(uuid_text(bytes), "53494d55-4c41-5445-442d-4750552d3030");
        assert_eq!(canonical("GPU-53494D55-4c41-5445-442d-4750552d3030"), uuid_text(bytes));
    }
}
