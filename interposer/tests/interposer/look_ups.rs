//! The ways in which a program gets a driver function; each of them must end in the same records, and none may be noticed.

use crate::log_reader::{logs, marks, only_log};
use crate::stage::{self, driver, library, linked_program, program, run_both};

/// What every_function.h does, written from the null driver's rules. `{}` is "_ptsz" where the per-thread variants are used.
const EVERY_FUNCTION: &[&str] = &[
    "thread",
    "device 0: 68719476736 bytes, null driver 000\\x00",
    "in context 1, device 0",
    "cuMemAlloc_v2 10000000: 1000 of 1000 bytes, stream 0, device 0, device",
    "cuMemAllocPitch_v2 10000400: 5120 of 1000 bytes, stream 0, device 0, device",
    "cuMemAllocManaged 10001800: 3000 of 3000 bytes, stream 0, device 0, managed",
    "cuMemAllocAsync{} 10002400: 4000 of 4000 bytes, stream 0, device 0, pool",
    "device 1: 68719476736 bytes, null driver 000\\x01",
    "cuMemAllocAsync{} 100010003400: 4500 of 4500 bytes, stream 100, device 1, pool",
    "device 2: 68719476736 bytes, null driver 000\\x02",
    "cuMemAllocFromPoolAsync{} 200010004600: 5000 of 5000 bytes, stream 0, device 2, pool",
    "cuMemHostAlloc 10005a00: 6000 of 6000 bytes, stream 0, device -1, host",
    "cuMemAllocHost_v2 10007200: 7000 of 7000 bytes, stream 0, device -1, host",
    "cuMemHostRegister_v2 REGISTERED: 64 of 64 bytes, stream 0, device -1, host",
    "cuMemHostUnregister REGISTERED, stream 0",
    "cuMemFreeHost 10007200, stream 0",
    "cuMemFreeHost 10005a00, stream 0",
    "cuMemFreeAsync{} 200010004600, stream 0",
    "cuMemFreeAsync{} 100010003400, stream 100",
    "cuMemFree_v2 10002400, stream 0",
    "cuMemFree_v2 10001800, stream 0",
    "cuMemFree_v2 10000400, stream 0",
    "cuMemFree_v2 10000000, stream 0",
    "device 4: 68719476736 bytes, null driver 000\\x04",
    "cuMemCreate 70: 2097152 bytes, device 4, device",
    "cuMemCreate 71: 4096 bytes, device -1, host",
    "cuMemMap 40000000: 1048576 bytes of 70 from 4096",
    "cuMemCreate failed: 2199023255552 bytes, 1073741824 of 68719476736 free, device 4, device, result 2",
    "cuMemUnmap 40000000: 0 bytes",
    "cuMemUnmap 40000000 refused: 1",
    "cuMemRelease 99",
    "cuMemRelease 99 refused: 1",
    "cuMemRelease 70",
    "cuMemUnmap 40000000: 1048576 bytes",
    "cuMemRelease 71",
    // A float a pixel; four signed bytes; six faces of two halves; 3 by 3 blocks of 8 bytes; a format that nobody knows; one
    // that memory is mapped into; three layers of 8×4, 4×2, 2×1 and 1×1 floats.
    "cuArrayCreate_v2 a0000: 4000 bytes computed, device 0, device",
    "cuArrayCreate_v2 a0010: 4000 bytes computed, device 0, device",
    "cuArray3DCreate_v2 a0020: 6144 bytes computed, device 0, device",
    "cuArray3DCreate_v2 a0030: 72 bytes computed, device 0, device",
    "cuArray3DCreate_v2 a0040: 0 bytes for want of its size, device 0, device",
    "cuArray3DCreate_v2 a0050: 0 bytes computed, device 0, device",
    "cuMipmappedArrayCreate a0060: 516 bytes computed, device 0, device",
    "cuArrayCreate_v2 failed: 35184372088832 bytes, 1073741824 of 68719476736 free, device 0, device, result 2",
    "cuArrayDestroy 99",
    "cuArrayDestroy 99 refused: 1",
    "cuArrayDestroy a0050",
    "cuArrayDestroy a0040",
    "cuArrayDestroy a0030",
    "cuArrayDestroy a0020",
    "cuArrayDestroy a0010",
    "cuArrayDestroy a0000",
    "cuMipmappedArrayDestroy a0060",
    "device 5: 68719476736 bytes, null driver 000\\x05",
    "cuDevicePrimaryCtxRetain 6: a context, device 5",
    "in context 6, device 5",
    "cuMemAlloc_v2 500010008e00: 100 of 100 bytes, stream 0, device 5, device",
    "cuCtxCreate_v2 5006: a context, device 5",
    "in context 5006, device 5",
    "cuMemHostAlloc 10009000: 300 of 300 bytes, stream 0, device -1, host",
    "cuMemAlloc_v2 500010009200: 200 of 200 bytes, stream 0, device 5, device",
    "cuCtxDestroy_v2 5006: the context ends",
    "device 6: 68719476736 bytes, null driver 000\\x06",
    "cuCtxCreate_v3 5107: a context, device 6",
    "cuCtxDestroy_v2 5107: the context ends",
    "cuCtxCreate_v4 5207: a context, device 6",
    "cuCtxDestroy_v2 5207: the context ends",
    "cuDevicePrimaryCtxRelease_v2 6: the context ends",
    "cuDevicePrimaryCtxRetain 6: a context, device 5",
    "cuDevicePrimaryCtxReset_v2 6: the context ends",
    "cuDevicePrimaryCtxRetain 6: a context, device 5",
    "cuDevicePrimaryCtxReset 6: the context ends",
    "in context 1, device 0",
    "cuModuleLoad b0000: a module, device 0",
    "cuModuleLoadData b0010: a module, device 0",
    "cuModuleLoadDataEx b0020: a module, device 0",
    "cuModuleLoadFatBinary b0030: a module, device 0",
    "cuLibraryLoadData b0040: a library, device 0",
    "cuLibraryLoadFromFile b0050: a library, device 0",
    "device 3: 68719476736 bytes, null driver 000\\x03",
    "cuMemPoolCreate b0060: a pool, device 3",
    "cuMemPoolImportFromShareableHandle b0070: a pool, device 0",
    "cuMulticastCreate b0080: a multicast, device 0",
    "cuMemMap 60000000: 1048576 bytes of b0080 from 0",
    "cuMemUnmap 60000000: 1048576 bytes",
    "cuMemRelease b0080",
    "cuMemPoolDestroy b0070: the pool ends",
    "cuMemPoolDestroy b0060: the pool ends",
    "cuLibraryUnload b0050: the library ends",
    "cuLibraryUnload b0040: the library ends",
    "cuModuleUnload b0030: the module ends",
    "cuModuleUnload b0020: the module ends",
    "cuModuleUnload b0010: the module ends",
    "cuModuleUnload b0000: the module ends",
    "cuIpcOpenMemHandle 66000000: 12288 bytes of elsewhere, device 0",
    "cuIpcOpenMemHandle_v2 66000000: 12288 bytes of elsewhere, device 0",
    "cuMemPoolImportPointer 10009400: 12288 bytes of elsewhere, device 0",
    "cuImportExternalMemory b0090: a external, device 0",
    "cuExternalMemoryGetMappedBuffer 1000b000: 8192 bytes of elsewhere, device 0",
    "cuExternalMemoryGetMappedMipmappedArray b00a0: 0 bytes of elsewhere, device 0",
    "cuMemImportFromShareableHandle b00b0: 0 bytes of elsewhere, device 0",
    "cuMemRetainAllocationHandle 70",
    "cuMemMap 61000000: 1048576 bytes of b00b0 from 0",
    "cuMemUnmap 61000000: 1048576 bytes",
    "cuMemRelease b00b0",
    "cuMemRelease 70",
    "cuMipmappedArrayDestroy b00a0",
    "cuMemFree_v2 1000b000, stream 0",
    "cuDestroyExternalMemory b0090: the external ends",
    "cuMemFreeAsync{} 10009400, stream 0",
    "cuIpcCloseMemHandle 66000000, stream 0",
    "cuIpcCloseMemHandle 66000000, stream 0",
    "cuGraphInstantiate b00c0: a graph, device 0",
    "cuGraphInstantiate_v2 b00d0: a graph, device 0",
    "cuGraphInstantiateWithFlags b00e0: a graph, device 0",
    "cuGraphInstantiateWithParams{} b00f0: a graph, device 0",
    "cuGraphAddMemAllocNode 77000000: 4096 bytes of a node, device 0",
    "cuGraphAddNode 77000000: 4096 bytes of a node, device 0",
    "cuGraphAddNode_v2 77000000: 4096 bytes of a node, device 0",
    "cuGraphUpload{}: 3145728 bytes for graphs, device 0",
    "cuMemFree_v2 77000000, stream 0",
    "cuDeviceGraphMemTrim: 0 bytes for graphs, device 0",
    "cuGraphLaunch{}: 3145728 bytes for graphs, device 0",
    "cuDeviceGraphMemTrim: 0 bytes for graphs, device 0",
    "cuMemAllocAsync{} 10001000d000: 6000 bytes of a node, device 0",
    "cuMemAllocAsync{} 10001000e800: 6100 bytes of a node, device 0",
    "cuMemAllocAsync{} 200010010000: 6200 of 6200 bytes, stream 200, device 2, pool",
    "cuMemAllocFromPoolAsync{} 10011a00: 6300 bytes of a node, device 0",
    "cuMemFreeAsync{} 200010010000, stream 100",
    "cuGraphExecDestroy b00c0: the graph ends",
    "cuGraphExecDestroy b00d0: the graph ends",
    "cuGraphExecDestroy b00e0: the graph ends",
    "cuGraphExecDestroy b00f0: the graph ends",
];

fn expect_every_function(logs: &std::path::Path, suffix: &str) {
    let log = only_log(logs);
    let mut story = log.story();
    for line in &mut story {
        // The only address that the program's loader decides.
        if let Some((name, rest)) = line.clone().split_once(' ')
            && name.starts_with("cuMemHost")
            && name.ends_with("egister_v2") | name.ends_with("egister")
        {
            let end = rest.find([':', ',']).unwrap();
            *line = format!("{name} REGISTERED{}", &rest[end..]);
        }
    }
    let expected: Vec<_> = EVERY_FUNCTION.iter().map(|line| line.replace("{}", suffix)).collect();
    assert_eq!(story, expected);
    assert_eq!((log.dropped(), log.faults()), (0, 0));
}

#[test]
fn a_linked_program_is_recorded() {
    expect_every_function(&run_both(&linked_program("linked"), &driver(""), &[]), "");
}

#[test]
fn a_program_that_uses_dlsym_is_recorded() {
    let program = program("looked_up", &[]);
    expect_every_function(&run_both(&program, &driver(""), &[]), "");
    expect_every_function(&run_both(&program, &driver(""), &["old"]), "");
}

#[test]
fn a_program_that_uses_cu_get_proc_address_is_recorded() {
    let program = program("runtime_like", &[]);
    for version in ["1", "2"] {
        expect_every_function(&run_both(&program, &driver(""), &[version, "legacy"]), "");
        expect_every_function(&run_both(&program, &driver(""), &[version, "per-thread"]), "_ptsz");
    }
}

#[test]
fn a_driver_that_gives_other_entries_than_it_exports_is_recorded() {
    let logs = run_both(&program("runtime_like", &[]), &driver("OTHER_ENTRIES"), &["2", "legacy"]);
    expect_every_function(&logs, "");
}

#[test]
fn what_the_driver_calls_itself_is_recorded_once() {
    let logs = run_both(&linked_program("linked"), &driver("NESTED"), &[]);
    expect_every_function(&logs, "");
}

#[test]
fn look_ups_without_a_driver_fail_as_they_would() {
    let empty = stage::folder();
    let folder = run_both(&program("no_driver", &[]), &empty, &[]);
    assert!(logs(&folder).is_empty(), "a look-up alone must not open a log");
    assert_eq!(marks(&folder), ["library.loaded"]);
}

#[test]
fn look_ups_with_a_driver_succeed_as_they_would() {
    let folder = run_both(&program("no_driver", &[]), &driver(""), &[]);
    assert!(logs(&folder).is_empty(), "a look-up alone must not open a log");
    assert_eq!(marks(&folder), ["library.loaded"]);
}

#[test]
fn rtld_next_of_other_libraries_works() {
    let second = library("next_second", &[]);
    let first = library("next_first", &[]);
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    let next = program("next", &["-Wl,--no-as-needed", first, second]);
    run_both(&next, &driver(""), &[]);
    let output = stage::output(&mut stage::recorded(&next, &driver(""), &stage::folder()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "foo 42\n");
}

#[test]
fn a_plug_in_with_its_own_scope_is_recorded() {
    let folder = driver("");
    let plugin = library("plugin", &["-L", folder.to_str().unwrap(), "-lcuda"]);
    let logs = run_both(&program("plugin_host", &[]), &folder, &[plugin.to_str().unwrap()]);
    let allocations = only_log(&logs).story().iter().filter(|line| line.starts_with("cuMemAlloc_v2 ")).count();
    assert_eq!(allocations, 2);
}

#[test]
fn a_driver_that_is_closed_and_opened_again_stays_recorded() {
    let logs = stage::folder();
    let output = stage::output(&mut stage::recorded(&program("reload", &[]), &driver(""), &logs));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n0\n0\n");
    let allocations = only_log(&logs).story().iter().filter(|line| line.starts_with("cuMemAlloc_v2 ")).count();
    assert_eq!(allocations, 3);
}

#[test]
fn nothing_is_recorded_without_a_folder() {
    let program = linked_program("linked");
    let plain = stage::output(&mut stage::plain(&program, &driver("")));
    let mut command = stage::plain(&program, &driver(""));
    assert_eq!(stage::output(command.env("LD_PRELOAD", stage::interposer())), plain);
    command.env(memscope_wire::env::LOG_DIR, "");
    assert_eq!(stage::output(&mut command), plain);
}

#[test]
fn a_program_without_cuda_leaves_no_log() {
    let folder = stage::folder();
    let output = stage::output(&mut stage::recorded(std::path::Path::new("/bin/true"), &driver(""), &folder));
    assert!(output.status.success());
    assert!(logs(&folder).is_empty());
    assert_eq!(marks(&folder), ["library.loaded"]);
}

#[test]
fn a_second_driver_is_left_alone() {
    let (one, other) = (driver("").join("libcuda.so.1"), driver("REUSE").join("libcuda.so.1"));
    let logs =
        run_both(&program("second_driver", &[]), &stage::folder(), &[one.to_str().unwrap(), other.to_str().unwrap()]);
    let story = only_log(&logs).story();
    let calls: Vec<_> = story.iter().filter(|line| line.starts_with("cuMem")).collect();
    let expected =
        ["cuMemAlloc_v2 10000000: 100 of 100 bytes, stream 0, device 0, device", "cuMemFree_v2 10000000, stream 0"];
    assert_eq!(calls, expected);
    assert_eq!(only_log(&logs).faults(), 2);
}
