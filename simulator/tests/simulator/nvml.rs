//! nvml-wrapper reads back exact numbers.

use crate::session::{Session, on_simulator, test_name};
use cudarc::driver::{CudaContext, result};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

const MIB: u64 = 1 << 20;
/// Under which pid the foreign process appears: one above the largest that Linux gives.
const FOREIGN_PID: u32 = 4_194_304;

fn processes(device: &nvml_wrapper::Device<'_>) -> Vec<(u32, u64)> {
    let bytes = |memory| match memory {
        UsedGpuMemory::Used(bytes) => bytes,
        UsedGpuMemory::Unavailable => panic!("the simulator knows each process's bytes"),
    };
    let list = device.running_compute_processes().unwrap();
    list.into_iter().map(|process| (process.pid, bytes(process.used_gpu_memory))).collect()
}

fn check_both(nvml: &Nvml) {
    let device = nvml.device_by_index(0).unwrap();
    let memory = device.memory_info().unwrap();
    assert_eq!((memory.total, memory.used, memory.free), (1024 * MIB, MIB, 1023 * MIB));
    assert_eq!(processes(&device), [(std::process::id(), MIB)]);
}

on_simulator! {
    fn injected_and_allocated_bytes_come_out_exactly on "1073741824*2"
        with "MEMSCOPE_SIMULATOR_CONTEXT_BYTES" = "300000001"
        with "MEMSCOPE_SIMULATOR_FOREIGN_BYTES" = "200000002"
        with "MEMSCOPE_SIMULATOR_RESERVED_BYTES" = "100000003"
    {
        let _context = CudaContext::new(1).unwrap();
        // SAFETY: nothing is written to the memory.
        let _memory = unsafe { result::malloc_sync(1000).unwrap() };
        let nvml = Nvml::init().unwrap();
        assert_eq!(nvml.device_count().unwrap(), 2);
        let device = nvml.device_by_index(1).unwrap();
        let memory = device.memory_info().unwrap();
        let used = 300_000_001 + 200_000_002 + 1024;
        assert_eq!((memory.total, memory.reserved, memory.used), (1 << 30, 100_000_003, used));
        assert_eq!(memory.free, (1 << 30) - 100_000_003 - used);
        assert_eq!(result::mem_get_info().unwrap(), (memory.free as usize, 1 << 30), "driver and NVML agree");
        assert_eq!(processes(&device), [(std::process::id(), 300_000_001 + 1024), (FOREIGN_PID, 200_000_002)]);
        let idle = nvml.device_by_index(0).unwrap();
        assert_eq!(processes(&idle), [(FOREIGN_PID, 200_000_002)]);
        // SAFETY: nothing is written to the memory.
        assert!(unsafe { result::malloc_sync(memory.free as usize + 1) }.is_err(), "the injected bytes are not to be had");
        drop(_context);
        assert_eq!(device.memory_info().unwrap().used, 200_000_002);
    }

    fn identity_is_that_of_the_driver on "a100-40gb*3" with "CUDA_VISIBLE_DEVICES" = "2" {
        let nvml = Nvml::init().unwrap();
        assert_eq!(nvml.device_count().unwrap(), 3, "NVML sees devices that CUDA does not");
        let device = nvml.device_by_index(2).unwrap();
        assert_eq!(device.name().unwrap(), "NVIDIA A100-SXM4-40GB");
        assert_eq!(device.uuid().unwrap(), "GPU-6d656d73-636f-8065-8000-000000000002");
        assert_eq!(device.pci_info().unwrap().bus_id, "00000000:03:00.0");
        let capability = device.cuda_compute_capability().unwrap();
        assert_eq!((capability.major, capability.minor), (8, 0));
        let by_uuid = nvml.device_by_uuid(device.uuid().unwrap()).unwrap();
        assert_eq!(by_uuid.index().unwrap(), 2);
        let context = CudaContext::new(0).unwrap();
        assert_eq!(context.uuid().unwrap().bytes.map(|byte| byte as u8)[..6], *b"memsco");
        assert_eq!(context.uuid().unwrap().bytes[15], 2);
        assert!(CudaContext::new(1).is_err());
    }

    fn what_a_simulated_device_does_not_have_is_absent on "h100-80gb" {
        let nvml = Nvml::init().unwrap();
        let device = nvml.device_by_index(0).unwrap();
        let absent = |result: Result<(), NvmlError>| assert!(matches!(result, Err(NvmlError::NotSupported)), "{result:?}");
        absent(device.temperature(TemperatureSensor::Gpu).map(drop));
        absent(device.power_usage().map(drop));
        absent(device.utilization_rates().map(drop));
        absent(device.clock_info(Clock::Memory).map(drop));
        absent(device.fan_speed(0).map(drop));
        absent(device.bar1_memory_info().map(drop));
        absent(device.process_utilization_stats(None).map(drop));
        assert!(device.running_graphics_processes().unwrap().is_empty());
        assert!(matches!(nvml.device_by_index(1), Err(NvmlError::InvalidArg)));
    }

    fn both_libraries_in_one_process_driver_first on "1073741824" {
        let context = CudaContext::new(0).unwrap();
        let _memory = context.default_stream().alloc_zeros::<u8>(1 << 20).unwrap();
        check_both(&Nvml::init().unwrap());
    }

    fn both_libraries_in_one_process_nvml_first on "1073741824" {
        let nvml = Nvml::init().unwrap();
        assert_eq!(nvml.device_by_index(0).unwrap().memory_info().unwrap().used, 0);
        let context = CudaContext::new(0).unwrap();
        let _memory = context.default_stream().alloc_zeros::<u8>(1 << 20).unwrap();
        check_both(&nvml);
    }
}

#[test]
fn both_libraries_in_one_process_as_copies() {
    for order in ["driver", "nvml"] {
        let session = Session::new("1073741824").with_copies();
        session.run(&test_name(module_path!(), &format!("both_libraries_in_one_process_{order}_first")));
    }
}
