//! The blocks one after another, forward and backward.
//!
//! Owns: what each layer keeps for backward, and when it is computed again (techniques/checkpoint.rs). Refuses: what a block
//! computes.

use super::model::Family;
use super::network::Network;
use super::parameter::Parameter;
use super::pass::{Kept, Pass, SavedBlock};
use super::scopes;
use super::{backward, compressed, forward};
use crate::techniques::{Choice, Compression, Keeping};
use crate::{Error, Tensor, operations};
use memscope_client as memscope;
use std::rc::Rc;

/// The output of the last layer (rows, width) from the input of the first, and what the layers keep.
pub(super) fn forward(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    input: Rc<Tensor>,
) -> Result<(Rc<Tensor>, Vec<Kept>), Error> {
    let layers = network.layers();
    let mut stream = input;
    let mut kept = Vec::new();
    let Some(segments) = pass.plan.techniques.activations.checkpoint.segments(layers as u64) else {
        for layer in 0..layers {
            let (output, of_layer) = match pass.plan.techniques.activations.compress_activations {
                None => {
                    let (output, saved) = one(pass, network, layer, &stream)?;
                    (output, Kept::Layer(Box::new(saved)))
                }
                Some(Compression::Int8) => {
                    let pass = pass.keeping(Keeping::Compressed { output: layer + 1 == layers });
                    let (output, saved) = one(&pass, network, layer, &stream)?;
                    // The first input is freed with its copy in 8 bits, as the others are.
                    drop(std::mem::replace(&mut stream, Rc::clone(&output)));
                    let _scopes = scopes::module(network.layer(layer).0);
                    (output, Kept::Compressed(Box::new(compressed::compress(&pass, saved)?)))
                }
            };
            stream = output;
            kept.push(of_layer);
        }
        return Ok((stream, kept));
    };
    for layers in segments {
        let input = Rc::clone(&stream);
        for layer in layers.clone() {
            let output = layer + 1 == layers.end;
            (stream, _) = one(&pass.keeping(Keeping::Dropped { output }), network, layer, &stream)?;
        }
        kept.push(Kept::Segment { input, layers });
    }
    Ok((stream, kept))
}

/// The gradient of the first layer's input from that of the last one's output.
pub(super) fn backward(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    grad: Tensor,
    kept: Vec<Kept>,
) -> Result<Tensor, Error> {
    let mut grad = grad;
    let mut next = network.layers();
    for kept in kept.into_iter().rev() {
        match kept {
            Kept::Layer(saved) => {
                next -= 1;
                grad = one_back(pass, network, next, grad, *saved)?;
            }
            Kept::Compressed(saved) => {
                next -= 1;
                let saved = {
                    let _scopes = scopes::module(network.layer(next).0);
                    compressed::restore(pass, *saved)?
                };
                grad = one_back(pass, network, next, grad, saved)?;
            }
            Kept::Segment { input, layers } => {
                next = layers.start;
                let saved = again(pass, network, input, layers.clone())?;
                for (layer, saved) in layers.zip(saved).rev() {
                    grad = one_back(pass, network, layer, grad, saved)?;
                }
            }
        }
    }
    Ok(grad)
}

/// Computes a segment again, for what its layers' backward reads. As in PyTorch, its output too, which nothing reads.
fn again(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    input: Rc<Tensor>,
    layers: std::ops::Range<usize>,
) -> Result<Vec<SavedBlock>, Error> {
    let _scope = memscope::scope("recompute");
    let pass = pass.keeping(Keeping::Again);
    let mut stream = input;
    let mut kept = Vec::with_capacity(layers.len());
    for layer in layers.clone() {
        let (output, saved) = one(&pass, network, layer, &stream)?;
        stream = output;
        kept.push(saved);
    }
    // Autocast begins and ends with what is computed again.
    layers.flat_map(|layer| network.layer(layer).1.read()).for_each(Parameter::drop_unread_cast);
    Ok(kept)
}

/// What a layer keeps and its input take, in bytes, found by computing one, and the segments that keep least.
pub(super) fn choose_segments(pass: &Pass<'_>, network: &Network<Parameter>) -> Result<Choice, Error> {
    let _scope = memscope::scope("checkpoint.auto");
    let input = pass.workspace("checkpoint.auto.input", &[pass.rows(), pass.width()])?;
    operations::fill(&input, 0.0)?;
    let input = Rc::new(input);
    let (_, saved) = one(pass, network, 0, &input)?;
    Ok(Choice::new(network.layers() as u64, saved.size_in_bytes(), input.size_in_bytes()))
}

fn one(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    layer: usize,
    input: &Rc<Tensor>,
) -> Result<(Rc<Tensor>, SavedBlock), Error> {
    let (name, block) = network.layer(layer);
    let _scopes = scopes::module(name);
    pass.gather(block.read())?;
    let computed = match pass.plan.configuration.family {
        Family::Gpt2 => forward::block_with_norms_before(pass, name, block, input),
        Family::Bert => forward::block_with_norms_after(pass, name, block, input),
    };
    pass.scatter(block.read());
    computed
}

fn one_back(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    layer: usize,
    grad: Tensor,
    saved: SavedBlock,
) -> Result<Tensor, Error> {
    let (name, block) = network.layer_mut(layer);
    let _scopes = scopes::module(name);
    pass.gather(block.read())?;
    let computed = match pass.plan.configuration.family {
        Family::Gpt2 => backward::block_with_norms_before(pass, name, block, grad, saved),
        Family::Bert => backward::block_with_norms_after(pass, name, block, grad, saved),
    };
    pass.scatter(block.read());
    computed
}
