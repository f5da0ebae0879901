//! docs/coverage.md: what is recorded of each function of the driver, and which functions are left out, and why.
//!
//! Owns: the sentences, one for each shape of hook, and the list of what is left out. Refuses: a function of the driver that is
//! neither in the table nor in that list: a test compares both with all functions that cudarc declares.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::table::with_rows;

macro_rules! shapes {
    ($($name:ident = $shape:ident($($what:ident)?), $base:literal, $since:literal, $per_thread:literal;)*) => {
        /// Each function with the shape of its hook.
        const SHAPES: &[(&str, &str)] = &[$((stringify!($name), stringify!($shape))),*];
    };
}
with_rows!(shapes);

/// What a hook of this shape records.
fn recorded(shape: &str) -> &'static str {
    match shape {
        "linear" | "flagged" => "an allocation: address, bytes as asked for; device and context of the thread",
        "pitched" => "an allocation: bytes = pitch × height, as granted; device and context of the thread",
        "ordered" => "an allocation with its stream; in a capturing stream a node of a graph (see graphs)",
        "pooled" => {
            "an allocation with its stream, on the device that the driver names; in a capturing stream a node of a graph"
        }
        "host_flagged" | "host" => "an allocation of pinned host memory",
        "registered" => "pinned memory of the program's own: what of it is known already counts there, the rest here",
        "free" | "host_free" => "the free, before the call, taken back if the driver refuses it",
        "ordered_free" => {
            "the free, before the call, with its stream; in a capturing stream nothing: that may only be memory of a graph, whose bytes are \
             told with those of the device's graphs"
        }
        "created" => "memory of a handle: bytes, device, or the host where its location is the host",
        "handle_release" => "that the handle (of memory or of an array) is given back, before the call",
        "mapped" => "where memory of a handle lies from now on",
        "unmapped" => "that it lies there no more, before the call",
        "retained" => "one more reference to memory of a handle: as many releases give it back",
        "received" => "an import: its handle, and no bytes: it counts once, at its exporter",
        "opened" | "pointed" | "buffered" => {
            "an import: its address, and no bytes in any sum: it counts once, at its exporter"
        }
        "levels_of" => "an import: its handle, and no bytes",
        "array" | "levels" => {
            "an array: bytes computed from its description, marked so, since the driver does not tell them"
        }
        "context" | "context_on" | "context_of" => "a context: that it was made; its bytes are not told",
        "context_end" => "that the context, and all that was allocated in it, is gone",
        "primary" => "a primary context, at its first reference; its bytes are not told",
        "primary_end" => {
            "that the primary context, and all that was allocated in it, is gone, if this was its end; a reset frees the stream-ordered \
             memory of the device too"
        }
        "object" | "object_with_options" | "object_with_two_lists" | "object_of" | "object_or_text" | "object_by" => {
            "that it was made; its bytes are not told and are in `unexplained`"
        }
        "pool" | "object_shared" => "a pool: that it was made; what it keeps is asked later",
        "pool_end" => {
            "that it is gone; what was allocated from it stays until it is freed, what it kept beyond that is gone"
        }
        "pool_trim" | "pool_setting" => {
            "what the pool keeps beyond what is allocated from it, asked after the call, if that has changed"
        }
        "wait" | "wait_for" => {
            "what pools keep, asked after the call, where one of them kept something: the driver gives memory back then"
        }
        "object_end" => "that it is gone",
        "alloc_node" | "node" | "node_with_edges" => {
            "the address of a node that allocates, and no bytes: they are those of the graphs of the device"
        }
        "launch" | "graph_trim" => {
            "the bytes that the driver holds for graphs of the device, asked after the call, if they have changed: one allocation"
        }
        "capture" | "capture_in_mode" | "capture_into" => {
            "nothing; from then on it is asked of each stream-ordered call whether its stream captures"
        }
        "look_up" | "look_up_and_tell" => "nothing; gives the hooks of the functions above to who looks them up",
        _ => panic!("the shape {shape} has no sentence in docs/coverage.md"),
    }
}

/// Functions that sound like memory and are not hooked, by the reason.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        "Addresses without memory: what is mapped there counts.",
        &["cuMemAddressReserve", "cuMemAddressFree", "cuMemMapArrayAsync"],
    ),
    (
        "Gives a name to memory that counts already, or asks about it.",
        &[
            "cuIpcGetMemHandle",
            "cuMemExportToShareableHandle",
            "cuMemPoolExportPointer",
            "cuMemPoolExportToShareableHandle",
            "cuMemGetAllocationGranularity",
            "cuMemGetAllocationPropertiesFromHandle",
            "cuMipmappedArrayGetLevel",
            "cuMipmappedArrayGetMemoryRequirements",
            "cuMipmappedArrayGetSparseProperties",
            "cuGraphMemAllocNodeGetParams",
            "cuGraphMemFreeNodeGetParams",
        ],
    ),
    (
        "Chooses a pool, or asks about one. What a pool keeps beyond what is allocated from it is asked after an allocation from one and \
         a free, at most every few milliseconds.",
        &[
            "cuDeviceGetDefaultMemPool",
            "cuDeviceGetMemPool",
            "cuDeviceSetMemPool",
            "cuMemGetDefaultMemPool",
            "cuMemGetMemPool",
            "cuMemSetMemPool",
            "cuMemPoolGetAccess",
            "cuMemPoolGetAttribute",
            "cuMemPoolSetAccess",
        ],
    ),
    (
        "Binds memory to a multicast object: it counts where it was created.",
        &[
            "cuMulticastAddDevice",
            "cuMulticastBindAddr",
            "cuMulticastBindAddr_v2",
            "cuMulticastBindMem",
            "cuMulticastBindMem_v2",
            "cuMulticastUnbind",
        ],
    ),
    (
        "Logical endpoints came with CUDA 13.3 and are not followed yet: memory that is bound to one counts where it was created, what \
         is imported through one is not known.",
        &[
            "cuLogicalEndpointAddDevice",
            "cuLogicalEndpointBindAddr",
            "cuLogicalEndpointBindMem",
            "cuLogicalEndpointCreate",
            "cuLogicalEndpointDestroy",
            "cuLogicalEndpointExport",
            "cuLogicalEndpointIdRelease",
            "cuLogicalEndpointIdReserve",
            "cuLogicalEndpointImport",
            "cuLogicalEndpointUnbind",
        ],
    ),
    (
        "A graph before it is instantiated, and its other nodes, hold memory of the host only; a node that frees does so when the \
         graph runs.",
        &[
            "cuGraphAddBatchMemOpNode",
            "cuGraphAddChildGraphNode",
            "cuGraphAddDependencies",
            "cuGraphAddDependencies_v2",
            "cuGraphAddEmptyNode",
            "cuGraphAddEventRecordNode",
            "cuGraphAddEventWaitNode",
            "cuGraphAddExternalSemaphoresSignalNode",
            "cuGraphAddExternalSemaphoresWaitNode",
            "cuGraphAddHostNode",
            "cuGraphAddKernelNode",
            "cuGraphAddKernelNode_v2",
            "cuGraphAddMemFreeNode",
            "cuGraphAddMemcpyNode",
            "cuGraphAddMemsetNode",
            "cuGraphConditionalHandleCreate",
            "cuGraphCreate",
            "cuGraphDestroy",
            "cuGraphDestroyNode",
            "cuGraphExecExternalSemaphoresSignalNodeSetParams",
            "cuGraphExecExternalSemaphoresWaitNodeSetParams",
            "cuGraphExternalSemaphoresSignalNodeGetParams",
            "cuGraphExternalSemaphoresSignalNodeSetParams",
            "cuGraphExternalSemaphoresWaitNodeGetParams",
            "cuGraphExternalSemaphoresWaitNodeSetParams",
            "cuGraphReleaseUserObject",
            "cuGraphRetainUserObject",
            "cuUserObjectCreate",
            "cuUserObjectRelease",
            "cuUserObjectRetain",
        ],
    ),
    (
        "Of the newest versions, whose arguments are not known here: what their nodes allocate, or capture, is seen at the next launch \
         only.",
        &["cuGraphAddNode_v3", "cuStreamBeginCaptureToCig", "cuStreamBeginRecaptureToGraph"],
    ),
    (
        "Maps what OpenGL or another interface owns: not memory of the driver's allocators.",
        &[
            "cuGraphicsMapResources",
            "cuGraphicsResourceGetMappedMipmappedArray",
            "cuGraphicsResourceGetMappedPointer_v2",
            "cuGraphicsResourceSetMapFlags_v2",
            "cuGraphicsSubResourceGetMappedArray",
            "cuGraphicsUnmapResources",
            "cuGraphicsUnregisterResource",
        ],
    ),
    (
        "A part of a device's processors; its memory is of the primary context.",
        &["cuGreenCtxCreate", "cuGreenCtxDestroy", "cuGreenCtxStreamCreate"],
    ),
    (
        "Takes memory of the device, if any, that the driver neither tells nor frees by name (streams, events, kernels that are loaded \
         late, the heap and the stacks of kernels): it is in `unexplained`, as the modules are.",
        &[
            "cuEventCreate",
            "cuEventDestroy_v2",
            "cuFuncIsLoaded",
            "cuFuncLoad",
            "cuLaunch",
            "cuLaunchCooperativeKernel",
            "cuLaunchCooperativeKernelMultiDevice",
            "cuLaunchGrid",
            "cuLaunchGridAsync",
            "cuLaunchHostFunc",
            "cuLaunchHostFunc_v2",
            "cuLaunchKernel",
            "cuLaunchKernelEx",
            "cuLinkCreate_v2",
            "cuLinkDestroy",
            "cuModuleGetLoadingMode",
            "cuStreamCreate",
            "cuStreamCreateWithPriority",
            "cuStreamDestroy_v2",
            "cuCtxResetPersistingL2Cache",
        ],
    ),
    (
        "No memory of the device: descriptions, semaphores, events of other processes, callbacks.",
        &[
            "cuCoredumpDeregisterCompleteCallback",
            "cuCoredumpDeregisterStartCallback",
            "cuCoredumpRegisterCompleteCallback",
            "cuCoredumpRegisterStartCallback",
            "cuDestroyExternalSemaphore",
            "cuDeviceRegisterAsyncNotification",
            "cuDeviceUnregisterAsyncNotification",
            "cuGetExportTable",
            "cuImportExternalSemaphore",
            "cuIpcOpenEventHandle",
            "cuLogsRegisterCallback",
            "cuLogsUnregisterCallback",
            "cuSignalExternalSemaphoresAsync",
            "cuSurfObjectCreate",
            "cuSurfObjectDestroy",
            "cuTensorMapEncodeIm2col",
            "cuTensorMapEncodeIm2colWide",
            "cuTensorMapEncodeTiled",
            "cuTensorMapReplaceAddress",
            "cuTexObjectCreate",
            "cuTexObjectDestroy",
            "cuTexRefCreate",
            "cuTexRefDestroy",
            "cuTexRefGetMipmapFilterMode",
            "cuTexRefGetMipmapLevelBias",
            "cuTexRefGetMipmapLevelClamp",
            "cuTexRefGetMipmappedArray",
            "cuTexRefSetMipmapFilterMode",
            "cuTexRefSetMipmapLevelBias",
            "cuTexRefSetMipmapLevelClamp",
            "cuTexRefSetMipmappedArray",
            "cuWaitExternalSemaphoresAsync",
        ],
    ),
];

/// Words in the names of functions that may have to do with memory.
const WORDS: [&str; 26] = [
    "alloc",
    "create",
    "import",
    "export",
    "map",
    "load",
    "bind",
    "free",
    "destroy",
    "release",
    "retain",
    "reset",
    "trim",
    "pool",
    "instantiate",
    "register",
    "open",
    "close",
    "reserve",
    "capture",
    "launch",
    "graphadd",
    "getmemhandle",
    "adddevice",
    "reserve",
    "upload",
];
/// What a name with one of the words is about nevertheless: it asks or says something about a capture.
const QUESTIONS: [&str; 6] =
    ["CaptureInfo", "IsCapturing", "EndCapture", "CaptureMode", "CaptureDependencies", "GetExportTable"];

fn page() -> String {
    let mut page = String::from(
        "# What is recorded of the driver's functions\n\n\
         Made from the table in interposer/src/table.rs by a test (interposer/src/coverage.rs), which fails where cudarc declares a\n\
         function of memory that is in neither list below. What a real driver does has been read in its documentation and not yet been\n\
         seen on a GPU.\n\n\
         ## Hooked\n\n| function | what is recorded |\n| --- | --- |\n",
    );
    for (name, shape) in SHAPES {
        writeln!(page, "| {name} | {} |", recorded(shape)).unwrap();
    }
    page.push_str("\n## Left out\n\n| functions | why |\n| --- | --- |\n");
    for (reason, names) in LEFT_OUT {
        writeln!(page, "| {} | {reason} |", names.join(", ")).unwrap();
    }
    page.push_str(
        "\nFunctions whose pointers are 32-bit (`cuMemAlloc`, `cuMemFree`, … without `_v2`), kept for programs built before CUDA 3.2, are\n\
         not exported: such a program meets the driver alone.\n",
    );
    page
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_page_is_what_the_table_says() {
    let path = root().join("docs/coverage.md");
    if std::env::var_os("MEMSCOPE_UPDATE_COVERAGE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "docs/coverage.md is out of date: run this test with MEMSCOPE_UPDATE_COVERAGE=1");
}

/// Names of all functions that cudarc declares.
fn declared() -> BTreeSet<String> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata = String::from_utf8(metadata.stdout).unwrap();
    let manifest = metadata
        .split('"')
        .find(|text| text.contains("/cudarc-") && text.ends_with("/Cargo.toml"))
        .expect("cudarc among the workspace's packages");
    let source = Path::new(manifest).with_file_name("src/driver/sys/mod.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let names = source.split("pub unsafe fn cu").skip(1).filter_map(|rest| rest.split_once('('));
    names.map(|(name, _)| format!("cu{name}")).collect()
}

#[test]
fn no_function_of_memory_is_missed() {
    let declared = declared();
    assert!(declared.len() > 400, "{}", declared.len());
    let hooked: BTreeSet<&str> = SHAPES.iter().map(|(name, _)| *name).collect();
    let left_out: BTreeSet<&str> = LEFT_OUT.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let count: usize = LEFT_OUT.iter().map(|(_, names)| names.len()).sum();
    assert_eq!(left_out.len(), count, "a function is left out twice");
    let both: Vec<_> = hooked.intersection(&left_out).collect();
    assert!(both.is_empty(), "hooked and left out: {both:?}");
    let unknown: Vec<_> = left_out.iter().filter(|name| !declared.contains(**name)).collect();
    assert!(unknown.is_empty(), "left out and not known: {unknown:?}");
    let sounds = |name: &&String| {
        WORDS.iter().any(|word| name.to_lowercase().contains(word))
            && !QUESTIONS.iter().any(|question| name.contains(question))
    };
    let missed: Vec<_> = declared
        .iter()
        .filter(sounds)
        .filter(|name| !hooked.contains(name.as_str()) && !left_out.contains(name.as_str()))
        .collect();
    assert!(missed.is_empty(), "neither hooked nor left out: {missed:?}");
}
