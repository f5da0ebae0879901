//! Devices: count, names, UUIDs, attributes, peers.

use super::{Out, given, store, store_text, text};
use crate::device::{self, attribute};
use crate::error::{CUresult, Status};
use crate::process::process;
use std::ffi::{c_char, c_int, c_uint};

fn bus_text(physical: u32) -> String {
    format!("0000:{:02x}:00.0", device::pci_bus(physical))
}

fn store_uuid(uuid: Out<'_, [u8; 16]>, ordinal: c_int) -> Status {
    store(uuid, memscope_wire::device::uuid(process()?.device(ordinal)?.physical))
}

exports! {
    2000 fn cuDeviceGet(device: Out<'_, c_int>, ordinal: c_int) { store(device, process()?.device(ordinal)?.ordinal) }
    2000 fn cuDeviceGetCount(count: Out<'_, c_int>) { store(count, process()?.visible.len() as c_int) }
    2000 fn cuDeviceGetName(name: *mut c_char, capacity: c_int, device: c_int) {
        process()?.device(device)?;
        // SAFETY: the program gives a buffer of `capacity` bytes.
        unsafe { store_text(name, usize::try_from(capacity).unwrap_or(0), process()?.state.device().name) }
    }
    9020 fn cuDeviceGetUuid(uuid: Out<'_, [u8; 16]>, device: c_int) { store_uuid(uuid, device) }
    11040 fn cuDeviceGetUuid_v2(uuid: Out<'_, [u8; 16]>, device: c_int) { store_uuid(uuid, device) }
    10000 fn cuDeviceGetLuid(_luid: *mut c_char, _mask: Out<'_, c_uint>, device: c_int) {
        process()?.device(device)?;
        Err(CUresult::ERROR_NOT_SUPPORTED) // Windows only
    }
    3020 fn cuDeviceTotalMem_v2(bytes: Out<'_, usize>, device: c_int) {
        process()?.device(device)?;
        store(bytes, process()?.state.device().capacity as usize)
    }
    2000 fn cuDeviceGetAttribute(value: Out<'_, c_int>, number: c_int, device: c_int) {
        let process = process()?;
        store(value, attribute(process.state.device(), process.device(device)?.physical, number)?)
    }
    2000 fn cuDeviceComputeCapability(major: Out<'_, c_int>, minor: Out<'_, c_int>, device: c_int) {
        process()?.device(device)?;
        let capability = process()?.state.device().compute_capability;
        store(major, c_int::from(capability.0))?;
        store(minor, c_int::from(capability.1))
    }
    2000 fn cuDeviceGetProperties(properties: Out<'_, [c_int; 14]>, device: c_int) {
        let process = process()?;
        let physical = process.device(device)?.physical;
        let mut values = [0; 14];
        // maxThreadsPerBlock, maxThreadsDim, maxGridSize, sharedMemPerBlock, totalConstantMemory, SIMDWidth, memPitch,
        // regsPerBlock, clockRate, textureAlign: attributes 1 to 14 in this order.
        for (value, number) in values.iter_mut().zip(1..) {
            *value = attribute(process.state.device(), physical, number)?;
        }
        store(properties, values)
    }
    4010 fn cuDeviceGetByPCIBusId(device: Out<'_, c_int>, bus: *const c_char) {
        // SAFETY: the program gives a terminated string or null.
        let bus = unsafe { text(bus)? }.to_ascii_lowercase();
        let process = process()?;
        let matches = |physical: u32| bus_text(physical).ends_with(bus.trim_start_matches("0000"));
        let found = process.visible.iter().position(|&physical| bus.contains(':') && matches(physical));
        store(device, found.ok_or(CUresult::ERROR_INVALID_DEVICE)? as c_int)
    }
    4010 fn cuDeviceGetPCIBusId(bus: *mut c_char, capacity: c_int, device: c_int) {
        let text = bus_text(process()?.device(device)?.physical);
        // SAFETY: the program gives a buffer of `capacity` bytes.
        unsafe { store_text(bus, usize::try_from(capacity).unwrap_or(0), &text) }
    }
    4000 fn cuDeviceCanAccessPeer(can: Out<'_, c_int>, device: c_int, peer: c_int) {
        let process = process()?;
        store(can, c_int::from(process.device(device)? != process.device(peer)?))
    }
    8000 fn cuDeviceGetP2PAttribute(value: Out<'_, c_int>, number: c_int, device: c_int, peer: c_int) {
        let process = process()?;
        let apart = process.device(device)? != process.device(peer)?;
        match number {
            2 if apart => store(value, 1), // access supported
            1..=5 if apart => store(value, 0),
            _ => Err(CUresult::ERROR_INVALID_VALUE),
        }
    }
    11040 fn cuDeviceGetExecAffinitySupport(supported: Out<'_, c_int>, _kind: c_int, device: c_int) {
        process()?.device(device)?;
        store(supported, 0)
    }
    11010 fn cuDeviceGetTexture1DLinearMaxWidth(
        width: Out<'_, usize>, _format: c_int, _channels: c_uint, device: c_int,
    ) {
        process()?.device(device)?;
        store(width, 1 << 28)
    }
    11040 fn cuDeviceGetGraphMemAttribute(device: c_int, number: c_int, value: Out<'_, u64>) {
        process()?.device(device)?;
        store(value, crate::graph::attribute(device, number)?)
    }
    11040 fn cuDeviceSetGraphMemAttribute(device: c_int, number: c_int, value: Option<&u64>) {
        process()?.device(device)?;
        match given(value)? {
            0 => crate::graph::reset(device, number),
            _ => Err(CUresult::ERROR_INVALID_VALUE),
        }
    }
    11040 fn cuDeviceGraphMemTrim(device: c_int) {
        let process = process()?;
        process.device(device)?;
        crate::graph::trim(process, device);
        Ok(())
    }
    11030 fn cuFlushGPUDirectRDMAWrites(_target: c_int, _scope: c_int) { process().map(|_| ()) }
}
