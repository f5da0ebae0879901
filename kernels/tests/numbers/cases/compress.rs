//! Floats in 8 bits, and back.
//!
//! A code is right when it is the rounding of some number near 127 · x / absmax: the quotient and the product round once each,
//! by 2⁻²⁴ of at most 127.

use crate::case::{Case, Expected, Random, Value, exactly, output, wide};
use memscope_kernels::geometry::elementwise;

/// Elements with one scale.
const BLOCK: usize = 256;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    // Blocks that are not full; scales that differ from block to block; zeros.
    for (elements, scale) in [(1, 1.0), (255, 3.0), (256, 1e-6), (257, 1.0), (4099, 100.0), (300, 0.0)] {
        cases.extend(both(random, elements, scale));
    }
    cases
}

fn both(random: &mut Random, elements: usize, scale: f32) -> [Case; 2] {
    let mut input = random.floats(elements, scale);
    input.iter_mut().skip(BLOCK).for_each(|x| *x *= 7.0);
    let input = random.of_kind(input);
    let (mut codes, mut absmaxes) = (Vec::new(), Vec::new());
    for block in wide(&input).chunks(BLOCK) {
        let absmax = block.iter().fold(0.0, |absmax: f64, x| absmax.max(x.abs()));
        for x in block {
            let share = if absmax > 0.0 { 127.0 * x / absmax } else { 0.0 };
            let doubt = 2.0 * 127.0 / 16_777_216.0;
            codes.push((128.0 + (share - doubt).round()) as u8..=(128.0 + (share + doubt).round()) as u8);
        }
        absmaxes.push(exactly(absmax as f32));
    }
    let launch = elementwise(elements as u64);
    let arguments = vec![
        Value::Codes { before: vec![255; elements], after: codes },
        output(0.0, absmaxes),
        Value::Input(input),
        Value::U64(elements as u64),
    ];
    let compress = Case::new("compress", launch, arguments);

    let codes: Vec<u8> = (0..elements).map(|_| (random.bits() % 255 + 1) as u8).collect();
    // In fp32 whatever the kind of the floats.
    let kind = random.kind.take();
    let absmaxes: Vec<f32> = random.floats(elements.div_ceil(BLOCK), scale).iter().map(|x| x.abs()).collect();
    random.kind = kind;
    let value = |(i, &code): (usize, &u8)| (f64::from(code) - 128.0) / 127.0 * f64::from(absmaxes[i / BLOCK]);
    let after = codes.iter().enumerate().map(value).map(|value| Expected { value, magnitude: value.abs() });
    // The inverse of 127, and two products.
    let arguments = vec![
        output(4.0, after.collect()),
        Value::Codes { before: codes.clone(), after: codes.iter().map(|&code| code..=code).collect() },
        Value::Input(absmaxes),
        Value::U64(elements as u64),
    ];
    [compress, Case::new("decompress", launch, arguments)]
}
