//! The catalogue of simulated devices, and how a device is named on the command line and in the environment.
//!
//! Sizes are what NVIDIA's driver reports as total memory for the product, rounded to MiB where only the marketing size is
//! published. They decide where an out-of-memory comes, and nothing else.

/// One simulated product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Name in the catalogue, as `--device` takes it.
    pub key: &'static str,
    /// Name as the driver spells it.
    pub name: &'static str,
    /// Total memory in bytes.
    pub capacity: u64,
    /// Compute capability, major and minor.
    pub compute_capability: (u8, u8),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
}

const fn device(
    key: &'static str,
    name: &'static str,
    mebibytes: u64,
    compute_capability: (u8, u8),
    multiprocessors: u32,
) -> Device {
    Device { key, name, capacity: mebibytes << 20, compute_capability, multiprocessors }
}

/// The products that can be simulated by name.
pub static CATALOGUE: [Device; 12] = [
    device("t4-16gb", "Tesla T4", 15_102, (7, 5), 40),
    device("v100-16gb", "Tesla V100-SXM2-16GB", 16_160, (7, 0), 80),
    device("v100-32gb", "Tesla V100-SXM2-32GB", 32_510, (7, 0), 80),
    device("rtx3090-24gb", "NVIDIA GeForce RTX 3090", 24_576, (8, 6), 82),
    device("rtx4090-24gb", "NVIDIA GeForce RTX 4090", 24_564, (8, 9), 128),
    device("a6000-48gb", "NVIDIA RTX A6000", 49_140, (8, 6), 84),
    device("a100-40gb", "NVIDIA A100-SXM4-40GB", 40_960, (8, 0), 108),
    device("a100-80gb", "NVIDIA A100-SXM4-80GB", 81_920, (8, 0), 108),
    device("h100-80gb", "NVIDIA H100 80GB HBM3", 81_559, (9, 0), 132),
    device("h200-141gb", "NVIDIA H200", 143_771, (9, 0), 132),
    device("b200-180gb", "NVIDIA B200", 183_359, (10, 0), 148),
    device("gb200-192gb", "NVIDIA GB200", 189_471, (10, 0), 152),
];

/// Smallest and largest capacity of a device given by size, in bytes (1 MiB and 64 TiB).
pub const CAPACITY_LIMITS: (u64, u64) = (1 << 20, 1 << 46);

/// Most simulated devices in a session.
pub const MAX_DEVICES: u32 = 16;

/// The product with this key, if the catalogue has it.
pub fn find(key: &str) -> Option<&'static Device> {
    CATALOGUE.iter().find(|device| device.key == key)
}

/// A device with `capacity` bytes and the properties of no product in particular; `None` outside [`CAPACITY_LIMITS`].
pub fn of_capacity(capacity: u64) -> Option<Device> {
    (CAPACITY_LIMITS.0..=CAPACITY_LIMITS.1).contains(&capacity).then_some(Device {
        key: "custom",
        name: "Simulated GPU",
        capacity,
        compute_capability: (9, 0),
        multiprocessors: 132,
    })
}

/// Reads the value of [`crate::env::SIMULATOR_DEVICES`]: `KEY`, `BYTES`, `KEY*COUNT` or `BYTES*COUNT`.
pub fn parse(value: &str) -> Option<(Device, u32)> {
    let (spec, count) = match value.split_once('*') {
        Some((spec, count)) => (spec, count.parse().ok()?),
        None => (value, 1),
    };
    let device = match find(spec) {
        Some(device) => *device,
        None => of_capacity(spec.parse().ok()?)?,
    };
    (1..=MAX_DEVICES).contains(&count).then_some((device, count))
}

/// UUID of the simulated device with this ordinal: a version-8 (vendor-defined) UUID that begins with `memsco`.
pub const fn uuid(ordinal: u32) -> [u8; 16] {
    let o = ordinal.to_be_bytes();
    [b'm', b'e', b'm', b's', b'c', b'o', 0x80, b'e', 0x80, 0, 0, 0, o[0], o[1], o[2], o[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes_are_read() {
        assert_eq!(parse("h100-80gb").unwrap().0.capacity, 81_559 << 20);
        assert_eq!(parse("8589934592*4").unwrap(), (of_capacity(8 << 30).unwrap(), 4));
    }

    #[test]
    fn nonsense_is_refused() {
        for value in ["", "h100", "0", "1024", "-5", "h100-80gb*0", "h100-80gb*17", "99999999999999999999", "1e9"] {
            assert_eq!(parse(value), None, "{value}");
        }
    }
}
