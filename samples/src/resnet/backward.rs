//! The backward pass, by hand.
//!
//! Owns: the order in which gradients are computed, and when a saved tensor is freed: as soon as nothing later in backward
//! reads it. Refuses: to know what the kernels do.
//!
//! A function takes the gradient of its output and what forward saved, both by value where it is the last to read them,
//! and gives the gradient of its input, a temporary. Gradients of parameters are written where they belong.

use super::blocks;
use super::forward::last_part;
use super::network::{Block, Linear, Network, Norm, Unit};
use super::pass::{Inputs, Pass, Saved, SavedBlock, SavedStem, SavedUnit};
use crate::gpt::Parameter;
use crate::operations::{self, BatchNorm, Matrix, Product};
use crate::{Error, Tensor};
use memscope_client as memscope;
use std::rc::Rc;

/// Writes the gradient of the loss into every parameter.
pub(super) fn backward(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    inputs: &Inputs,
    saved: Saved,
    log_probabilities: Tensor,
) -> Result<(), Error> {
    let Saved { stem: saved_stem, blocks: kept, features, positions } = saved;
    let grad_logits = loss(pass, inputs, log_probabilities)?;
    pass.gather(network.head.read())?;
    let grad_features = head(pass, &mut network.head, &features, &grad_logits)?;
    pass.scatter(network.head.read());
    drop((grad_logits, features));
    let grad = {
        let _scope = memscope::scope("avgpool");
        let grad = pass.workspace("avgpool.input.grad", &[grad_features.elements(), positions])?;
        operations::averagepool_backward(&grad, &grad_features)?;
        drop(grad_features);
        grad
    };
    let grad = blocks::backward(pass, network, grad, kept)?;
    pass.gather(network.stem.read())?;
    stem(pass, &mut network.stem, grad, saved_stem)?;
    pass.scatter(network.stem.read());
    Ok(())
}

/// The gradient of the logits (images, classes). As in PyTorch it takes two such temporaries: the log-probabilities' too.
fn loss(pass: &Pass<'_>, inputs: &Inputs, log_probabilities: Tensor) -> Result<Tensor, Error> {
    let _scope = memscope::scope("loss");
    let classes = pass.plan.configuration.classes;
    let shape = [pass.images(), classes];
    let grad_log_probabilities = pass.exact_workspace("loss.log_probabilities.grad", &shape)?;
    operations::nll_backward(&grad_log_probabilities, &inputs.targets, pass.loss_scale / pass.counted as f32)?;
    let casts = pass.plan.techniques.precision().casts_logits();
    let grad_logits = match casts {
        true => pass.exact_workspace("logits.cast.grad", &shape)?,
        false => pass.workspace("logits.grad", &shape)?,
    };
    operations::log_softmax_backward(&grad_logits, &grad_log_probabilities, &log_probabilities, classes)?;
    drop((grad_log_probabilities, log_probabilities));
    if !casts {
        return Ok(grad_logits);
    }
    let low = pass.workspace("logits.grad", &shape)?;
    operations::cast(&low, &grad_logits, false)?;
    Ok(low)
}

/// The gradient of the features (images, channels).
fn head(
    pass: &Pass<'_>,
    head: &mut Linear<Parameter>,
    features: &Tensor,
    grad_logits: &Tensor,
) -> Result<Tensor, Error> {
    let _scope = memscope::scope("fc");
    let (images, classes) = (pass.images(), pass.plan.configuration.classes);
    let inputs = features.elements() / images;
    let grad = Matrix::new(grad_logits, images, classes);
    let grad_features = pass.workspace("avgpool.output.grad", &[images, inputs])?;
    {
        let weight = head.weight.in_product(pass.maps())?;
        operations::matmul(&Product::new(&grad_features, grad, Matrix::new(&weight, classes, inputs)))?;
    }
    head.weight.release_cast();
    head.weight.in_gradient(pass.maps(), &mut |grad_weight, accumulate| {
        let by_features = Product::new(grad_weight, grad.transposed(), Matrix::new(features, images, inputs));
        operations::matmul(&Product { accumulate, ..by_features })
    })?;
    pass.added(&mut head.weight)?;
    head.bias.in_gradient(pass.maps(), &mut |grad_bias, accumulate| {
        operations::bias_backward(grad_bias, grad_logits, accumulate)
    })?;
    pass.added(&mut head.bias)?;
    Ok(grad_features)
}

pub(super) fn block(
    pass: &Pass<'_>,
    block: &mut Block<Parameter>,
    grad_output: Tensor,
    saved: SavedBlock,
) -> Result<Tensor, Error> {
    let SavedBlock { units, downsample, output } = saved;
    let mut grad = Rc::new(rectifier(pass, grad_output, output)?);
    // The sum hands its gradient to both of its terms: the skip connection first, which forward computed last.
    let skip = match block.downsample.as_mut().zip(downsample) {
        None => Rc::clone(&grad),
        Some((one, saved)) => {
            let _scope = memscope::scope("downsample");
            Rc::new(unit(pass, one, Rc::clone(&grad), saved)?)
        }
    };
    for (index, (one, saved)) in block.units.iter_mut().zip(units).enumerate().rev() {
        let input = Rc::clone(&saved.input);
        let grad_input = unit(pass, one, grad, saved)?;
        grad = match index {
            0 => Rc::new(grad_input),
            _ => Rc::new(rectifier(pass, grad_input, input)?),
        };
    }
    operations::add(&grad, &grad, &skip)?;
    Ok(Rc::into_inner(grad).expect("the gradient of the block's input has one owner"))
}

fn stem(pass: &Pass<'_>, one: &mut Unit<Parameter>, grad_output: Tensor, saved: SavedStem) -> Result<(), Error> {
    let SavedStem { unit: saved, rectified, windows, indices } = saved;
    let grad = {
        let _scope = memscope::scope("maxpool");
        let grad = pass.workspace("maxpool.input.grad", &[rectified.elements()])?;
        operations::maxpool_backward(&grad, &grad_output, &indices, &windows)?;
        drop((grad_output, indices));
        grad
    };
    let grad = rectifier(pass, grad, rectified)?;
    let (grad, input) = norm(pass, one, Rc::new(grad), saved)?;
    // Images need no gradient.
    let _scope = memscope::scope(last_part(&one.name));
    weight(pass, one, &grad, &input)
}

/// Through a ReLU, whose output says where its input was positive.
fn rectifier(pass: &Pass<'_>, grad_output: Tensor, output: Rc<Tensor>) -> Result<Tensor, Error> {
    let grad_input = pass.workspace(&format!("{}.input.grad", output.name()), &[output.elements()])?;
    operations::relu_backward(&grad_input, &grad_output, &output)?;
    Ok(grad_input)
}

/// Through a normalisation and the convolution before it.
fn unit(
    pass: &Pass<'_>,
    unit: &mut Unit<Parameter>,
    grad_output: Rc<Tensor>,
    saved: SavedUnit,
) -> Result<Tensor, Error> {
    let (grad, saved) = norm(pass, unit, grad_output, saved)?;
    let _scope = memscope::scope(last_part(&unit.name));
    let name = format!("{}.input.grad", unit.name);
    let grad_input = pass.workspace(&name, &[saved.input.elements()])?;
    {
        let weight = unit.convolution.weight.in_product(pass.maps())?;
        operations::convolution_backward_input(&grad_input, &grad, &weight, &saved.shape)?;
    }
    weight(pass, unit, &grad, &saved)?;
    Ok(grad_input)
}

/// What is left of a unit's saved tensors when its normalisation is done.
struct SavedConvolution {
    input: Rc<Tensor>,
    shape: operations::ConvolutionShape,
}

/// The gradient of the normalisation's input, and what the convolution before it saved.
fn norm(
    pass: &Pass<'_>,
    unit: &mut Unit<Parameter>,
    grad_output: Rc<Tensor>,
    saved: SavedUnit,
) -> Result<(Tensor, SavedConvolution), Error> {
    let _scope = memscope::scope(last_part(&unit.norm_name));
    let SavedUnit { input, shape, convolved, mean, rstd } = saved;
    let grad_input = pass.workspace(&format!("{}.input.grad", unit.norm_name), &[convolved.elements()])?;
    let Norm { weight, bias, .. } = &mut unit.norm;
    let (_, accumulate) = weight.reach_gradient()?;
    let (grad_bias, _) = bias.reach_gradient()?;
    let grad_weight = weight.gradient().expect("reached above");
    let norm = BatchNorm { weight: weight.weight(), mean: &mean, rstd: &rstd };
    let (gradients, images) = ([grad_weight, grad_bias], pass.images());
    operations::batchnorm_backward(&grad_input, gradients, &grad_output, &convolved, &norm, images, accumulate)?;
    pass.added(weight)?;
    pass.added(bias)?;
    Ok((grad_input, SavedConvolution { input, shape }))
}

/// The gradient of a convolution's weight, whose cast nothing reads any more.
fn weight(
    pass: &Pass<'_>,
    unit: &mut Unit<Parameter>,
    grad_output: &Tensor,
    saved: &SavedConvolution,
) -> Result<(), Error> {
    let weight = &mut unit.convolution.weight;
    weight.release_cast();
    weight.in_gradient(pass.maps(), &mut |grad_weight, accumulate| {
        operations::convolution_backward_weight(grad_weight, grad_output, &saved.input, &saved.shape, accumulate)
    })?;
    pass.added(weight)
}
