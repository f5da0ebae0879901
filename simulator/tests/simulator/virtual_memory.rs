//! Pools of stream-ordered memory, and virtual memory as PyTorch's expandable segments use it.

use crate::session::on_simulator;
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaContext, result};

const PAGE: usize = 2 << 20;

fn used() -> usize {
    let (free, total) = result::mem_get_info().unwrap();
    total - free
}

fn on_device() -> sys::CUmemAllocationProp {
    // SAFETY: zeros are a valid description.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties
}

on_simulator! {
    fn a_pool_keeps_what_its_threshold_allows on "1073741824" {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        // SAFETY: the pool is the device's own, and the values have the attributes' types.
        unsafe {
            let mut pool = std::ptr::null_mut();
            sys::cuDeviceGetDefaultMemPool(&mut pool, 0).result().unwrap();
            let attribute = |which| {
                let mut value = 0_u64;
                sys::cuMemPoolGetAttribute(pool, which, (&raw mut value).cast()).result().unwrap();
                value
            };
            use sys::CUmemPool_attribute::{
                CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                CU_MEMPOOL_ATTR_USED_MEM_HIGH,
            };
            drop(stream.alloc::<u8>(1 << 20).unwrap());
            assert_eq!(used(), 0, "without a threshold nothing is kept");
            let mut threshold = 3_u64 << 20;
            let set = sys::cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut threshold).cast());
            set.result().unwrap();
            let two = (stream.alloc::<u8>(2 << 20).unwrap(), stream.alloc::<u8>(2 << 20).unwrap());
            assert_eq!(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4 << 20);
            drop(two);
            assert_eq!(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
            assert_eq!(attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 4 << 20);
            assert_eq!(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 3 << 20);
            assert_eq!(used(), 3 << 20);
            let all = result::malloc_sync(1 << 30).unwrap();
            assert_eq!(used(), 1 << 30, "what a pool keeps gives way to an allocation that needs it");
            result::free_sync(all).unwrap();
            drop(stream.alloc::<u8>(1 << 20).unwrap());
            sys::cuMemPoolTrimTo(pool, 0).result().unwrap();
            assert_eq!(used(), 0);
        }
    }

    fn a_segment_grows_page_by_page on "1073741824" {
        let _context = CudaContext::new(0).unwrap();
        let properties = on_device();
        // SAFETY: addresses and handles come from the calls before, and are used within their sizes.
        unsafe {
            let mut address = 0;
            sys::cuMemAddressReserve(&mut address, 4 * PAGE, 0, 0, 0).result().unwrap();
            assert_eq!(used(), 0, "addresses cost nothing");
            let mut handles = [0; 2];
            for (index, handle) in handles.iter_mut().enumerate() {
                sys::cuMemCreate(handle, PAGE, &properties, 0).result().unwrap();
                let at = address + (index * PAGE) as u64;
                sys::cuMemMap(at, PAGE, 0, *handle, 0).result().unwrap();
                let access = sys::CUmemAccessDesc {
                    location: properties.location,
                    flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                };
                sys::cuMemSetAccess(at, PAGE, &access, 1).result().unwrap();
            }
            assert_eq!(used(), 2 * PAGE);
            let across = address + PAGE as u64 - 4;
            result::memcpy_htod_sync(across, &[1_u8, 2, 3, 4, 5, 6, 7, 8]).unwrap();
            let mut back = [0_u8; 8];
            result::memcpy_dtoh_sync(&mut back, across).unwrap();
            assert_eq!(back, [1, 2, 3, 4, 5, 6, 7, 8], "a copy may cross from one mapping to the next");
            let beyond = result::memset_d8_sync(address, 0, 2 * PAGE + 1).unwrap_err();
            assert_eq!(beyond.0, CUresult::CUDA_ERROR_INVALID_VALUE);
            sys::cuMemRelease(handles[0]).result().unwrap();
            assert_eq!(used(), 2 * PAGE, "a released allocation stays while it is mapped");
            sys::cuMemUnmap(address, 2 * PAGE).result().unwrap();
            assert_eq!(used(), PAGE);
            sys::cuMemRelease(handles[1]).result().unwrap();
            sys::cuMemAddressFree(address, 4 * PAGE).result().unwrap();
            assert_eq!(used(), 0);
            assert_eq!(sys::cuMemCreate(&mut handles[0], PAGE + 1, &properties, 0), CUresult::CUDA_ERROR_INVALID_VALUE);
            let refused = sys::cuMemCreate(&mut handles[0], (1 << 30) + PAGE, &properties, 0);
            assert_eq!(refused, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
    }

    fn a_physical_allocation_has_one_content_at_two_addresses on "1073741824" {
        let _context = CudaContext::new(0).unwrap();
        let properties = on_device();
        // SAFETY: addresses and handles come from the calls before, and are used within their sizes.
        unsafe {
            let (mut handle, mut address, mut descriptor, mut imported) = (0, 0, -1_i32, 0);
            sys::cuMemCreate(&mut handle, PAGE, &properties, 0).result().unwrap();
            let kind = sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
            sys::cuMemExportToShareableHandle((&raw mut descriptor).cast(), handle, kind, 0).result().unwrap();
            sys::cuMemImportFromShareableHandle(&mut imported, descriptor as usize as *mut _, kind).result().unwrap();
            sys::cuMemAddressReserve(&mut address, 2 * PAGE, 0, 0, 0).result().unwrap();
            sys::cuMemMap(address, PAGE, 0, handle, 0).result().unwrap();
            sys::cuMemMap(address + PAGE as u64, PAGE, 0, imported, 0).result().unwrap();
            let access = sys::CUmemAccessDesc {
                location: properties.location,
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            sys::cuMemSetAccess(address, 2 * PAGE, &access, 1).result().unwrap();
            result::memcpy_htod_sync(address + 100, &[7_u8]).unwrap();
            let mut back = [0_u8];
            result::memcpy_dtoh_sync(&mut back, address + 100 + PAGE as u64).unwrap();
            assert_eq!(back, [7]);
            assert_eq!(used(), PAGE, "an import is counted once, at its exporter");
        }
    }
}
