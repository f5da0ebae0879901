//! cudarc on the simulator.

use crate::session::{self, Session, on_simulator};
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaContext, DevicePtr, DriverError, LaunchConfig, PushKernelArg, result};
use cudarc::nvrtc::Ptx;
use std::ffi::c_void;

const GIB: usize = 1 << 30;

const UNKNOWN_KERNEL: &str = "
.version 8.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter = 41;
.visible .entry unknown(.param .u64 data, .param .u32 n)
.maxntid 256, 1, 1
{ ret; }
";

fn code(error: DriverError) -> CUresult {
    error.0
}

fn used() -> usize {
    let (free, total) = result::mem_get_info().unwrap();
    total - free
}

/// Resident bytes of this process.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn fill_image() -> &'static str {
    let kernel = memscope_kernels::KERNELS.iter().find(|kernel| kernel.name == "fill").unwrap();
    kernel.image.ptx
}

on_simulator! {
    fn a_program_leaves_nothing_behind on "1073741824" {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        assert_eq!(context.name().unwrap(), "Simulated GPU");
        let start = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        let numbers = stream.clone_htod(&[1.0_f32, 2.0, 3.0]).unwrap();
        let copy = stream.clone_dtod(&numbers).unwrap();
        assert_eq!(stream.clone_dtoh(&copy).unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(used(), 2 * 512, "each allocation counts in multiples of 512 bytes");
        let end = stream.record_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        assert!(start.elapsed_ms(&end).unwrap() > 0.0);
        drop((numbers, copy));
        assert_eq!(used(), 0);
    }

    fn a_kernel_of_ours_runs_as_its_host_reference on "h100-80gb" {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let fill = context.load_module(Ptx::from_src(fill_image())).unwrap().load_function("fill").unwrap();
        let mut numbers = stream.alloc_zeros::<f32>(1000).unwrap();
        let launch = LaunchConfig { grid_dim: (4, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments are those of the kernel, and the array is as long as said.
        unsafe {
            stream.launch_builder(&fill).arg(&mut numbers).arg(&999_u64).arg(&2.5_f32).launch(launch).unwrap();
        }
        let mut expected = vec![2.5; 1000];
        expected[999] = 0.0;
        assert_eq!(stream.clone_dtoh(&numbers).unwrap(), expected);
        // SAFETY: the launch is refused, since the address is no device memory.
        let refused = unsafe {
            stream.launch_builder(&fill).arg(&4096_u64).arg(&1_u64).arg(&2.5_f32).launch(launch)
        };
        assert_eq!(code(refused.unwrap_err()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    }

    fn an_unknown_kernel_does_nothing_and_its_declarations_hold on "h100-80gb" {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let module = context.load_module(Ptx::from_src(UNKNOWN_KERNEL)).unwrap();
        let function = module.load_function("unknown").unwrap();
        let mut numbers = stream.clone_htod(&[7_u32; 8]).unwrap();
        let launch = |threads| LaunchConfig { grid_dim: (1, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the kernel does nothing.
        let mut run = |threads| unsafe {
            stream.launch_builder(&function).arg(&mut numbers).arg(&8_u32).launch(launch(threads)).map(|_| ())
        };
        run(256).unwrap();
        assert_eq!(code(run(257).unwrap_err()), CUresult::CUDA_ERROR_INVALID_VALUE, ".maxntid says 256");
        assert_eq!(code(run(0).unwrap_err()), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(stream.clone_dtoh(&numbers).unwrap(), [7; 8]);
        let missing = module.load_function("no_such_kernel").unwrap_err();
        assert_eq!(code(missing), CUresult::CUDA_ERROR_NOT_FOUND);
        let (address, bytes) = global(UNKNOWN_KERNEL, c"counter");
        let mut value = [0_u32];
        // SAFETY: the variable has four bytes.
        unsafe { result::memcpy_dtoh_sync(&mut value, address).unwrap() };
        assert_eq!((bytes, value), (4, [41]));
    }

    fn images_that_cannot_run_are_refused on "t4-16gb" {
        let context = CudaContext::new(0).unwrap();
        let load = |text: &str| code(context.load_module(Ptx::from_src(text)).map(|_| ()).unwrap_err());
        assert_eq!(load("not PTX at all"), CUresult::CUDA_ERROR_INVALID_PTX);
        assert_eq!(load("\u{7f}ELF"), CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_eq!(load(&UNKNOWN_KERNEL.replace("sm_70", "sm_80")), CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_eq!(load(&UNKNOWN_KERNEL.replace("8.0", "9.9")), CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    }

    fn out_of_memory_comes_at_the_capacity on "1073741824" {
        let _context = CudaContext::new(0).unwrap();
        // SAFETY: nothing is written to the memory.
        let allocate = |bytes| unsafe { result::malloc_sync(bytes) };
        let large = allocate(GIB - 512).unwrap();
        assert_eq!(code(allocate(513).unwrap_err()), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let small = allocate(512).unwrap();
        assert_eq!(used(), GIB);
        assert_eq!(code(allocate(1).unwrap_err()), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(code(allocate(usize::MAX).unwrap_err()), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        // SAFETY: both were allocated above, and are freed once.
        unsafe {
            result::free_sync(large).unwrap();
            result::free_sync(small).unwrap();
        }
        let again = allocate(GIB).unwrap();
        assert_eq!(again % 256, 0);
    }

    fn misuse_is_answered_as_by_a_driver on "1073741824" {
        assert_eq!(code(result::mem_get_info().unwrap_err()), CUresult::CUDA_ERROR_NOT_INITIALIZED);
        result::init().unwrap();
        assert_eq!(code(result::mem_get_info().unwrap_err()), CUresult::CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(code(result::device::get(1).unwrap_err()), CUresult::CUDA_ERROR_INVALID_DEVICE);
        let context = CudaContext::new(0).unwrap();
        // SAFETY: misuse is what is tested: each call is refused.
        unsafe {
            assert_eq!(code(result::malloc_sync(0).unwrap_err()), CUresult::CUDA_ERROR_INVALID_VALUE);
            let memory = result::malloc_sync(4096).unwrap();
            assert_eq!(code(result::free_sync(memory + 512).unwrap_err()), CUresult::CUDA_ERROR_INVALID_VALUE);
            let beyond = result::memset_d8_sync(memory, 1, 4097).unwrap_err();
            assert_eq!(code(beyond), CUresult::CUDA_ERROR_INVALID_VALUE);
            result::free_sync(memory).unwrap();
            assert_eq!(code(result::free_sync(memory).unwrap_err()), CUresult::CUDA_ERROR_INVALID_VALUE);
            result::free_sync(0).unwrap();
            let stream = context.new_stream().unwrap().cu_stream();
            assert_eq!(code(result::stream::synchronize(stream).unwrap_err()), CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        drop(context);
        assert_eq!(code(result::mem_get_info().unwrap_err()), CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }

    fn an_address_is_used_again on "1073741824" {
        let _context = CudaContext::new(0).unwrap();
        for bytes in [1000, 300 << 10, 50 << 20] {
            // SAFETY: what is allocated is freed once.
            unsafe {
                let first = result::malloc_sync(bytes).unwrap();
                result::free_sync(first).unwrap();
                let second = result::malloc_sync(bytes).unwrap();
                assert_eq!(first, second);
                result::free_sync(second).unwrap();
            }
        }
    }

    fn freed_memory_goes_back_to_the_system on "h100-80gb" {
        let _context = CudaContext::new(0).unwrap();
        let bytes = 256 << 20;
        // SAFETY: what is allocated is filled within its bounds and freed once.
        unsafe {
            let memory = result::malloc_sync(bytes).unwrap();
            assert!(resident() < bytes / 4);
            result::memset_d8_sync(memory, 1, bytes).unwrap();
            assert!(resident() > bytes);
            result::free_sync(memory).unwrap();
            assert!(resident() < bytes / 4);
        }
    }

    fn memory_that_was_written_and_freed_reads_zeros_again on "h100-80gb" {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        for bytes in [1000, 300 << 10, 1 << 20, (3 << 20) + 5, 4 << 20, 9 << 20] {
            // SAFETY: what is allocated is filled within its bounds and freed once.
            let first = unsafe {
                let memory = result::malloc_sync(bytes).unwrap();
                result::memset_d8_sync(memory, 1, bytes).unwrap();
                result::free_sync(memory).unwrap();
                memory
            };
            // SAFETY: any bits are a byte.
            let again = unsafe { stream.alloc::<u8>(bytes).unwrap() };
            assert_eq!(again.device_ptr(&stream).0, first, "the same memory");
            assert!(stream.clone_dtoh(&again).unwrap().iter().all(|&byte| byte == 0), "{bytes} bytes");
        }
    }

    fn fresh_memory_can_be_poisoned on "h100-80gb" with "MEMSCOPE_SIMULATOR_POISON" = "1" {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        for elements in [16, 1 << 20] {
            // SAFETY: any bits are a float.
            let fresh = unsafe { stream.alloc::<f32>(elements).unwrap() };
            assert!(stream.clone_dtoh(&fresh).unwrap().iter().all(|number| number.is_nan()));
        }
    }

    fn a_memory_only_run_never_touches_device_memory on "h100-80gb" with "MEMSCOPE_SIMULATOR_COMPUTE" = "0" {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let before = resident();
        let elements = 8 << 30;
        let mut large = stream.alloc_zeros::<f32>(elements).unwrap();
        // SAFETY: nothing computes in this run.
        let copy = unsafe { stream.alloc::<f32>(elements).unwrap() };
        stream.memcpy_dtod(&copy, &mut large).unwrap();
        let fill = context.load_module(Ptx::from_src(fill_image())).unwrap().load_function("fill").unwrap();
        let launch = LaunchConfig { grid_dim: (4, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments are those of the kernel.
        unsafe {
            stream.launch_builder(&fill).arg(&mut large).arg(&1000_u64).arg(&2.5_f32).launch(launch).unwrap();
        }
        let small = stream.clone_htod(&[1_u32, 2, 3]).unwrap();
        assert_eq!(stream.clone_dtoh(&small).unwrap(), [1, 2, 3], "a small upload can be read back");
        assert_eq!(stream.clone_dtoh(&large.slice(5..9)).unwrap(), [0.0; 4], "what was not uploaded reads zeros");
        assert_eq!(used(), 64 * GIB + 512);
        assert!(resident() < before + (4 << 20), "{} bytes more", resident() - before);
    }

    fn two_dimensional_copies_and_arrays on "h100-80gb" {
        let _context = CudaContext::new(0).unwrap();
        let source: Vec<u8> = (0..64).collect();
        let (mut device, mut pitch, mut array) = (0, 0, std::ptr::null_mut());
        let description = sys::CUDA_ARRAY_DESCRIPTOR {
            Width: 4,
            Height: 4,
            Format: sys::CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
            NumChannels: 1,
        };
        let mut back = [0_u8; 16];
        // SAFETY: every copy stays within the 8 × 8 bytes of the source, the pitched 4 × 4 and the array of 4 × 4.
        unsafe {
            sys::cuMemAllocPitch_v2(&mut device, &mut pitch, 4, 4, 4).result().unwrap();
            sys::cuArrayCreate_v2(&mut array, &description).result().unwrap();
            let mut copy = sys::CUDA_MEMCPY2D {
                srcXInBytes: 2,
                srcY: 3,
                srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
                srcHost: source.as_ptr().cast(),
                srcDevice: 0,
                srcArray: std::ptr::null_mut(),
                srcPitch: 8,
                dstXInBytes: 0,
                dstY: 0,
                dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstHost: std::ptr::null_mut(),
                dstDevice: device,
                dstArray: std::ptr::null_mut(),
                dstPitch: pitch,
                WidthInBytes: 4,
                Height: 4,
            };
            sys::cuMemcpy2D_v2(&copy).result().unwrap();
            copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
            (copy.srcDevice, copy.srcPitch, copy.srcXInBytes, copy.srcY) = (device, pitch, 0, 0);
            copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
            copy.dstArray = array;
            sys::cuMemcpy2D_v2(&copy).result().unwrap();
            sys::cuMemcpyAtoH_v2(back.as_mut_ptr().cast::<c_void>(), array, 0, 16).result().unwrap();
            assert_eq!(used(), 4 * 512 + 512);
            sys::cuArrayDestroy(array).result().unwrap();
            sys::cuMemFree_v2(device).result().unwrap();
        }
        assert_eq!(pitch, 512);
        assert_eq!(back, [26, 27, 28, 29, 34, 35, 36, 37, 42, 43, 44, 45, 50, 51, 52, 53]);
        assert_eq!(used(), 0);
    }

    fn levels_of_an_array_are_arrays_in_one_allocation on "h100-80gb" {
        let _context = CudaContext::new(0).unwrap();
        let description = sys::CUDA_ARRAY3D_DESCRIPTOR {
            Width: 64,
            Height: 16,
            Depth: 0,
            Format: sys::CUarray_format::CU_AD_FORMAT_FLOAT,
            NumChannels: 1,
            Flags: 0,
        };
        let (mut array, mut level) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut back = [0_u8; 8];
        // SAFETY: the copies stay within the second level, which has 32 × 8 floats.
        unsafe {
            sys::cuMipmappedArrayCreate(&mut array, &description, 3).result().unwrap();
            // 64 × 16, 32 × 8 and 16 × 4 floats, in units of 512 bytes.
            assert_eq!(used(), 5632); // (1024 + 256 + 64) · 4 = 5376
            sys::cuMipmappedArrayGetLevel(&mut level, array, 1).result().unwrap();
            sys::cuMemcpyHtoA_v2(level, 1016, [7_u8; 8].as_ptr().cast(), 8).result().unwrap();
            sys::cuMemcpyAtoH_v2(back.as_mut_ptr().cast(), level, 1016, 8).result().unwrap();
            assert_eq!(sys::cuArrayDestroy(level), sys::CUresult::CUDA_ERROR_INVALID_HANDLE);
            assert!(sys::cuMipmappedArrayGetLevel(&mut level, array, 3).result().is_err());
            sys::cuMipmappedArrayDestroy(array).result().unwrap();
        }
        assert_eq!(back, [7; 8]);
        assert_eq!(used(), 0);
    }

    fn managed_and_pinned_memory_are_not_the_devices on "1048576" {
        let context = CudaContext::new(0).unwrap();
        // SAFETY: the memory is written before it is read.
        unsafe {
            let mut managed = context.alloc_unified::<u32>(1 << 20, true).unwrap();
            managed.as_mut_slice().unwrap().fill(9);
            let mut pinned = context.alloc_pinned::<u32>(1 << 20).unwrap();
            pinned.as_mut_slice().unwrap().fill(8);
            assert_eq!(context.default_stream().clone_dtoh(&managed).unwrap()[12_345], 9);
            assert_eq!(used(), 0, "four times the device's capacity twice, and nothing of it on the device");
        }
    }
}

/// Address and bytes of a variable in an image of its own.
fn global(image: &str, name: &std::ffi::CStr) -> (u64, usize) {
    let image = std::ffi::CString::new(image).unwrap();
    let (mut address, mut bytes) = (0, 0);
    // SAFETY: image and name are terminated texts.
    unsafe {
        let module = result::module::load_data(image.as_ptr().cast()).unwrap();
        sys::cuModuleGetGlobal_v2(&mut address, &mut bytes, module, name.as_ptr()).result().unwrap();
    }
    (address, bytes)
}

/// One product a child: a device is what the session says at the start of a process.
#[test]
fn every_product_of_the_catalogue_runs_every_image_of_ours() {
    if session::inside() {
        let context = CudaContext::new(0).unwrap();
        for image in memscope_kernels::IMAGES {
            let module = context.load_module(Ptx::from_src(image.ptx)).unwrap();
            for kernel in memscope_kernels::KERNELS.iter().filter(|kernel| kernel.image.sha256 == image.sha256) {
                module.load_function(kernel.name).unwrap();
            }
        }
        return;
    }
    for product in &memscope_wire::device::CATALOGUE {
        println!("{}", product.key);
        let test = session::test_name(module_path!(), "every_product_of_the_catalogue_runs_every_image_of_ours");
        Session::new(product.key).run(&test);
    }
}
