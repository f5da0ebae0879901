//! Ways into the driver that cudarc's safe layer does not take.

use crate::session::on_simulator;
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaContext, result};
use std::ffi::{CString, c_void};

fn used() -> usize {
    let (free, total) = result::mem_get_info().unwrap();
    total - free
}

/// The image of the kernel `fill(output, elements, value)`.
fn fill_image() -> CString {
    let kernel = memscope_kernels::KERNELS.iter().find(|kernel| kernel.name == "fill").unwrap();
    CString::new(kernel.image.ptx).unwrap()
}

fn int_attribute(which: sys::CUpointer_attribute, address: u64) -> Result<i32, CUresult> {
    let mut value = 0;
    // SAFETY: the attributes asked for here are ints or narrower.
    match unsafe { sys::cuPointerGetAttribute((&raw mut value).cast(), which, address) } {
        CUresult::CUDA_SUCCESS => Ok(value),
        refused => Err(refused),
    }
}

on_simulator! {
    fn parameters_may_come_in_one_buffer on "h100-80gb" {
        let _context = CudaContext::new(0).unwrap();
        #[repr(C)]
        struct Packed {
            output: u64,
            elements: u64,
            value: f32,
        }
        // SAFETY: the buffer has the parameters of the kernel, and the memory its elements.
        unsafe {
            use std::ptr::null_mut as none;
            let (mut library, mut kernel, mut function) = (none(), none(), none());
            let image = fill_image();
            let code = image.as_ptr().cast();
            sys::cuLibraryLoadData(&mut library, code, none(), none(), 0, none(), none(), 0).result().unwrap();
            sys::cuLibraryGetKernel(&mut kernel, library, c"fill".as_ptr()).result().unwrap();
            sys::cuKernelGetFunction(&mut function, kernel).result().unwrap();
            let output = result::malloc_sync(32).unwrap();
            result::memset_d8_sync(output, 0, 32).unwrap();
            let mut packed = Packed { output, elements: 7, value: 1.5 };
            let mut size = std::mem::offset_of!(Packed, value) + 4;
            let mut launch = |size: &mut usize| {
                let mut extra: [*mut c_void; 5] =
                    [1 as _, (&raw mut packed).cast(), 2 as _, (size as *mut usize).cast(), std::ptr::null_mut()];
                sys::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, none(), none(), extra.as_mut_ptr())
            };
            assert_eq!(launch(&mut size), CUresult::CUDA_SUCCESS);
            let mut back = [0.0_f32; 8];
            result::memcpy_dtoh_sync(&mut back, output).unwrap();
            assert_eq!(back, [1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.0]);
            size -= 1;
            assert_eq!(launch(&mut size), CUresult::CUDA_ERROR_INVALID_VALUE, "the buffer lacks a byte of the last one");
            sys::cuLibraryUnload(library).result().unwrap();
            assert_eq!(launch(&mut size), CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
    }

    fn pointers_say_what_they_are on "1073741824*2" {
        use sys::CUpointer_attribute::{
            CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED as MANAGED,
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE as TYPE,
        };
        let context = CudaContext::new(1).unwrap();
        // SAFETY: nothing is read or written.
        unsafe {
            let device = result::malloc_sync(5000).unwrap();
            let managed = result::malloc_managed(4096, sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL).unwrap();
            let pinned = result::malloc_host(4096, 0).unwrap() as u64;
            let (mut start, mut bytes) = (0, 0);
            sys::cuMemGetAddressRange_v2(&mut start, &mut bytes, device + 4999).result().unwrap();
            assert_eq!((start, bytes), (device, 5000));
            assert_eq!(sys::cuMemGetAddressRange_v2(&mut start, &mut bytes, device + 5000), CUresult::CUDA_ERROR_NOT_FOUND);
            assert_eq!(int_attribute(TYPE, device + 10), Ok(2));
            assert_eq!(int_attribute(ORDINAL, device), Ok(1));
            assert_eq!((int_attribute(TYPE, managed), int_attribute(MANAGED, managed)), (Ok(2), Ok(1)));
            assert_eq!((int_attribute(TYPE, pinned), int_attribute(MANAGED, pinned)), (Ok(1), Ok(0)));
            let local = 0_u64;
            let plain = int_attribute(TYPE, &raw const local as u64);
            assert_eq!(plain, Err(CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        drop(context);
    }

    fn a_context_takes_its_memory_along on "1073741824" with "MEMSCOPE_SIMULATOR_CONTEXT_BYTES" = "4096" {
        let _primary = CudaContext::new(0).unwrap();
        assert_eq!(used(), 4096);
        // SAFETY: nothing is written to the memory.
        unsafe {
            let mut context = std::ptr::null_mut();
            sys::cuCtxCreate_v2(&mut context, 0, 0).result().unwrap();
            let memory = result::malloc_sync(1 << 20).unwrap();
            assert_eq!(used(), 4096 + (1 << 20), "a second context on a device costs nothing more");
            sys::cuCtxDestroy_v2(context).result().unwrap();
            assert_eq!(used(), 4096);
            assert_eq!(result::free_sync(memory).unwrap_err().0, CUresult::CUDA_ERROR_INVALID_VALUE);
        }
    }

    fn threads_allocate_at_once_and_nothing_is_lost on "1073741824" {
        let context = CudaContext::new(0).unwrap();
        std::thread::scope(|scope| {
            for seed in 1..=4_usize {
                let context = &context;
                scope.spawn(move || {
                    context.bind_to_thread().unwrap();
                    let mut live = Vec::new();
                    for step in 0..500_usize {
                        let bytes = 1 + (step * seed * 7919) % (2 << 20);
                        // SAFETY: each allocation is written within its bounds by this thread alone, and freed once.
                        unsafe {
                            let memory = result::malloc_sync(bytes).unwrap();
                            result::memset_d8_sync(memory, seed as u8, bytes.min(64)).unwrap();
                            live.push((memory, bytes.min(64)));
                            if live.len() > 20 {
                                let (memory, bytes) = live.swap_remove(step % 20);
                                let mut back = vec![0_u8; bytes];
                                result::memcpy_dtoh_sync(&mut back, memory).unwrap();
                                assert!(back.iter().all(|&byte| byte == seed as u8), "another thread wrote here");
                                result::free_sync(memory).unwrap();
                            }
                        }
                    }
                    for (memory, _) in live {
                        // SAFETY: allocated above, freed once.
                        unsafe { result::free_sync(memory).unwrap() };
                    }
                });
            }
        });
        assert_eq!(used(), 0);
    }

    fn occupancy_follows_the_programming_guide on "h100-80gb" {
        let _context = CudaContext::new(0).unwrap();
        let image = fill_image();
        let mut blocks = 0;
        // SAFETY: the image is a terminated text.
        unsafe {
            let module = result::module::load_data(image.as_ptr().cast()).unwrap();
            let function = result::module::get_function(module, c"fill".into()).unwrap();
            let mut resident = |threads, shared| {
                sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, function, threads, shared).result().unwrap();
                blocks
            };
            assert_eq!(resident(1024, 0), 2, "2048 threads");
            assert_eq!(resident(32, 0), 32, "at most 32 blocks");
            assert_eq!(resident(32, 75 << 10), 3, "228 KiB of shared memory, 1 KiB of it taken from each block");
        }
    }
}

/// What a process whose CUDA libraries are simulated tells the driver, which a program cannot tell.
fn tell(name: &std::ffi::CStr) {
    // SAFETY: the simulated driver is loaded, and has functions of these names, which take nothing.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let address = libc::dlsym(library, name.as_ptr());
        assert!(!address.is_null());
        std::mem::transmute::<*mut c_void, extern "C" fn()>(address)();
    }
}

on_simulator! {
    fn machine_code_is_taken_unread_where_nothing_computes on "h100-80gb" {
        const CUBIN: &[u8] = b"\x7fELF\x02\x01\x01\0";
        let _context = CudaContext::new(0).unwrap();
        let load = || {
            let mut module = std::ptr::null_mut();
            // SAFETY: the image begins with the magic of a binary, and is read no further.
            unsafe { sys::cuModuleLoadData(&mut module, CUBIN.as_ptr().cast()) }.result().map(|()| module)
        };
        assert_eq!(load().unwrap_err().0, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        tell(c"memscope_simulator_memory_only");
        let module = load().unwrap();
        let mut back = [0_u8; 4];
        // SAFETY: the memory is live, and the kernel is code that never runs.
        unsafe {
            let memory = result::malloc_sync(16).unwrap();
            result::memcpy_htod_sync(memory, b"abcd").unwrap();
            result::memcpy_dtoh_sync(&mut back, memory).unwrap();
            assert_eq!(&back, b"abcd", "what was copied there comes back");
            let (mut first, mut again) = (std::ptr::null_mut(), std::ptr::null_mut());
            sys::cuModuleGetFunction(&mut first, module, c"any".as_ptr()).result().unwrap();
            sys::cuModuleGetFunction(&mut again, module, c"any".as_ptr()).result().unwrap();
            assert_eq!(first, again);
            let none = std::ptr::null_mut;
            sys::cuLaunchKernel(first, 1, 1, 1, 32, 1, 1, 0, none(), none().cast(), none().cast()).result().unwrap();
            result::memcpy_dtoh_sync(&mut back, memory).unwrap();
        }
        assert_eq!(back, [0; 4], "a kernel may have written anywhere");
    }
}
