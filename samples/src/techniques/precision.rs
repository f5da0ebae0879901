//! In which type training computes and keeps its numbers: fp32, automatic mixed precision, or bf16 alone.
//!
//! Mixed precision (Micikevicius et al. 2018, as PyTorch's autocast has it). Weights, gradients and optimizer stay in fp32. A
//! matrix product takes and gives 16 bits and sums in fp32; layer norm, log-softmax and loss are in fp32; what adds or rearranges
//! runs in the type of its inputs, so that the residual stream is fp32:
//!
//! | in 16 bits | in fp32 | as its input |
//! | --- | --- | --- |
//! | qkv, scores, context, projection, the MLP's layers, BERT's transform, the decoder | layer norm, log-softmax, loss, embeddings, the sum with the residual | heads apart and together, GELU |
//!
//! Of a ResNet: convolutions and the head in 16 bits; log-softmax and loss in fp32; as their input batch normalisation, whose sums,
//! statistics, weight and bias are fp32, ReLU, sum and pooling: so that every feature map has 2 bytes an element. A of an image
//! halves, but for the pooling's 64-bit indices; the images' cast comes to it.
//!
//! Attention is one operation of the 16-bit list, as scaled_dot_product_attention is: its softmax computes in fp32 and keeps 16
//! bits. Written out under autocast, the softmax would be on the fp32 list and its result be kept twice, in 6 bytes an element. Tile
//! by tile (`--attention flash`) it takes and gives 16 bits too; scores, softmax and sums are in fp32, and so are the statistics.
//!
//! Bytes. W is 4·P + 2·C at most, C elements of the weights and biases that products read: they are cast once in a forward pass
//! (autocast's cache). A bias's cast is freed when the loss is computed, where autocast ends; a weight's when its layer's backward
//! pass has read it, or where autocast ends if none will: a layer that is computed again is cast again. A of a layer: n·h·36 + 2·b·a·s² + 16·n instead of n·h·64 + 4·b·a·s² + 16·n. G 4·P, O 8·P. T gains a 16-bit
//! gradient of one weight at a time.
//!
//! bf16 alone: W 2·P, G 2·P, O 4·P: two moments of bf16, 8 bytes a parameter in all. No master weights: the update is rounded
//! stochastically (kernels/cu/adamw_bf16.cu), since bf16's steps are far larger than an update. The other optimizers update in fp32,
//! on temporaries of one parameter at a time, 8 bytes an element, and keep what they keep in fp32; sgd O 0, momentum 4·P, and so on. Everything kept is bf16 but the
//! statistics of norms and the log-probabilities. By arithmetic.

use super::optimizer::{State, Update};
use super::{Techniques, adamw};
use crate::tensor::Element;
use crate::{Error, Tensor, operations};
use memscope_client::Category;

/// The types of a training.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Precision {
    /// Everything in fp32
    #[default]
    Fp32,
    /// Matrix products in fp16, with a dynamic loss scale
    AmpFp16,
    /// Matrix products in bf16
    AmpBf16,
    /// Everything in bf16, with stochastic rounding of updates
    Bf16,
}

impl Precision {
    /// What weights, gradients and the residual stream are.
    pub(crate) fn stored(self) -> Element {
        match self {
            Precision::Bf16 => Element::Bf16,
            _ => Element::Fp32,
        }
    }

    /// What matrix products take and give.
    pub(crate) fn of_products(self) -> Element {
        match self {
            Precision::Fp32 => Element::Fp32,
            Precision::AmpFp16 => Element::Fp16,
            Precision::AmpBf16 | Precision::Bf16 => Element::Bf16,
        }
    }

    /// True where logits are cast to fp32 before the log-softmax, and their gradient back: PyTorch's log-softmax reads fp16 and
    /// gives fp32, and bf16 not.
    pub(crate) fn casts_logits(self) -> bool {
        self == Precision::AmpBf16
    }

    /// True where the two differ, and casts lie between them.
    pub(crate) fn is_mixed(self) -> bool {
        self.stored() != self.of_products()
    }
}

/// The flags of precision.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct PrecisionArguments {
    /// Types of weights, products and what is kept
    #[arg(long, value_name = "TYPES", value_enum, default_value_t)]
    pub precision: Precision,
    /// Make a gradient infinite in this step, to show how amp-fp16 skips it
    #[arg(long, value_name = "STEP")]
    pub inject_inf: Option<u64>,
}

/// Checks that the flags combine with the others.
pub(super) fn check(techniques: &Techniques) -> Result<(), Error> {
    let PrecisionArguments { precision, inject_inf } = techniques.types;
    let refused = |text: String| Err(Error::Arguments(text));
    if inject_inf.is_some() && precision != Precision::AmpFp16 {
        return refused("--inject-inf shows the loss scale of --precision amp-fp16; the others have none".to_owned());
    }
    if precision == Precision::AmpFp16 && techniques.gradients.optimizer_in_backward {
        return refused(
            "--precision amp-fp16 does not combine with --optimizer-in-backward: only all gradients together say whether the \
             step is skipped"
                .to_owned(),
        );
    }
    if precision == Precision::Bf16 && techniques.optimizer.foreach {
        return refused(
            "--precision bf16 does not combine with --foreach: its operations write what they compute in bf16, to the nearest, \
             where an update of less than half a step is lost; a fused update rounds once, stochastically"
                .to_owned(),
        );
    }
    Ok(())
}

/// The seed of a part's roundings that begins with element `first`: they are then those of the whole. Element i's are counter i's of
/// SplitMix64, which adds this constant for each.
pub(crate) fn seed_from(seed: u64, first: u64) -> u64 {
    seed.wrapping_add(first.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Updates a bf16 parameter, whose moments are bf16 and begin as 0.
pub(super) fn update(parameter: &mut Update<'_>, rate: f32, step: i32) -> Result<(), Error> {
    let by = adamw::numbers(rate, step, parameter.is_matrix());
    adamw::reach_moments(parameter)?;
    let seed = rounding_seed(parameter, step);
    let Some(State::Moments([first, second])) = parameter.state else { unreachable!("made above") };
    operations::adamw_bf16(parameter.weight, [first, second], parameter.gradient, &by, seed)
}

/// Updates a bf16 parameter by an update of fp32, on temporaries; the weight is rounded stochastically.
pub(super) fn in_fp32(
    parameter: &mut Update<'_>,
    step: i32,
    update: &mut dyn FnMut(&mut Update<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let seed = rounding_seed(parameter, step);
    let Update { name, shape, whole, group, weight, gradient, state, .. } = parameter;
    let widened = |what: &str, tensor: &Tensor| {
        let name = format!("{name}{what}");
        let exact = Tensor::floats(tensor.device(), Category::Workspace, &name, shape)?;
        operations::cast(&exact, tensor, false)?;
        Ok::<Tensor, Error>(exact)
    };
    let (exact_weight, exact_gradient) = (widened(".fp32", weight)?, widened(".grad.fp32", gradient)?);
    update(&mut Update {
        name,
        shape,
        whole: *whole,
        group: *group,
        weight: &exact_weight,
        gradient: &exact_gradient,
        seed,
        state,
    })?;
    drop(exact_gradient);
    operations::round_bf16(weight, &exact_weight, seed)
}

/// The rounding depends on the parameter's seed and the step.
fn rounding_seed(parameter: &Update<'_>, step: i32) -> u64 {
    parameter.seed.wrapping_add((step as u64) << 32)
}
