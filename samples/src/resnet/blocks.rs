//! The blocks one after another, forward and backward.
//!
//! Owns: what each block keeps for backward, and when it is computed again (techniques/checkpoint.rs). Refuses: what a block
//! computes.

use super::network::Network;
use super::pass::{Kept, Map, Pass, SavedBlock};
use super::{backward, forward};
use crate::gpt::{Parameter, scopes};
use crate::techniques::{Keeping, UnlikeChoice};
use crate::{Error, Tensor, operations};
use memscope_client as memscope;
use std::ops::Range;
use std::rc::Rc;

/// The output of the last block from the input of the first, and what the blocks keep.
pub(super) fn forward(pass: &Pass<'_>, network: &Network<Parameter>, input: Map) -> Result<(Map, Vec<Kept>), Error> {
    let count = network.blocks.len();
    let (mut map, mut kept) = (input, Vec::new());
    let Some(segments) = pass.plan.techniques.activations.checkpoint.segments(count as u64) else {
        for block in 0..count {
            let (output, saved) = one(pass, network, block, &map)?;
            map = output;
            kept.push(Kept::Block(Box::new(saved)));
        }
        return Ok((map, kept));
    };
    for blocks in segments {
        let input = map.clone();
        for block in blocks.clone() {
            // Of the last block nobody keeps the output: the pooling that reads it needs only its size in backward.
            let output = block + 1 == blocks.end && block + 1 < count;
            (map, _) = one(&pass.keeping(Keeping::Dropped { output }), network, block, &map)?;
        }
        kept.push(Kept::Segment { input, blocks });
    }
    Ok((map, kept))
}

/// The gradient of the first block's input from that of the last one's output.
pub(super) fn backward(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    grad: Tensor,
    kept: Vec<Kept>,
) -> Result<Tensor, Error> {
    let mut grad = grad;
    let mut next = network.blocks.len();
    for kept in kept.into_iter().rev() {
        match kept {
            Kept::Block(saved) => {
                next -= 1;
                grad = one_back(pass, network, next, grad, *saved)?;
            }
            Kept::Segment { input, blocks } => {
                next = blocks.start;
                let saved = again(pass, network, input, blocks.clone())?;
                for (block, saved) in blocks.zip(saved).rev() {
                    grad = one_back(pass, network, block, grad, saved)?;
                }
            }
        }
    }
    Ok(grad)
}

/// Computes a segment again, for what its blocks' backward reads. The running statistics have seen this batch and do not move.
fn again(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    input: Map,
    blocks: Range<usize>,
) -> Result<Vec<SavedBlock>, Error> {
    let _scope = memscope::scope("recompute");
    let pass = pass.keeping(Keeping::Again);
    let mut map = input;
    let mut kept = Vec::with_capacity(blocks.len());
    for block in blocks.clone() {
        let (output, saved) = one(&pass, network, block, &map)?;
        map = output;
        kept.push(saved);
    }
    // Autocast begins and ends with what is computed again.
    blocks.flat_map(|block| network.blocks[block].read()).for_each(Parameter::drop_unread_cast);
    Ok(kept)
}

/// What each block keeps and its input takes, in bytes, found by computing them one after the other, and the segments that keep
/// least. The running statistics do not move.
pub(super) fn choose_segments(pass: &Pass<'_>, network: &Network<Parameter>) -> Result<UnlikeChoice, Error> {
    let _scope = memscope::scope("checkpoint.auto");
    let pass = pass.keeping(Keeping::Again);
    let (channels, [height, width]) = (pass.plan.configuration.width, [pass.plan.side_of_blocks(); 2]);
    let input = pass.workspace("checkpoint.auto.input", &[pass.images(), channels, height, width])?;
    operations::fill(&input, 0.0)?;
    let mut map = Map { tensor: Rc::new(input), channels, height, width };
    let (mut kept, mut inputs) = (Vec::new(), Vec::new());
    for block in 0..network.blocks.len() {
        let (output, saved) = one(&pass, network, block, &map)?;
        inputs.push(map.tensor.size_in_bytes());
        kept.push(saved.size_in_bytes());
        map = output;
        network.blocks[block].read().into_iter().for_each(Parameter::drop_cast);
    }
    Ok(UnlikeChoice::new(&kept, &inputs))
}

fn one(pass: &Pass<'_>, network: &Network<Parameter>, block: usize, input: &Map) -> Result<(Map, SavedBlock), Error> {
    let block = &network.blocks[block];
    let _scopes = scopes::module(&block.name);
    pass.gather(block.read())?;
    let computed = forward::block(pass, block, input);
    pass.scatter(block.read());
    computed
}

fn one_back(
    pass: &Pass<'_>,
    network: &mut Network<Parameter>,
    block: usize,
    grad: Tensor,
    saved: SavedBlock,
) -> Result<Tensor, Error> {
    let block = &mut network.blocks[block];
    let _scopes = scopes::module(&block.name);
    pass.gather(block.read())?;
    let computed = backward::block(pass, block, grad, saved);
    pass.scatter(block.read());
    computed
}
