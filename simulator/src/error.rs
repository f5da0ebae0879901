//! The driver's result codes: numbers, names and the sentences of cuGetErrorString.
//!
//! Owns: which code exists and how it reads. Refuses: to decide when one is returned.

use std::ffi::CStr;

/// A `CUresult` as it crosses the C interface.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CUresult(pub i32);

impl CUresult {
    /// What a row's body answers for what is not simulated: it is said, and the program gets CUDA_ERROR_NOT_SUPPORTED.
    pub const NOT_SIMULATED: CUresult = CUresult(-801);
}

/// What the body of an exported function returns.
pub type Status = Result<(), CUresult>;

macro_rules! results {
    ($($number:literal $name:ident $text:literal)*) => {
        #[allow(dead_code, reason = "the table is complete, whether or not the simulator returns a code")]
        impl CUresult {
            $(pub const $name: CUresult = CUresult($number);)*

            /// Name and sentence of this code; `None` for a number that is no result.
            pub fn describe(self) -> Option<(&'static CStr, &'static CStr)> {
                let (name, text) = match self.0 {
                    $($number => (concat!("CUDA_", stringify!($name), "\0"), concat!($text, "\0")),)*
                    _ => return None,
                };
                let terminated = |bytes: &'static str| CStr::from_bytes_with_nul(bytes.as_bytes()).ok();
                Some((terminated(name)?, terminated(text)?))
            }
        }

        #[cfg(test)]
        const NUMBERS: &[i32] = &[$($number),*];
    };
}

results! {
    0 SUCCESS "no error"
    1 ERROR_INVALID_VALUE "invalid argument"
    2 ERROR_OUT_OF_MEMORY "out of memory"
    3 ERROR_NOT_INITIALIZED "initialization error"
    4 ERROR_DEINITIALIZED "driver shutting down"
    5 ERROR_PROFILER_DISABLED "profiler disabled while using external profiling tool"
    34 ERROR_STUB_LIBRARY "CUDA driver is a stub library"
    46 ERROR_DEVICE_UNAVAILABLE "CUDA-capable device(s) is/are busy or unavailable"
    100 ERROR_NO_DEVICE "no CUDA-capable device is detected"
    101 ERROR_INVALID_DEVICE "invalid device ordinal"
    102 ERROR_DEVICE_NOT_LICENSED "device doesn't have valid Grid license"
    200 ERROR_INVALID_IMAGE "device kernel image is invalid"
    201 ERROR_INVALID_CONTEXT "invalid device context"
    205 ERROR_MAP_FAILED "mapping of buffer object failed"
    206 ERROR_UNMAP_FAILED "unmapping of buffer object failed"
    207 ERROR_ARRAY_IS_MAPPED "array is mapped"
    208 ERROR_ALREADY_MAPPED "resource already mapped"
    209 ERROR_NO_BINARY_FOR_GPU "no kernel image is available for execution on the device"
    210 ERROR_ALREADY_ACQUIRED "resource already acquired"
    211 ERROR_NOT_MAPPED "resource not mapped"
    214 ERROR_ECC_UNCORRECTABLE "uncorrectable ECC error encountered"
    215 ERROR_UNSUPPORTED_LIMIT "limit is not supported on this architecture"
    216 ERROR_CONTEXT_ALREADY_IN_USE "exclusive-thread device already in use by a different thread"
    217 ERROR_PEER_ACCESS_UNSUPPORTED "peer access is not supported between these two devices"
    218 ERROR_INVALID_PTX "a PTX JIT compilation failed"
    219 ERROR_INVALID_GRAPHICS_CONTEXT "invalid OpenGL or DirectX context"
    220 ERROR_NVLINK_UNCORRECTABLE "uncorrectable NVLink error detected during the execution"
    221 ERROR_JIT_COMPILER_NOT_FOUND "PTX JIT compiler library not found"
    222 ERROR_UNSUPPORTED_PTX_VERSION "the provided PTX was compiled with an unsupported toolchain."
    223 ERROR_JIT_COMPILATION_DISABLED "PTX JIT compilation was disabled"
    224 ERROR_UNSUPPORTED_EXEC_AFFINITY "the provided execution affinity is not supported"
    300 ERROR_INVALID_SOURCE "device kernel image is invalid"
    301 ERROR_FILE_NOT_FOUND "file not found"
    302 ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND "shared object symbol not found"
    303 ERROR_SHARED_OBJECT_INIT_FAILED "shared object initialization failed"
    304 ERROR_OPERATING_SYSTEM "OS call failed or operation not supported on this OS"
    400 ERROR_INVALID_HANDLE "invalid resource handle"
    401 ERROR_ILLEGAL_STATE "the operation cannot be performed in the present state"
    500 ERROR_NOT_FOUND "named symbol not found"
    600 ERROR_NOT_READY "device not ready"
    700 ERROR_ILLEGAL_ADDRESS "an illegal memory access was encountered"
    701 ERROR_LAUNCH_OUT_OF_RESOURCES "too many resources requested for launch"
    702 ERROR_LAUNCH_TIMEOUT "the launch timed out and was terminated"
    704 ERROR_PEER_ACCESS_ALREADY_ENABLED "peer access is already enabled"
    705 ERROR_PEER_ACCESS_NOT_ENABLED "peer access has not been enabled"
    708 ERROR_PRIMARY_CONTEXT_ACTIVE "cannot set while device is active in this process"
    709 ERROR_CONTEXT_IS_DESTROYED "context is destroyed"
    710 ERROR_ASSERT "device-side assert triggered"
    711 ERROR_TOO_MANY_PEERS "peer mapping resources exhausted"
    712 ERROR_HOST_MEMORY_ALREADY_REGISTERED "part or all of the requested memory range is already mapped"
    713 ERROR_HOST_MEMORY_NOT_REGISTERED "pointer does not correspond to a registered memory region"
    716 ERROR_MISALIGNED_ADDRESS "misaligned address"
    719 ERROR_LAUNCH_FAILED "unspecified launch failure"
    720 ERROR_COOPERATIVE_LAUNCH_TOO_LARGE "too many blocks in cooperative launch"
    800 ERROR_NOT_PERMITTED "operation not permitted"
    801 ERROR_NOT_SUPPORTED "operation not supported"
    802 ERROR_SYSTEM_NOT_READY "system not yet initialized"
    803 ERROR_SYSTEM_DRIVER_MISMATCH "system has unsupported display driver / cuda driver combination"
    804 ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE "forward compatibility was attempted on non supported HW"
    900 ERROR_STREAM_CAPTURE_UNSUPPORTED "operation not permitted when stream is capturing"
    901 ERROR_STREAM_CAPTURE_INVALIDATED "operation failed due to a previous error during capture"
    902 ERROR_STREAM_CAPTURE_MERGE "operation would result in a merge of separate capture sequences"
    903 ERROR_STREAM_CAPTURE_UNMATCHED "capture was not ended in the same stream as it began"
    904 ERROR_STREAM_CAPTURE_UNJOINED "capturing stream has unjoined work"
    905 ERROR_STREAM_CAPTURE_ISOLATION "dependency created on uncaptured work in another stream"
    906 ERROR_STREAM_CAPTURE_IMPLICIT "operation would make the legacy stream depend on a capturing blocking stream"
    907 ERROR_CAPTURED_EVENT "operation not permitted on an event last recorded in a capturing stream"
    908 ERROR_STREAM_CAPTURE_WRONG_THREAD "attempt to terminate a thread-local capture sequence from another thread"
    909 ERROR_TIMEOUT "wait operation timed out"
    910 ERROR_GRAPH_EXEC_UPDATE_FAILURE "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"
    911 ERROR_EXTERNAL_DEVICE "an async error has occurred in external entity outside of CUDA"
    912 ERROR_INVALID_CLUSTER_SIZE "a kernel launch error has occurred due to cluster misconfiguration"
    999 ERROR_UNKNOWN "unknown error"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_and_a_sentence() {
        for &number in NUMBERS {
            let (name, text) = CUresult(number).describe().unwrap();
            let prefix = if number == 0 { "CUDA_SUCCESS" } else { "CUDA_ERROR_" };
            assert!(name.to_str().unwrap().starts_with(prefix));
            assert!(!text.is_empty());
        }
        assert_eq!(CUresult(12_345).describe(), None);
    }
}
