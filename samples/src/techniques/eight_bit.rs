//! AdamW with 8-bit moments (Dettmers et al. 2022, block-wise dynamic quantisation).
//!
//! A moment of N elements is N codes of one byte, each naming a value of a dynamic map of 256, and one fp32 scale for each
//! block of 256: the block's largest absolute value. A step dequantises, updates in fp32 and quantises, in one kernel.
//! Tensors of fewer than 4096 elements keep fp32 moments, as the paper's library does; embedding tables do so there too,
//! and here with `--embedding-states fp32`.
//!
//! Optimizer bytes: Σ 2·(N + 4·⌈N/256⌉) over tensors of N ≥ 4096 elements, 2.031 a parameter instead of 8; and Σ 8·N over
//! the others. By arithmetic.

use super::adamw;
use super::optimizer::{EmbeddingStates, State, Update};
use crate::{Error, Tensor, operations};
use memscope_client::Category;

/// Elements with one scale.
const BLOCK: u64 = 256;
/// Smallest tensor whose moments are quantised.
const SMALLEST: u64 = 4096;

/// Both moments of a parameter, quantised.
pub(crate) struct States {
    /// One byte an element.
    pub codes: [Tensor; 2],
    /// One float a block.
    pub absmax: [Tensor; 2],
}

/// Updates a parameter; which moments it has depends on its size and name.
pub(super) fn update(
    parameter: &mut Update<'_>,
    rate: f32,
    step: i32,
    embeddings: EmbeddingStates,
) -> Result<(), Error> {
    let small = parameter.whole < SMALLEST;
    if small || embeddings == EmbeddingStates::Fp32 && is_embedding(parameter.name) {
        return adamw::update(parameter, rate, step);
    }
    let by = adamw::numbers(rate, step, parameter.is_matrix());
    let Update { name, weight, gradient, state, .. } = parameter;
    if state.is_none() {
        **state = Some(State::EightBit(States::zeros(name, weight)?));
    }
    let Some(State::EightBit(states)) = state else { unreachable!("a parameter keeps its size and name") };
    operations::adamw8bit(weight, states, gradient, &by)
}

impl States {
    /// Moments of 0: where the scale is 0, every code is.
    fn zeros(name: &str, weight: &Tensor) -> Result<States, Error> {
        let (device, elements) = (weight.device(), weight.elements());
        let codes = |moment: &str| Tensor::bytes(device, Category::Optimizer, &format!("{name}.{moment}"), elements);
        let absmax = |moment: &str| {
            let name = format!("{name}.{moment}.absmax");
            let tensor = Tensor::floats(device, Category::Optimizer, &name, &[elements.div_ceil(BLOCK)])?;
            operations::fill(&tensor, 0.0)?;
            Ok::<Tensor, Error>(tensor)
        };
        let (first, second) = ("exp_avg", "exp_avg_sq");
        Ok(States { codes: [codes(first)?, codes(second)?], absmax: [absmax(first)?, absmax(second)?] })
    }
}

/// Elements of a tensor that ranks leave together when they share it out: with whole blocks, states are those of one rank.
pub(super) fn unit(elements: u64) -> u64 {
    if elements < SMALLEST { 1 } else { BLOCK }
}

/// True for the tables of tokens, positions and token types.
fn is_embedding(name: &str) -> bool {
    ["wte.weight", "wpe.weight", "token_types.weight"].iter().any(|table| name.ends_with(table))
}
