//! AdamW with 8-bit states.
//!
//! The state that is quantised is known up to its rounding d, and a code is right when it is the nearest to some value
//! within d of the exact one: codes ascend with values, so these are a range, nearly always of one code.

use crate::case::{Case, Expected, Random, Value, sum, wide};
use memscope_kernels::geometry::elementwise;
use std::ops::RangeInclusive;

/// Elements with one scale.
const BLOCK: usize = 256;

pub fn cases(random: &mut Random) -> Vec<Case> {
    // Sizes with a block that is not full; states of zeros, as before the first step; gradients of zeros.
    let mut cases: Vec<Case> = [1, 100, 256, 257, 4099].into_iter().map(|n| adamw8bit(random, n, 1.0, 0.1)).collect();
    cases.push(adamw8bit(random, 515, 0.0, 0.1));
    cases.push(adamw8bit(random, 515, 0.0, 0.0));
    cases
}

/// The map by its definition: averages of neighbours in evenly spaced points.
fn map(signed: bool) -> Vec<f64> {
    let mut values = vec![0.0, 1.0];
    for i in 0..7 {
        let intervals = if signed { 1 << i } else { 2 << i };
        let points: Vec<f64> = (0..=intervals).map(|j| 0.1 + 0.9 * f64::from(j) / f64::from(intervals)).collect();
        for pair in points.windows(2) {
            let value = (pair[0] + pair[1]) / 2.0 * 10_f64.powi(i - 6);
            values.extend(if signed { vec![value, -value] } else { vec![value] });
        }
    }
    values.sort_by(f64::total_cmp);
    assert_eq!(values.len(), 256);
    values
}

/// The code of the value that is nearest to `x`, by trying all.
fn nearest(map: &[f64], x: f64) -> u8 {
    let distance = |code: &usize| (map[*code] - x).abs();
    (0..256).min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("a map has values") as u8
}

/// A state of `n` elements: codes, scales, and what they stand for.
struct State {
    codes: Vec<u8>,
    absmax: Vec<f32>,
    values: Vec<f64>,
}

fn state(random: &mut Random, map: &[f64], n: usize, scale: f32) -> State {
    let codes: Vec<u8> = (0..n).map(|_| random.bits() as u8).collect();
    let absmax: Vec<f32> = random.floats(n.div_ceil(BLOCK), scale).iter().map(|x| x.abs()).collect();
    let values = codes.iter().enumerate().map(|(i, &code)| map[usize::from(code)] * f64::from(absmax[i / BLOCK]));
    State { values: values.collect(), codes, absmax }
}

/// Roundings of a state before it is quantised, of its largest, and of their quotient, with that of the map's value.
const ROUNDINGS: f64 = 10.0;

/// What a state must be after the update: the ranges of its codes, and its scales.
fn quantised(map: &[f64], values: &[Expected]) -> (Vec<RangeInclusive<u8>>, Vec<Expected>) {
    let (mut codes, mut absmax) = (Vec::new(), Vec::new());
    for block in values.chunks(BLOCK) {
        let largest = block.iter().map(|state| state.value.abs()).fold(0.0, f64::max);
        let magnitude = block.iter().map(|state| state.magnitude).fold(0.0, f64::max);
        for state in block {
            // Any of the block's values may have been taken for its largest, if rounding made it so.
            let doubt = ROUNDINGS / 16_777_216.0 * (state.magnitude / largest + magnitude / largest);
            codes.push(match largest > 0.0 {
                true => nearest(map, state.value / largest - doubt)..=nearest(map, state.value / largest + doubt),
                false => nearest(map, 0.0)..=nearest(map, 0.0),
            });
        }
        absmax.push(Expected { value: largest, magnitude });
    }
    (codes, absmax)
}

fn adamw8bit(random: &mut Random, n: usize, of_states: f32, of_gradients: f32) -> Case {
    let (signed, unsigned) = (map(true), map(false));
    let first = state(random, &signed, n, 0.1 * of_states);
    let second = state(random, &unsigned, n, 0.01 * of_states);
    let (weight, gradient) = (random.floats(n, 1.0), random.floats(n, of_gradients));
    let [rate, beta1, beta2, epsilon, decay, correction1, correction2] =
        [0.01_f32, 0.9, 0.999, 1e-8, 0.1, 0.271, 0.002_997];
    let of = f64::from;
    let (mut weights, mut firsts, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (w, g)) in wide(&weight).into_iter().zip(wide(&gradient)).enumerate() {
        let m = sum([of(beta1) * first.values[i], (1.0 - of(beta1)) * g]);
        let v = sum([of(beta2) * second.values[i], (1.0 - of(beta2)) * g * g]);
        let denominator = (v.value / of(correction2)).sqrt() + of(epsilon);
        let factor = of(rate) / of(correction1) / denominator;
        weights.push(Expected {
            value: w - of(rate) * of(decay) * w - factor * m.value,
            magnitude: w.abs() * (1.0 + of(rate) * of(decay)) + factor * m.magnitude,
        });
        firsts.push(m);
        seconds.push(v);
    }
    let (first_codes, first_absmax) = quantised(&signed, &firsts);
    let (second_codes, second_absmax) = quantised(&unsigned, &seconds);
    let updated = |before, after| Value::Output { before, after, roundings: 20.0 };
    let arguments = vec![
        updated(weight, weights),
        Value::Codes { before: first.codes, after: first_codes },
        Value::Codes { before: second.codes, after: second_codes },
        updated(first.absmax, first_absmax),
        updated(second.absmax, second_absmax),
        Value::Input(gradient),
        Value::U64(n as u64),
        Value::F32(rate),
        Value::F32(beta1),
        Value::F32(beta2),
        Value::F32(epsilon),
        Value::F32(decay),
        Value::F32(correction1),
        Value::F32(correction2),
    ];
    Case::new("adamw8bit", elementwise(n as u64), arguments)
}
