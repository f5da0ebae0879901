//! Descriptors of the older API: tensors and filters are remembered, because programs read them back, recurrent layers because
//! sizes follow from them; the others are opaque.

use super::given;
use super::rnn::{Layers, Sequences};
use crate::api::{Out, store};
use crate::status::CudnnStatus;
use std::ffi::c_int;

/// Most dimensions of a tensor (CUDNN_DIM_MAX).
const MOST: usize = 8;

/// What every descriptor is here.
#[derive(Clone, Copy, Default)]
pub struct Shape {
    kind: c_int,
    format: c_int,
    count: usize,
    sizes: [c_int; MOST],
    strides: [c_int; MOST],
}

impl Shape {
    /// A tensor without gaps, of three dimensions.
    pub fn tensor(kind: c_int, sizes: [c_int; 3]) -> Shape {
        let mut shape = Shape { kind, count: 3, ..Shape::default() };
        shape.sizes[..3].copy_from_slice(&sizes);
        shape.strides[..3].copy_from_slice(&[sizes[1] * sizes[2], sizes[2], 1]);
        shape
    }
}

/// # Safety
/// `from` must hold `count` numbers.
unsafe fn take(from: *const c_int, count: c_int) -> Result<([c_int; MOST], usize), CudnnStatus> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST).ok_or(CudnnStatus::BAD_PARAM)?;
    let mut numbers = [0; MOST];
    if from.is_null() {
        return Err(CudnnStatus::BAD_PARAM);
    }
    // SAFETY: as the caller says.
    unsafe { numbers.as_mut_ptr().copy_from_nonoverlapping(from, count) };
    Ok((numbers, count))
}

/// # Safety
/// `to` must have room for as many numbers as are `wanted`.
unsafe fn put(to: *mut c_int, numbers: &[c_int; MOST], count: usize, wanted: c_int) {
    let count = count.min(usize::try_from(wanted).unwrap_or(0));
    if !to.is_null() {
        // SAFETY: as the caller says.
        unsafe { to.copy_from_nonoverlapping(numbers.as_ptr(), count) };
    }
}

macro_rules! made_and_destroyed {
    ($($create:ident $destroy:ident $type:ty;)*) => {
        api! {$(
            simulated fn $create(place: Out<'_, *mut $type>) -> CudnnStatus {
                store(place, Box::into_raw(Box::default()));
                Ok(())
            }
            simulated fn $destroy(pointer: *mut $type) -> CudnnStatus {
                if pointer.is_null() {
                    return Err(CudnnStatus::BAD_PARAM);
                }
                // SAFETY: the program gives its descriptor back, once.
                drop(unsafe { Box::from_raw(pointer) });
                Ok(())
            }
        )*}
    };
}

// simulated fn of each name
made_and_destroyed! {
    cudnnCreateTensorDescriptor cudnnDestroyTensorDescriptor Shape;
    cudnnCreateFilterDescriptor cudnnDestroyFilterDescriptor Shape;
    cudnnCreateConvolutionDescriptor cudnnDestroyConvolutionDescriptor Shape;
    cudnnCreateActivationDescriptor cudnnDestroyActivationDescriptor Shape;
    cudnnCreateDropoutDescriptor cudnnDestroyDropoutDescriptor Shape;
    cudnnCreatePoolingDescriptor cudnnDestroyPoolingDescriptor Shape;
    cudnnCreateSpatialTransformerDescriptor cudnnDestroySpatialTransformerDescriptor Shape;
    cudnnCreateCTCLossDescriptor cudnnDestroyCTCLossDescriptor Shape;
    cudnnCreateRNNDescriptor cudnnDestroyRNNDescriptor Layers;
    cudnnCreateRNNDataDescriptor cudnnDestroyRNNDataDescriptor Sequences;
}

api! {
    simulated fn cudnnSetTensorNdDescriptor(
        pointer: *mut Shape, kind: c_int, count: c_int, sizes: *const c_int, strides: *const c_int,
    ) -> CudnnStatus {
        // SAFETY: the program gives its descriptor and `count` numbers of each.
        unsafe {
            let (taken, count_of) = take(sizes, count)?;
            let (strides, _) = take(strides, count)?;
            *given(pointer)? = Shape { kind, format: 0, count: count_of, sizes: taken, strides };
        }
        Ok(())
    }
    simulated fn cudnnGetTensorNdDescriptor(
        pointer: *mut Shape, wanted: c_int, kind: Out<'_, c_int>, count: Out<'_, c_int>, sizes: *mut c_int,
        strides: *mut c_int,
    ) -> CudnnStatus {
        // SAFETY: the program gives its descriptor and room for the wanted numbers.
        unsafe {
            let found = given(pointer)?;
            store(kind, found.kind);
            store(count, found.count as c_int);
            put(sizes, &found.sizes, found.count, wanted);
            put(strides, &found.strides, found.count, wanted);
        }
        Ok(())
    }
    simulated fn cudnnSetFilterNdDescriptor(
        pointer: *mut Shape, kind: c_int, format: c_int, count: c_int, sizes: *const c_int,
    ) -> CudnnStatus {
        // SAFETY: the program gives its descriptor and `count` numbers.
        unsafe {
            let (sizes, count) = take(sizes, count)?;
            *given(pointer)? = Shape { kind, format, count, sizes, strides: [0; MOST] };
        }
        Ok(())
    }
    simulated fn cudnnGetFilterNdDescriptor(
        pointer: *mut Shape, wanted: c_int, kind: Out<'_, c_int>, format: Out<'_, c_int>, count: Out<'_, c_int>,
        sizes: *mut c_int,
    ) -> CudnnStatus {
        // SAFETY: the program gives its descriptor and room for the wanted numbers.
        unsafe {
            let found = given(pointer)?;
            store(kind, found.kind);
            store(format, found.format);
            store(count, found.count as c_int);
            put(sizes, &found.sizes, found.count, wanted);
        }
        Ok(())
    }
    no_op fn cudnnSetConvolutionNdDescriptor() -> CudnnStatus { Ok(()) }
    no_op fn cudnnSetConvolutionGroupCount() -> CudnnStatus { Ok(()) }
    no_op fn cudnnSetConvolutionMathType() -> CudnnStatus { Ok(()) }
    no_op fn cudnnSetActivationDescriptor() -> CudnnStatus { Ok(()) }
    no_op fn cudnnSetDropoutDescriptor() -> CudnnStatus { Ok(()) }
    no_op fn cudnnRestoreDropoutDescriptor() -> CudnnStatus { Ok(()) }
    no_op fn cudnnSetPooling2dDescriptor() -> CudnnStatus { Ok(()) }
    no_op fn cudnnSetSpatialTransformerNdDescriptor() -> CudnnStatus { Ok(()) }
}
