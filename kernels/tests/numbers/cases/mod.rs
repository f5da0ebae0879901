//! The cases, by theme.

mod adafactor;
mod attention;
mod batchnorm;
mod compress;
mod convolution;
mod eight_bit;
mod elementwise;
mod embedding;
mod flash_attention;
mod half;
mod layernorm;
mod loss;
mod matmul;
mod optimizers;
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
    cases.extend(flash_attention::cases(random));
    cases.extend(compress::cases(random));
    cases.extend(convolution::cases(random));
    cases.extend(batchnorm::cases(random));
    cases.extend(pooling::cases(random));
    cases.extend(optimizers::cases(random));
    cases.extend(adafactor::cases(random));
    cases.extend(eight_bit::cases(random));
    cases.extend(half::cases(random));
    cases
}
