//! The backward pass, by hand.
//!
//! Owns: the order in which gradients are computed, and when a saved tensor is freed: as soon as nothing later in backward
//! reads it. Refuses: to know what the kernels do.
//!
//! A function takes the gradient of its output and what forward saved, both by value where it is the last to read them,
//! and gives the gradient of its input, a temporary. Gradients of parameters are written where they belong.

use super::attention;
use super::forward::head_name;
use super::layers;
use super::lora;
use super::loss;
use super::network::{Block, Linear, Network, Norm};
use super::parameter::Parameter;
use super::pass::{FromLoss, Inputs, Pass, Saved, SavedBlock, SavedMlp, SavedNorm, SavedTransform};
use crate::operations::{self, Matrix, Product};
use crate::{Error, Tensor};
use memscope_client as memscope;

/// Writes the gradient of the loss into every parameter.
pub(super) fn backward(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    inputs: &Inputs,
    saved: Saved,
    from_loss: FromLoss,
) -> Result<(), Error> {
    let family = pass.plan.configuration.family;
    let Saved { embedding_norm, layers: kept, transform, final_norm, decoder_input } = saved;
    let grad_normal = match from_loss {
        FromLoss::Gradient(grad_normal) => grad_normal,
        FromLoss::LogProbabilities(log_probabilities) => {
            let grad_logits = {
                let _scope = memscope::scope("loss");
                loss::backward(pass, log_probabilities, &inputs.targets, inputs.counted)?
            };
            let _scope = memscope::scope(head_name(family));
            pass.gather(network.read_by_decoder())?;
            let grad = decoder(pass, network, &decoder_input, grad_logits)?;
            pass.scatter(network.read_by_decoder());
            grad
        }
    };
    drop(decoder_input);
    let grad = {
        let _scope = memscope::scope(head_name(family));
        pass.gather(network.read_by_head())?;
        let grad = norm(pass, &mut network.final_norm, grad_normal, final_norm, "head.norm")?;
        let grad = match network.bert.as_mut().zip(transform) {
            None => grad,
            Some((bert, saved)) => bert_transform(pass, &mut bert.transform, grad, saved)?,
        };
        pass.scatter(network.read_by_head());
        grad
    };
    let grad = layers::backward(pass, network, grad, kept)?;
    embeddings(pass, network, inputs, grad, embedding_norm)
}

/// Through the decoder, whose weight may be the token embedding.
fn decoder(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    input: &Tensor,
    grad_logits: Tensor,
) -> Result<Tensor, Error> {
    let weight = network.decoder.as_mut().unwrap_or(&mut network.tokens);
    let bias = network.bert.as_mut().map(|bert| &mut bert.decoder_bias);
    let grad = project(pass, weight, bias, input, &grad_logits, "decoder.input.grad")?;
    drop(grad_logits);
    pass.in_stream(grad)
}

fn bert_transform(
    pass: &Pass<'_>,
    transform: &mut Linear<Parameter>,
    grad_activated: Tensor,
    saved: SavedTransform,
) -> Result<Tensor, Error> {
    let SavedTransform { input, transformed } = saved;
    let grad_activated = pass.gradient_for_product(&grad_activated)?.unwrap_or(grad_activated);
    let grad_transformed = pass.product_workspace("transform.output.grad", &[pass.rows(), pass.width()])?;
    operations::gelu_backward(&grad_transformed, &grad_activated, &transformed)?;
    drop((grad_activated, transformed));
    let grad = linear(pass, transform, &input, &grad_transformed, "transform.input.grad")?;
    drop(grad_transformed);
    pass.in_stream(grad)
}

pub(super) fn block_with_norms_before(
    pass: &Pass<'_>,
    name: &str,
    block: &mut Block<Parameter>,
    grad: Tensor,
    saved: SavedBlock,
) -> Result<Tensor, Error> {
    let SavedBlock { norm_1, attention: saved_attention, norm_2, mlp: saved_mlp } = saved;
    let grad_normal = mlp(pass, name, block, &grad, saved_mlp)?;
    let through_mlp = norm(pass, &mut block.norm_2, grad_normal, norm_2, &format!("{name}.ln_2"))?;
    let grad = sum(grad, through_mlp)?;
    let grad_normal = attention::backward(pass, name, block, &grad, saved_attention)?;
    let through_attention = norm(pass, &mut block.norm_1, grad_normal, norm_1, &format!("{name}.ln_1"))?;
    sum(grad, through_attention)
}

pub(super) fn block_with_norms_after(
    pass: &Pass<'_>,
    name: &str,
    block: &mut Block<Parameter>,
    grad: Tensor,
    saved: SavedBlock,
) -> Result<Tensor, Error> {
    let SavedBlock { norm_1, attention: saved_attention, norm_2, mlp: saved_mlp } = saved;
    let grad = norm(pass, &mut block.norm_2, grad, norm_2, &format!("{name}.ln_2"))?;
    let through_mlp = mlp(pass, name, block, &grad, saved_mlp)?;
    let grad = sum(grad, through_mlp)?;
    let grad = norm(pass, &mut block.norm_1, grad, norm_1, &format!("{name}.ln_1"))?;
    let through_attention = attention::backward(pass, name, block, &grad, saved_attention)?;
    sum(grad, through_attention)
}

/// a + b in a's memory; b is freed.
fn sum(a: Tensor, b: Tensor) -> Result<Tensor, Error> {
    operations::add(&a, &a, &b)?;
    Ok(a)
}

fn norm(
    pass: &Pass<'_>,
    norm: &mut Norm<Parameter>,
    grad_output: Tensor,
    saved: SavedNorm,
    name: &str,
) -> Result<Tensor, Error> {
    let _scope = memscope::scope(name.rsplit('.').next().unwrap_or(name));
    let SavedNorm { input, mean, rstd } = saved;
    let grad_input = pass.workspace(&format!("{name}.input.grad"), &[pass.rows(), pass.width()])?;
    let statistics = [&mean, &rstd];
    operations::layernorm_backward_input(&grad_input, &grad_output, &input, norm.weight.weight(), statistics)?;
    if norm.weight.is_frozen() {
        return Ok(grad_input);
    }
    let (grad_weight, accumulate) = norm.weight.reach_gradient()?;
    let (grad_bias, _) = norm.bias.reach_gradient()?;
    operations::layernorm_backward_parameters([grad_weight, grad_bias], &grad_output, &input, statistics, accumulate)?;
    pass.added(&mut norm.weight)?;
    pass.added(&mut norm.bias)?;
    Ok(grad_input)
}

/// The gradient of a fully connected layer's input (rows, inputs).
pub(super) fn linear(
    pass: &Pass<'_>,
    linear: &mut Linear<Parameter>,
    input: &Tensor,
    grad_output: &Tensor,
    name: &str,
) -> Result<Tensor, Error> {
    let grad_input = project(pass, &mut linear.weight, Some(&mut linear.bias), input, grad_output, name)?;
    if let Some(adapter) = &mut linear.adapter {
        lora::backward(pass, adapter, input, grad_output, &grad_input)?;
    }
    Ok(grad_input)
}

fn project(
    pass: &Pass<'_>,
    weight: &mut Parameter,
    bias: Option<&mut Parameter>,
    input: &Tensor,
    grad_output: &Tensor,
    name: &str,
) -> Result<Tensor, Error> {
    let rows = pass.rows();
    let (inputs, outputs) = (input.elements() / rows, grad_output.elements() / rows);
    let grad = Matrix::new(grad_output, rows, outputs);
    let grad_input = pass.product_workspace(name, &[rows, inputs])?;
    {
        let weight = pass.in_product(weight)?;
        operations::matmul(&Product::new(&grad_input, grad, Matrix::new(&weight, outputs, inputs)))?;
    }
    weight.release_cast();
    if !weight.is_frozen() {
        weight.in_gradient(pass.of_products(), &mut |grad_weight, accumulate| {
            let by_input = Product::new(grad_weight, grad.transposed(), Matrix::new(input, rows, inputs));
            operations::matmul(&Product { accumulate, ..by_input })
        })?;
        pass.added(weight)?;
    }
    if let Some(bias) = bias.filter(|bias| !bias.is_frozen()) {
        bias.in_gradient(pass.of_products(), &mut |grad_bias, accumulate| {
            operations::bias_backward(grad_bias, grad_output, accumulate)
        })?;
        pass.added(bias)?;
    }
    Ok(grad_input)
}

fn mlp(
    pass: &Pass<'_>,
    name: &str,
    block: &mut Block<Parameter>,
    grad_output: &Tensor,
    saved: SavedMlp,
) -> Result<Tensor, Error> {
    let _scope = memscope::scope("mlp");
    let SavedMlp { input, expanded, activated } = saved;
    let name = format!("{name}.mlp");
    let low = pass.gradient_for_product(grad_output)?;
    let grad_output = low.as_ref().unwrap_or(grad_output);
    let grad_activated = linear(pass, &mut block.contract, &activated, grad_output, &format!("{name}.gelu.grad"))?;
    drop((activated, low));
    let grad_expanded = pass.product_workspace(&format!("{name}.fc.grad"), &[pass.rows(), 4 * pass.width()])?;
    operations::gelu_backward(&grad_expanded, &grad_activated, &expanded)?;
    drop((grad_activated, expanded));
    let grad = linear(pass, &mut block.expand, &input, &grad_expanded, &format!("{name}.input.grad"))?;
    drop(grad_expanded);
    pass.in_stream(grad)
}

/// The gradients of the embedding tables, at the end.
fn embeddings(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    inputs: &Inputs,
    grad: Tensor,
    saved_norm: Option<SavedNorm>,
) -> Result<(), Error> {
    let _scope = memscope::scope("embeddings");
    let grad = match network.bert.as_mut().zip(saved_norm) {
        None => grad,
        Some((bert, saved)) => {
            pass.gather([&bert.embedding_norm.weight])?;
            let grad = norm(pass, &mut bert.embedding_norm, grad, saved, "embeddings.norm")?;
            pass.scatter([&bert.embedding_norm.weight]);
            grad
        }
    };
    table(pass, &mut network.tokens, &grad, &inputs.tokens)?;
    if let Some((bert, indices)) = network.bert.as_mut().zip(inputs.token_types.as_ref()) {
        table(pass, &mut bert.token_types, &grad, indices)?;
    }
    if network.positions.is_frozen() {
        return Ok(());
    }
    let (grad_positions, accumulate) = network.positions.reach_gradient()?;
    operations::embedding_backward_position(grad_positions, &grad, pass.rows(), pass.plan.sequence, accumulate)?;
    pass.added(&mut network.positions)
}

/// The gradient of one table. A tied token embedding has the decoder's gradient already, and this adds to it.
fn table(pass: &Pass<'_>, parameter: &mut Parameter, grad_output: &Tensor, indices: &Tensor) -> Result<(), Error> {
    if parameter.is_frozen() {
        return Ok(());
    }
    let (grad_table, accumulate) = parameter.reach_gradient()?;
    if !accumulate {
        operations::fill(grad_table, 0.0)?;
    }
    operations::embedding_backward_table(grad_table, grad_output, indices)?;
    pass.added(parameter)
}
