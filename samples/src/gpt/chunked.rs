//! The decoder and the loss chunk by chunk (techniques/chunked_loss.rs).
//!
//! Owns: what exists for a chunk only. Refuses: the rest of the head.

use super::autocast::write_in;
use super::loss;
use super::network::Network;
use super::parameter::Parameter;
use super::pass::{Inputs, Pass};
use crate::operations::{self, Matrix, Product};
use crate::techniques::Keeping;
use crate::{Error, Tensor};
use memscope_client as memscope;

/// Rows of the batch that go together.
struct Chunk {
    first: u64,
    rows: u64,
}

/// The loss (1) of a batch from the decoder's input (rows, width).
pub(super) fn loss(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    input: &Tensor,
    inputs: &Inputs,
) -> Result<Tensor, Error> {
    let _scope = memscope::scope("loss");
    let loss = nothing(pass)?;
    pass.gather(network.read_by_decoder())?;
    for chunk in chunks(pass) {
        of_chunk(pass, network, input, inputs, &loss, &chunk)?;
    }
    pass.scatter(network.read_by_decoder());
    Ok(loss)
}

/// The loss (1), and the gradient of the decoder's input (rows, width). Those of its weight and bias are added where they
/// belong.
pub(super) fn loss_and_gradients(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    input: &Tensor,
    inputs: &Inputs,
) -> Result<[Tensor; 2], Error> {
    let _scope = memscope::scope("loss");
    let loss = nothing(pass)?;
    let grad_input = pass.workspace("decoder.input.grad", &[pass.rows(), pass.width()])?;
    pass.gather(network.read_by_decoder())?;
    for (index, chunk) in chunks(pass).enumerate() {
        let log_probabilities = of_chunk(pass, network, input, inputs, &loss, &chunk)?;
        let targets = inputs.targets.part(chunk.first, chunk.rows);
        let grad_logits = loss::backward(pass, log_probabilities, &targets, inputs.counted)?;
        through_decoder(pass, network, [&grad_input, input], &grad_logits, &chunk, index == 0)?;
    }
    pass.scatter(network.read_by_decoder());
    pass.added(network.decoder.as_mut().unwrap_or(&mut network.tokens))?;
    if let Some(bert) = &mut network.bert {
        pass.added(&mut bert.decoder_bias)?;
    }
    Ok([loss, grad_input])
}

fn nothing(pass: &Pass<'_>) -> Result<Tensor, Error> {
    let loss = pass.exact_workspace("loss", &[1])?;
    operations::fill(&loss, 0.0)?;
    Ok(loss)
}

fn chunks(pass: &Pass<'_>) -> impl Iterator<Item = Chunk> + use<> {
    let all = pass.rows();
    let together = all.div_ceil(pass.plan.techniques.activations.chunked_loss.unwrap_or(1));
    (0..all).step_by(together as usize).map(move |first| Chunk { first, rows: together.min(all - first) })
}

/// Adds a chunk's loss; its log-probabilities (rows of the chunk, vocabulary), a temporary.
fn of_chunk(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    input: &Tensor,
    inputs: &Inputs,
    loss: &Tensor,
    &Chunk { first, rows }: &Chunk,
) -> Result<Tensor, Error> {
    let (width, vocabulary) = (pass.width(), pass.plan.configuration.vocabulary);
    let input = input.part(first * width, rows * width);
    let logits = pass.product_workspace("logits", &[rows, vocabulary])?;
    {
        let weight = pass.in_product(network.decoder.as_ref().unwrap_or(&network.tokens))?;
        let bias = network.bert.as_ref().map(|bert| pass.in_product(&bert.decoder_bias)).transpose()?;
        let (a, b) = (Matrix::new(&input, rows, width), Matrix::new(&weight, vocabulary, width).transposed());
        operations::matmul(&Product { bias: bias.as_deref(), ..Product::new(&logits, a, b) })?;
    }
    let pass = pass.keeping(Keeping::Dropped { output: false });
    let targets = inputs.targets.part(first, rows);
    let [of_chunk, log_probabilities] = loss::forward(&pass, "loss.chunk", logits, &targets, inputs.counted)?;
    operations::add(loss, loss, &of_chunk)?;
    Ok(log_probabilities)
}

/// The gradient of a chunk's input, written where it belongs, and those of weight and bias, added.
fn through_decoder(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    [grad_input, input]: [&Tensor; 2],
    grad_logits: &Tensor,
    &Chunk { first, rows }: &Chunk,
    is_first: bool,
) -> Result<(), Error> {
    let (width, vocabulary) = (pass.width(), pass.plan.configuration.vocabulary);
    let range = (first * width, rows * width);
    let (grad_input, input) = (grad_input.part(range.0, range.1), input.part(range.0, range.1));
    let weight = network.decoder.as_mut().unwrap_or(&mut network.tokens);
    let grad = Matrix::new(grad_logits, rows, vocabulary);
    write_in(pass.of_products(), (&grad_input, false), &mut |grad_input, _| {
        let weight = pass.in_product(weight)?;
        operations::matmul(&Product::new(grad_input, grad, Matrix::new(&weight, vocabulary, width)))
    })?;
    if weight.is_frozen() {
        return Ok(());
    }
    weight.in_gradient_of_part(is_first, pass.of_products(), &mut |grad_weight, accumulate| {
        let by_input = Product::new(grad_weight, grad.transposed(), Matrix::new(&input, rows, width));
        operations::matmul(&Product { accumulate, ..by_input })
    })?;
    if let Some(bert) = &mut network.bert {
        bert.decoder_bias.in_gradient_of_part(is_first, pass.of_products(), &mut |grad_bias, accumulate| {
            operations::bias_backward(grad_bias, grad_logits, accumulate)
        })?;
    }
    Ok(())
}
