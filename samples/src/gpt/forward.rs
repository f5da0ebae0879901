//! The forward pass and the loss.
//!
//! Owns: the order of operations, and which results are kept (activations) and which are freed at once (workspace).
//! Refuses: to know what the kernels do.

use super::attention;
use super::layers;
use super::lora;
use super::model::Family;
use super::network::{Block, Linear, Network, Norm};
use super::parameter::Parameter;
use super::pass::{Inputs, Pass, Saved, SavedBlock, SavedMlp, SavedNorm, SavedTransform};
use crate::operations::{self, Matrix, Product};
use crate::techniques::Keeping;
use crate::{Error, Tensor};
use memscope_client as memscope;
use std::rc::Rc;

/// The logits (rows, vocabulary) of a batch, unless the loss computes them in chunks, and what backward needs.
pub(super) fn forward(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    inputs: &Inputs,
) -> Result<(Option<Tensor>, Saved), Error> {
    let family = pass.plan.configuration.family;
    let (stream, embedding_norm) = embed(pass, network, inputs)?;
    let (stream, layers) = layers::forward(pass, network, stream)?;
    let _scope = memscope::scope(head_name(family));
    pass.gather(network.read_by_head())?;
    let (decoder_input, final_norm, transform) = match &network.bert {
        None => {
            let (normal, saved) = norm(pass, &network.final_norm, stream, "transformer.ln_f")?;
            (normal, saved, None)
        }
        Some(bert) => {
            let shape = [pass.rows(), pass.width()];
            let name = "cls.predictions.transform";
            let stream = pass.kept_for_product(stream)?;
            let transformed = pass.product_activation(&format!("{name}.output"), &shape)?;
            linear(pass, &bert.transform, &stream, &transformed)?;
            let activated = activated(pass, &format!("{name}.gelu"), &transformed)?;
            let (normal, saved) = norm(pass, &network.final_norm, activated, "cls.predictions.norm")?;
            (normal, saved, Some(SavedTransform { input: stream, transformed }))
        }
    };
    let decoder_input = pass.kept_for_product(decoder_input)?;
    let logits = match pass.plan.techniques.activations.chunked_loss {
        None => {
            pass.gather(network.read_by_decoder())?;
            let logits = decode(pass, network, &decoder_input)?;
            pass.scatter(network.read_by_decoder());
            Some(logits)
        }
        Some(_) => None,
    };
    pass.scatter(network.read_by_head());
    Ok((logits, Saved { embedding_norm, layers, transform, final_norm, decoder_input }))
}

/// The name of the scope of everything after the blocks.
pub(super) fn head_name(family: Family) -> &'static str {
    match family {
        Family::Gpt2 => "lm_head",
        Family::Bert => "cls",
    }
}

/// The input of the first block (rows, width).
fn embed(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    inputs: &Inputs,
) -> Result<(Rc<Tensor>, Option<SavedNorm>), Error> {
    let _scope = memscope::scope("embeddings");
    pass.gather(network.read_by_embedding())?;
    let output = pass.activation("embeddings.output", &[pass.rows(), pass.width()])?;
    let token_types = network.bert.as_ref().map(|bert| bert.token_types.weight());
    operations::embedding_forward(
        &output,
        &inputs.tokens,
        network.tokens.weight(),
        network.positions.weight(),
        inputs.token_types.as_ref().zip(token_types),
        pass.plan.sequence,
    )?;
    let output = Rc::new(output);
    let embedded = match &network.bert {
        None => (output, None),
        Some(bert) => {
            // It may be the input of a segment that is computed again.
            let layers = network.layers() as u64;
            let is_input = pass.plan.techniques.activations.checkpoint.segments(layers).is_some();
            let (normal, saved) = norm_for(pass, is_input, &bert.embedding_norm, output, "embeddings.norm")?;
            (normal, Some(saved))
        }
    };
    pass.scatter(network.read_by_embedding());
    Ok(embedded)
}

/// GPT-2: x + attention(norm(x)), and the same with the MLP.
pub(super) fn block_with_norms_before(
    pass: &Pass<'_>,
    name: &str,
    block: &Block<Parameter>,
    input: &Rc<Tensor>,
) -> Result<(Rc<Tensor>, SavedBlock), Error> {
    let (normal, norm_1) = norm(pass, &block.norm_1, Rc::clone(input), &format!("{name}.ln_1"))?;
    let (attended, of_attention) = attention::forward(pass, name, block, normal)?;
    let middle = residual(pass, input, attended, &format!("{name}.attn.residual"))?;
    let (normal, norm_2) = norm(pass, &block.norm_2, Rc::clone(&middle), &format!("{name}.ln_2"))?;
    let (computed, mlp) = mlp(pass, name, block, normal)?;
    let output = residual(&pass.for_output(), &middle, computed, &format!("{name}.mlp.residual"))?;
    Ok((output, SavedBlock { norm_1, attention: of_attention, norm_2, mlp }))
}

/// BERT: norm(x + attention(x)), and the same with the MLP.
pub(super) fn block_with_norms_after(
    pass: &Pass<'_>,
    name: &str,
    block: &Block<Parameter>,
    input: &Rc<Tensor>,
) -> Result<(Rc<Tensor>, SavedBlock), Error> {
    let (attended, of_attention) = attention::forward(pass, name, block, Rc::clone(input))?;
    let sum = residual(pass, input, attended, &format!("{name}.attn.residual"))?;
    let (middle, norm_1) = norm(pass, &block.norm_1, sum, &format!("{name}.ln_1"))?;
    let (computed, mlp) = mlp(pass, name, block, Rc::clone(&middle))?;
    let sum = residual(pass, &middle, computed, &format!("{name}.mlp.residual"))?;
    let is_input = pass.keeping != Keeping::Kept && pass.for_output().keeping == Keeping::Kept;
    let (output, norm_2) = norm_for(pass, is_input, &block.norm_2, sum, &format!("{name}.ln_2"))?;
    Ok((output, SavedBlock { norm_1, attention: of_attention, norm_2, mlp }))
}

/// input + branch (rows, width); the branch is freed.
fn residual(pass: &Pass<'_>, input: &Tensor, branch: Tensor, name: &str) -> Result<Rc<Tensor>, Error> {
    let output = pass.activation(name, &[pass.rows(), pass.width()])?;
    operations::add(&output, input, &branch)?;
    Ok(Rc::new(output))
}

fn norm(
    pass: &Pass<'_>,
    norm: &Norm<Parameter>,
    input: Rc<Tensor>,
    name: &str,
) -> Result<(Rc<Tensor>, SavedNorm), Error> {
    norm_for(pass, false, norm, input, name)
}

/// The same, with an output that is kept as it is if `is_input`: products of a segment that is computed again have no cast of it
/// until then.
fn norm_for(
    pass: &Pass<'_>,
    is_input: bool,
    norm: &Norm<Parameter>,
    input: Rc<Tensor>,
    name: &str,
) -> Result<(Rc<Tensor>, SavedNorm), Error> {
    let _scope = memscope::scope(name.rsplit('.').next().unwrap_or(name));
    let (name_of_output, shape) = (format!("{name}.output"), [pass.rows(), pass.width()]);
    let output = match is_input {
        true => pass.keeping(Keeping::Kept).activation(&name_of_output, &shape)?,
        false => pass.before_product(&name_of_output, &shape)?,
    };
    let mean = pass.statistic(&format!("{name}.mean"), &[pass.rows()])?;
    let rstd = pass.statistic(&format!("{name}.rstd"), &[pass.rows()])?;
    operations::layernorm_forward(&output, [&mean, &rstd], &input, norm.weight.weight(), norm.bias.weight())?;
    Ok((Rc::new(output), SavedNorm { input, mean, rstd }))
}

/// output (rows, outputs) = input (rows, inputs) · weightᵀ + bias
pub(super) fn linear(
    pass: &Pass<'_>,
    linear: &Linear<Parameter>,
    input: &Tensor,
    output: &Tensor,
) -> Result<(), Error> {
    project(pass, &linear.weight, Some(&linear.bias), input, output)?;
    linear.adapter.as_ref().map_or(Ok(()), |adapter| lora::forward(pass, adapter, input, output))
}

fn project(
    pass: &Pass<'_>,
    parameter: &Parameter,
    bias: Option<&Parameter>,
    input: &Tensor,
    output: &Tensor,
) -> Result<(), Error> {
    let rows = pass.rows();
    let (inputs, outputs) = (input.elements() / rows, output.elements() / rows);
    let weight = pass.in_product(parameter)?;
    let bias = bias.map(|bias| pass.in_product(bias)).transpose()?;
    let (a, b) = (Matrix::new(input, rows, inputs), Matrix::new(&weight, outputs, inputs).transposed());
    operations::matmul(&Product { bias: bias.as_deref(), ..Product::new(output, a, b) })?;
    pass.keep_cast(parameter);
    Ok(())
}

/// The MLP's output before it is added to the residual stream, (rows, width), a temporary.
fn mlp(pass: &Pass<'_>, name: &str, block: &Block<Parameter>, input: Rc<Tensor>) -> Result<(Tensor, SavedMlp), Error> {
    let _scope = memscope::scope("mlp");
    let (rows, width) = (pass.rows(), pass.width());
    let input = pass.kept_for_product(input)?;
    let expanded = pass.product_activation(&format!("{name}.mlp.fc"), &[rows, 4 * width])?;
    linear(pass, &block.expand, &input, &expanded)?;
    let activated = pass.product_activation(&format!("{name}.mlp.gelu"), &[rows, 4 * width])?;
    operations::gelu_forward(&activated, &expanded)?;
    let output = pass.product_workspace(&format!("{name}.mlp.output"), &[rows, width])?;
    linear(pass, &block.contract, &activated, &output)?;
    Ok((output, SavedMlp { input, expanded, activated }))
}

/// GELU in the type of its input, as the norm after it reads it: kept by the norm, in the type of the residual stream.
fn activated(pass: &Pass<'_>, name: &str, input: &Tensor) -> Result<Rc<Tensor>, Error> {
    let shape = [pass.rows(), pass.width()];
    let kept = pass.activation(name, &shape)?;
    if kept.element() == input.element() {
        operations::gelu_forward(&kept, input)?;
    } else {
        let low = pass.product_workspace(&format!("{name}.low"), &shape)?;
        operations::gelu_forward(&low, input)?;
        operations::cast(&kept, &low, false)?;
    }
    Ok(Rc::new(kept))
}

/// The logits (rows, vocabulary), a temporary that lives until the loss has read it.
fn decode(pass: &Pass<'_>, network: &Network<Parameter>, input: &Tensor) -> Result<Tensor, Error> {
    let logits = pass.product_workspace("logits", &[pass.rows(), pass.plan.configuration.vocabulary])?;
    let weight = network.decoder.as_ref().unwrap_or(&network.tokens);
    let bias = network.bert.as_ref().map(|bert| &bert.decoder_bias);
    project(pass, weight, bias, input, &logits)?;
    Ok(logits)
}
