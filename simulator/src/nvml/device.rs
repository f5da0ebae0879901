//! Devices: handles, names, identity.

use super::system::store_text;
use super::{Device, Return, Status, exports, handle, physical, state, store};
use crate::device::{pci_bus, uuid_text};
use crate::driver::Out;
use std::ffi::{CStr, c_char, c_int, c_uint};

/// nvmlPciInfo_t.
#[repr(C)]
struct PciInfo {
    bus_id_legacy: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    bus_id: [u8; 32],
}

/// What all versions of nvmlGpuFabricInfoV_t begin with.
#[repr(C)]
struct FabricInfo {
    version: c_uint,
    rest: FabricState,
}

/// No cluster, no error, no clique; NVML_GPU_FABRIC_STATE_NOT_SUPPORTED is 0.
#[repr(C)]
#[derive(Default)]
struct FabricState {
    cluster: [u8; 16],
    status: c_int,
    clique: c_uint,
    state: u8,
}

/// Vendor NVIDIA in the low half; no product in the high half, since none is there.
const PCI_DEVICE_ID: c_uint = 0x10de;

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let length = text.len().min(N - 1);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

fn pci(info: Out<'_, PciInfo>, device: Device) -> Status {
    let bus = pci_bus(physical(device)?);
    store(
        info,
        PciInfo {
            bus_id_legacy: padded(&format!("0000:{bus:02X}:00.0")),
            domain: 0,
            bus,
            device: 0,
            device_id: PCI_DEVICE_ID,
            subsystem_id: 0,
            bus_id: padded(&format!("00000000:{bus:02X}:00.0")),
        },
    )
}

/// # Safety
/// The pointer must be null or lead to a terminated string.
unsafe fn find(text: *const c_char, matches: impl Fn(u32, &str) -> bool) -> Result<Device, Return> {
    if text.is_null() {
        return Err(Return::INVALID_ARGUMENT);
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let found = (0..state()?.device_count()).find(|&physical| matches(physical, &text));
    handle(found.ok_or(Return::NOT_FOUND)?)
}

fn has_bus(physical: u32, text: &str) -> bool {
    let wanted = format!(":{:02x}:00.0", pci_bus(physical));
    let text = text.to_ascii_lowercase();
    text.strip_suffix(&wanted).is_some_and(|domain| domain.bytes().all(|byte| byte == b'0'))
}

/// nvmlDeviceArchitecture_t of a compute capability.
fn architecture(capability: (u8, u8)) -> c_uint {
    match capability {
        (7, 5) => 6,
        (..=7, _) => 5,
        (8, 9) => 8,
        (8, _) => 7,
        (9, _) => 9,
        _ => 10,
    }
}

exports! {
    fn nvmlDeviceGetCount_v2(count: Out<'_, c_uint>) { store(count, state()?.device_count()) }
    fn nvmlDeviceGetCount(count: Out<'_, c_uint>) { store(count, state()?.device_count()) }
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: Out<'_, Device>) { store(device, handle(index)?) }
    fn nvmlDeviceGetHandleByIndex(index: c_uint, device: Out<'_, Device>) { store(device, handle(index)?) }
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: Out<'_, Device>) {
        // SAFETY: the program gives a terminated string or null.
        store(device, unsafe { find(uuid, |physical, text| uuid_text(physical) == text)? })
    }
    fn nvmlDeviceGetHandleByPciBusId_v2(bus: *const c_char, device: Out<'_, Device>) {
        // SAFETY: the program gives a terminated string or null.
        store(device, unsafe { find(bus, has_bus)? })
    }
    fn nvmlDeviceGetHandleByPciBusId(bus: *const c_char, device: Out<'_, Device>) {
        // SAFETY: the program gives a terminated string or null.
        store(device, unsafe { find(bus, has_bus)? })
    }
    fn nvmlDeviceGetIndex(device: Device, index: Out<'_, c_uint>) { store(index, physical(device)?) }
    fn nvmlDeviceGetMinorNumber(device: Device, number: Out<'_, c_uint>) { store(number, physical(device)?) }
    fn nvmlDeviceGetName(device: Device, buffer: *mut c_char, capacity: c_uint) {
        physical(device)?;
        // SAFETY: the program gives a buffer of `capacity` bytes.
        unsafe { store_text(buffer, capacity, state()?.device().name) }
    }
    fn nvmlDeviceGetUUID(device: Device, buffer: *mut c_char, capacity: c_uint) {
        let uuid = uuid_text(physical(device)?);
        // SAFETY: the program gives a buffer of `capacity` bytes.
        unsafe { store_text(buffer, capacity, &uuid) }
    }
    fn nvmlDeviceGetPciInfo_v3(device: Device, info: Out<'_, PciInfo>) { pci(info, device) }
    fn nvmlDeviceGetCudaComputeCapability(device: Device, major: Out<'_, c_int>, minor: Out<'_, c_int>) {
        physical(device)?;
        let capability = state()?.device().compute_capability;
        store(major, c_int::from(capability.0))?;
        store(minor, c_int::from(capability.1))
    }
    fn nvmlDeviceGetArchitecture(device: Device, number: Out<'_, c_uint>) {
        physical(device)?;
        store(number, architecture(state()?.device().compute_capability))
    }
    fn nvmlDeviceGetGpuFabricInfoV(device: Device, information: *mut FabricInfo) {
        physical(device)?;
        // SAFETY: the program gives a structure of one of the versions, which all begin so, with its version in it.
        unsafe { information.as_mut() }.ok_or(Return::INVALID_ARGUMENT)?.rest = FabricState::default();
        Ok(())
    }
    fn nvmlDeviceGetComputeMode(device: Device, mode: Out<'_, c_uint>) { physical(device)?; store(mode, 0) }
}
