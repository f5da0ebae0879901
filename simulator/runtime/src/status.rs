//! The result codes of the libraries: numbers that a program compares with, and what stands for a panic of ours.
//!
//! Owns: one transparent type a library. Refuses: the texts of the CUDA runtime's errors, which are the driver's and
//! [`crate::generated`]'s.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A library's result code.
pub trait Status: Copy {
    /// The library's success.
    const SUCCESS: Self;
    /// What a failure of ours is.
    const INTERNAL: Self;
    /// What a function that is not simulated returns.
    const NOT_SUPPORTED: Self;

    /// The number.
    fn number(self) -> i32;

    /// Notes the result where the library keeps a last error.
    fn note(self) {}
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident: internal $internal:literal, not supported $unsupported:literal
        $(, $constant:ident $number:literal)*, [$($note:expr)?];)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name(pub i32);

        impl $name {
            $(pub const $constant: $name = $name($number);)*
        }

        impl Status for $name {
            const SUCCESS: $name = $name(0);
            const INTERNAL: $name = $name($internal);
            const NOT_SUPPORTED: $name = $name($unsupported);

            fn number(self) -> i32 {
                self.0
            }

            $(fn note(self) {
                $note(self)
            })?
        }
    )*};
}

statuses! {
    /// `cudaError_t`: the numbers of CUresult.
    CudaError: internal 999, not supported 801,
        INVALID_VALUE 1, INSUFFICIENT_DRIVER 35, INVALID_DEVICE 101, NOT_READY 600, [crate::thread::note_error];
    /// `cublasStatus_t`
    CublasStatus: internal 14, not supported 15, INVALID_VALUE 7, [];
    /// `cudnnStatus_t`
    CudnnStatus: internal 4000, not supported 3000, BAD_PARAM 2000, [];
    /// `cufftResult`
    CufftResult: internal 5, not supported 16, INVALID_PLAN 1, INVALID_VALUE 4, INVALID_SIZE 8, [];
    /// `ncclResult_t`
    NcclResult: internal 3, not supported 5, UNHANDLED_CUDA_ERROR 1, INVALID_ARGUMENT 4, [];
    /// `nvrtcResult`
    NvrtcResult: internal 11, not supported 11, INVALID_PROGRAM 4, NAME_EXPRESSION_NOT_VALID 10, [];
    /// `CUptiResult`
    CuptiResult: internal 999, not supported 27, MAX_LIMIT_REACHED 12, [];
    /// The status of a library of which nothing is simulated: not zero.
    OtherStatus: internal 1, not supported 1, [];
}

impl CudaError {
    /// `Ok` for 0.
    pub fn result(self) -> Result<(), CudaError> {
        if self.0 == 0 { Ok(()) } else { Err(self) }
    }
}

/// Runs a row's body.
pub fn guard<S: Status>(name: &'static str, body: impl FnOnce() -> Result<(), S>) -> S {
    let status = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => S::SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => S::INTERNAL,
    };
    crate::calls::trace(name, status.number());
    status.note();
    status
}
