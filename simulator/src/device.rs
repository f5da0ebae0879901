//! The devices that a process sees: CUDA_VISIBLE_DEVICES, names, UUIDs and attributes.
//!
//! Owns: documented properties of a compute capability (CUDA programming guide, technical specifications). Refuses: to
//! invent a product's clock rates, cache and bus sizes: those attributes read 0.

use crate::error::CUresult;
use memscope_wire::device::{self, Device};

/// A device of this process: position in CUDA's numbering, and its number in the shared state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visible {
    /// CUdevice.
    pub ordinal: i32,
    /// Number in the shared state, and in NVML.
    pub physical: u32,
}

/// The devices that CUDA_VISIBLE_DEVICES leaves, as numbers in the shared state, in its order.
///
/// As in the real driver, the list ends before the first entry that names no device, and a device named twice leaves
/// none at all.
pub fn visible(value: Option<&str>, count: u32) -> Vec<u32> {
    let Some(value) = value else { return (0..count).collect() };
    let mut devices = Vec::new();
    for entry in value.split(',') {
        match find(entry.trim(), count) {
            Some(device) if devices.contains(&device) => return Vec::new(),
            Some(device) => devices.push(device),
            None => break,
        }
    }
    devices
}

fn find(entry: &str, count: u32) -> Option<u32> {
    if entry.starts_with("GPU-") {
        let mut matches = (0..count).filter(|&ordinal| uuid_text(ordinal).starts_with(entry));
        return match (matches.next(), matches.next()) {
            (Some(device), None) => Some(device),
            _ => None,
        };
    }
    entry.parse().ok().filter(|&ordinal| ordinal < count)
}

/// UUID of a device as NVML and CUDA_VISIBLE_DEVICES write it.
pub fn uuid_text(physical: u32) -> String {
    let mut text = String::from("GPU-");
    for (index, byte) in device::uuid(physical).iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// PCI bus of a device; domain and slot are 0.
pub fn pci_bus(physical: u32) -> u32 {
    physical + 1
}

/// What the programming guide states for each compute capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most resident threads of a multiprocessor.
    pub threads_per_multiprocessor: i32,
    /// Most resident blocks of a multiprocessor.
    pub blocks_per_multiprocessor: i32,
    /// Shared memory of a multiprocessor, bytes.
    pub shared_per_multiprocessor: i32,
    /// Most shared memory a block can opt in to, bytes.
    pub shared_per_block_optin: i32,
    /// Shared memory that the system takes of each block, bytes.
    pub reserved_shared: i32,
}

/// Shared memory that a block has without opting in, bytes.
pub const SHARED_PER_BLOCK: i32 = 48 << 10;
/// Most threads of a block.
pub const THREADS_PER_BLOCK: i32 = 1024;
/// Most threads of a block in x, y and z.
pub const BLOCK_DIMENSIONS: [u32; 3] = [1024, 1024, 64];
/// Most blocks of a grid in x, y and z.
pub const GRID_DIMENSIONS: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];
/// Registers of a multiprocessor.
pub const REGISTERS: i32 = 65_536;

/// Limits of a compute capability; an unknown one gets those of the newest known below it.
pub fn limits(capability: (u8, u8)) -> Limits {
    let limits = |threads, blocks, shared_kib: i32, optin_kib: i32, reserved| Limits {
        threads_per_multiprocessor: threads,
        blocks_per_multiprocessor: blocks,
        shared_per_multiprocessor: shared_kib << 10,
        shared_per_block_optin: optin_kib << 10,
        reserved_shared: reserved,
    };
    match capability {
        (7, 5) => limits(1024, 16, 64, 64, 0),
        (..=7, _) => limits(2048, 32, 96, 96, 0),
        (8, 0) => limits(2048, 32, 164, 163, 1024),
        (8, 9) => limits(1536, 24, 100, 99, 1024),
        (8, _) => limits(1536, 16, 100, 99, 1024),
        _ => limits(2048, 32, 228, 227, 1024),
    }
}

/// True for a device whose memory can be bound to multicast objects.
pub fn has_multicast(device: &Device) -> bool {
    device.compute_capability.0 >= 9
}

/// Largest number of a device attribute that CUDA 13 knows, exclusive.
const ATTRIBUTE_END: i32 = 162;

/// Value of a device attribute (CUdevice_attribute).
pub fn attribute(device: &Device, physical: u32, attribute: i32) -> Result<i32, CUresult> {
    let limits = limits(device.compute_capability);
    Ok(match attribute {
        1 => THREADS_PER_BLOCK,
        2..=4 => BLOCK_DIMENSIONS[attribute as usize - 2] as i32,
        5..=7 => GRID_DIMENSIONS[attribute as usize - 5] as i32,
        8 => SHARED_PER_BLOCK,
        9 => 65_536,                              // constant memory
        10 => 32,                                 // warp
        11 => i32::MAX,                           // pitch
        12 | 82 => REGISTERS,                     // registers of a block, of a multiprocessor
        14 => 512,                                // texture alignment
        16 => device.multiprocessors as i32,      //
        21 => 131_072,                            // 1D texture width
        22 => 131_072,                            // 2D texture width
        23 => 65_536,                             // 2D texture height
        24..=26 => 16_384,                        // 3D textures
        30 => 512,                                // surface alignment
        33 => pci_bus(physical) as i32,           //
        39 => limits.threads_per_multiprocessor,  //
        40 => 1,                                  // copy engines
        51 => 32,                                 // texture pitch alignment
        69 => 268_435_456,                        // 1D linear texture width
        75 => device.compute_capability.0 as i32, //
        76 => device.compute_capability.1 as i32, //
        81 => limits.shared_per_multiprocessor,   //
        97 => limits.shared_per_block_optin,      //
        106 => limits.blocks_per_multiprocessor,  //
        111 => limits.reserved_shared,            //
        134 => -1,                                // NUMA node of the host: none
        15 | 19 | 31 | 41 | 78 | 79 | 80 => 1,    // overlap, host mapping, kernels, UVA, priorities, L1
        83 | 89 | 90 | 91 | 95 | 99 => 1,         // managed, preemption, host pointers, cooperative, registration
        102 | 103 | 115 => 1,                     // virtual memory, its file descriptors, pools
        119 => 1,                                 // handles of pools: file descriptors
        132 => i32::from(has_multicast(device)),  //
        13..ATTRIBUTE_END => 0,
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_follow_the_documented_rules() {
        let all = |value: Option<&str>| visible(value, 4);
        assert_eq!(all(None), [0, 1, 2, 3]);
        assert_eq!(all(Some("2,0")), [2, 0]);
        assert_eq!(all(Some("")), []);
        assert_eq!(all(Some("-1")), []);
        assert_eq!(all(Some("1,-1,2")), [1]);
        assert_eq!(all(Some("0,7,1")), [0]);
        assert_eq!(all(Some("1,1")), []);
        assert_eq!(all(Some(&uuid_text(3))), [3]);
        assert_eq!(all(Some("GPU-6d656d73")), [], "a prefix that four devices share names none");
        assert_eq!(visible(Some("GPU-6d656d73"), 1), [0]);
    }

    #[test]
    fn the_uuid_is_written_in_five_groups() {
        assert_eq!(uuid_text(258), "GPU-6d656d73-636f-8065-8000-000000000102");
    }

    #[test]
    fn attributes_of_a_product() {
        let h100 = device::find("h100-80gb").unwrap();
        assert_eq!(attribute(h100, 0, 16), Ok(132));
        assert_eq!(attribute(h100, 2, 33), Ok(3));
        assert_eq!(attribute(h100, 0, 97), Ok(232_448));
        assert_eq!(attribute(h100, 0, 0), Err(CUresult::ERROR_INVALID_VALUE));
        assert_eq!(attribute(h100, 0, 5000), Err(CUresult::ERROR_INVALID_VALUE));
    }
}
