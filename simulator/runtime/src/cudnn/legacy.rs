//! The older API: sizes of batch normalisation, dropout and CTC losses. What computes is a row of [`crate::generated`].

use crate::api::{Out, store};
use crate::driver::driver;
use crate::status::CudnnStatus;
use crate::thread::device;
use std::ffi::{c_int, c_void};

/// Bytes of a generator's state in dropout states: one for each resident thread (curandState_t of XORWOW has 48 bytes).
const GENERATOR: usize = 48;

api! {
    size fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        _handle: *mut c_void, _mode: c_int, _operations: c_int, _x: *const c_void, _z: *const c_void,
        _y: *const c_void, _scale: *const c_void, _activation: *const c_void, bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
    size fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        _handle: *mut c_void, _mode: c_int, _operations: c_int, _x: *const c_void, _y: *const c_void,
        _dy: *const c_void, _dz: *const c_void, _dx: *const c_void, _scale: *const c_void,
        _activation: *const c_void, bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
    size fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        _handle: *mut c_void, _mode: c_int, _operations: c_int, _activation: *const c_void, _x: *const c_void,
        bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
    size fn cudnnGetCTCLossWorkspaceSize(
        _handle: *mut c_void, _probabilities: *const c_void, _gradients: *const c_void, _labels: *const c_int,
        _label_lengths: *const c_int, _input_lengths: *const c_int, _algorithm: c_int, _loss: *const c_void,
        bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
    size fn cudnnGetCTCLossWorkspaceSize_v8(
        _handle: *mut c_void, _algorithm: c_int, _loss: *const c_void, _probabilities: *const c_void,
        _gradients: *const c_void, bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
    no_op fn cudnnSetCTCLossDescriptorEx(
        _loss: *mut c_void, _kind: c_int, _normalisation: c_int, _nan: c_int,
    ) -> CudnnStatus { Ok(()) }
    no_op fn cudnnSetCTCLossDescriptor_v9(
        _loss: *mut c_void, _kind: c_int, _normalisation: c_int, _gradients: c_int, _longest: c_int,
    ) -> CudnnStatus { Ok(()) }
    size fn cudnnDropoutGetStatesSize(_handle: *mut c_void, bytes: Out<'_, usize>) -> CudnnStatus {
        let (driver, device) = (driver(), device());
        let (Ok(driver), Ok(device)) = (driver, device) else { return Err(CudnnStatus(4000)) };
        let value = |number| driver.attribute(number, device).map_or(0, |value| value as usize);
        store(bytes, value(16) * value(39) * GENERATOR);
        Ok(())
    }
    size fn cudnnGetConvolutionForwardWorkspaceSize(
        _handle: *mut c_void, _x: *const c_void, _w: *const c_void, _convolution: *const c_void, _y: *const c_void,
        _algorithm: c_int, bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
    size fn cudnnGetConvolutionBackwardDataWorkspaceSize(
        _handle: *mut c_void, _w: *const c_void, _dy: *const c_void, _convolution: *const c_void, _dx: *const c_void,
        _algorithm: c_int, bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
    size fn cudnnGetConvolutionBackwardFilterWorkspaceSize(
        _handle: *mut c_void, _x: *const c_void, _dy: *const c_void, _convolution: *const c_void, _dw: *const c_void,
        _algorithm: c_int, bytes: Out<'_, usize>,
    ) -> CudnnStatus {
        store(bytes, 0);
        Ok(())
    }
}
