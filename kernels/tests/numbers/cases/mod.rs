//! The cases, by theme.

mod attention;
mod batchnorm;
mod convolution;
mod elementwise;
mod embedding;
mod layernorm;
mod loss;
mod matmul;
mod pooling;

use crate::case::{Case, Random};

/// Every case, with inputs from `random`.
pub fn all(random: &mut Random) -> Vec<Case> {
    let mut cases = elementwise::cases(random);
    cases.extend(embedding::cases(random));
    cases.extend(layernorm::cases(random));
    cases.extend(matmul::cases(random));
    cases.extend(attention::cases(random));
    cases.extend(loss::cases(random));
    cases.extend(convolution::cases(random));
    cases.extend(batchnorm::cases(random));
    cases.extend(pooling::cases(random));
    cases
}
