//! The launchers: one function a kernel, with the tensors that it takes.
//!
//! Owns: launch configurations and the check that tensors have the size that the kernel will touch. Refuses: to allocate.
//! What each computes is in the kernel's source, kernels/cu/.
//!
//! Every function fails with [`crate::Error::Driver`] when the launch does, and panics when the sizes do not agree, which
//! is a fault of the model's code and never of a user's arguments.

use crate::device::Argument;
use crate::tensor::Element;
use crate::{Error, Tensor};
use memscope_kernels::Launch;

mod attention;
mod batchnorm;
mod compress;
mod convolution;
mod elementwise;
mod embedding;
mod flash_attention;
mod layernorm;
mod loss;
mod matmul;
mod optimizers;
mod pooling;
mod precision;

pub(crate) use attention::{
    Heads, merge_heads, merge_heads_backward, softmax_backward, softmax_forward, split_qkv, split_qkv_backward,
};
pub(crate) use batchnorm::{BatchNorm, batchnorm_backward, batchnorm_forward};
pub(crate) use compress::{compress, decompress};
pub(crate) use convolution::{
    ConvolutionShape, convolution_backward_input, convolution_backward_weight, convolution_forward,
};
pub(crate) use elementwise::{AdamW, adamw, add, fill, gelu_backward, gelu_forward, init_normal};
pub(crate) use elementwise::{Momentum, relu_backward, relu_forward, sgd_momentum};
pub(crate) use embedding::{embedding_backward_position, embedding_backward_table, embedding_forward};
pub(crate) use flash_attention::{Flash, WIDEST_HEAD, flash_backward, flash_forward, flash_inner};
pub(crate) use layernorm::{layernorm_backward_input, layernorm_backward_parameters, layernorm_forward};
pub(crate) use loss::{log_softmax_backward, log_softmax_forward, nll_backward, nll_forward};
pub(crate) use matmul::{Matrix, Product, bias_backward, matmul};
pub(crate) use optimizers::{
    Adafactor, adafactor_apply, adafactor_factors, adafactor_mean, adafactor_partials, adafactor_step,
    adafactor_vector, adamw_apply, adamw_denominator, adamw_moments, adamw8bit, sgd,
};
pub(crate) use pooling::{Windows, averagepool_backward, averagepool_forward, maxpool_backward, maxpool_forward};
pub(crate) use precision::{adamw_bf16, cast, round_bf16, unscale};

/// Launches a kernel on tensors of one kind: the sibling for 16 bits takes what they are as its last argument.
fn launch(kind: &Tensor, kernel: &str, launch: Launch, arguments: &[Argument]) -> Result<(), Error> {
    match kind.element() {
        Element::Fp32 => kind.device().launch(kernel, launch, arguments),
        element => {
            let arguments = [arguments, &[element.code().into()]].concat();
            kind.device().launch(&format!("half_{kernel}"), launch, &arguments)
        }
    }
}

/// Launches a kernel that only moves elements.
fn launch_move(kind: &Tensor, kernel: &str, launch: Launch, arguments: &[Argument]) -> Result<(), Error> {
    match kind.element() {
        Element::Fp32 => kind.device().launch(kernel, launch, arguments),
        _ => kind.device().launch(&format!("half_{kernel}"), launch, arguments),
    }
}

/// Launches a kernel on tensors of two kinds, of which the sibling for 16 bits takes what they are as its last arguments.
fn launch_two(kinds: [&Tensor; 2], kernel: &str, launch: Launch, arguments: &[Argument]) -> Result<(), Error> {
    let elements = kinds.map(Tensor::element);
    if elements == [Element::Fp32; 2] {
        return kinds[0].device().launch(kernel, launch, arguments);
    }
    let arguments = [arguments, &elements.map(|element| element.code().into())].concat();
    kinds[0].device().launch(&format!("half_{kernel}"), launch, &arguments)
}

/// A dimension as kernels take it: the arguments were checked to fit (gpt/arguments.rs).
fn dimension(size: u64) -> u32 {
    u32::try_from(size).expect("dimensions were checked to fit in 32 bits")
}
