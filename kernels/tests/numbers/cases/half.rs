//! Kernels of 16-bit elements: the cases of their fp32 siblings, on inputs that 16 bits hold exactly, with the one rounding of
//! the format on top; conversions with every special number; AdamW with stochastic rounding; loss scaling.

use crate::case::{Case, Expected, Random, Rounded, Value, exactly, sum, wide};
use crate::cases::{
    attention, batchnorm, compress, convolution, elementwise, embedding, flash_attention, layernorm, loss, matmul,
    pooling,
};
use crate::kind::Kind;
use memscope_kernels::geometry;

pub fn cases(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [Kind::Fp16, Kind::Bf16] {
        random.kind = Some(kind);
        let mut siblings = elementwise::cases(random);
        siblings.extend(matmul::cases(random));
        siblings.extend(attention::cases(random));
        siblings.extend(layernorm::cases(random));
        siblings.extend(embedding::cases(random));
        siblings.extend(loss::cases(random));
        siblings.extend(flash_attention::cases(random));
        siblings.extend(compress::cases(random));
        siblings.extend(convolution::cases(random));
        siblings.extend(batchnorm::cases(random));
        siblings.extend(pooling::cases(random));
        random.kind = None;
        cases.extend(siblings.iter().flat_map(|case| of_16_bits(case, kind)));
        cases.extend(casts(random, kind));
    }
    for elements in [1, 257, 40_001] {
        cases.push(adamw(random, elements));
        cases.push(round(random, elements));
        cases.push(unscale(random, elements, None));
        for found in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            cases.push(unscale(random, elements, Some(found)));
        }
    }
    cases
}

/// The sibling's case for 16-bit elements; for a kernel with several kinds, also with fp32 where that may be.
fn of_16_bits(case: &Case, kind: Kind) -> Vec<Case> {
    let all = |indices: &[usize], trailing: usize| {
        let kinds: Vec<(usize, Kind)> = indices.iter().map(|&index| (index, kind)).collect();
        vec![halved(case, &kinds, &vec![kind; trailing])]
    };
    match case.kernel.name {
        "fill" => all(&[0], 1),
        "add" => {
            let mut two = all(&[0, 1, 2], 2);
            two.push(halved(case, &[(2, kind)], &[Kind::Fp32, kind]));
            two
        }
        "gelu_forward" => all(&[0, 1], 1),
        "gelu_backward" => all(&[0, 1, 2], 1),
        "matmul" => all(&[0, 1, 2, 3], 1),
        "bias_backward" => all(&[0, 1], 1),
        "split_qkv" | "split_qkv_backward" => all(&[0, 1, 2, 3], 0),
        "merge_heads" | "merge_heads_backward" => all(&[0, 1], 0),
        "softmax_forward" => {
            let mut two = all(&[0, 1], 2);
            two.push(halved(case, &[(1, kind)], &[Kind::Fp32, kind]));
            two
        }
        "softmax_backward" => {
            let mut two = all(&[0, 1, 2], 2);
            two.push(halved(case, &[(0, kind)], &[kind, Kind::Fp32]));
            two
        }
        "layernorm_forward" => all(&[0, 3, 4, 5], 1),
        "layernorm_backward_input" => all(&[0, 1, 2, 3], 1),
        "layernorm_backward_parameters" => all(&[0, 1, 2, 3], 1),
        "embedding_forward" => all(&[0, 2, 3, 5], 1),
        "embedding_backward_table" | "embedding_backward_position" => all(&[0, 1], 1),
        "flash_forward" => all(&[0, 2, 3, 4], 1),
        "flash_inner" => all(&[1, 2], 1),
        "flash_backward_queries" => all(&[0, 1, 2, 3, 4], 1),
        "flash_backward_keys" => all(&[0, 1, 2, 3, 4, 5], 1),
        "compress" => all(&[2], 1),
        "decompress" => all(&[0], 1),
        "log_softmax_forward" => all(&[1], 1),
        "log_softmax_backward" => all(&[0], 1),
        "convolution_forward" | "convolution_backward_input" | "convolution_backward_weight" => all(&[0, 1, 2], 1),
        "batchnorm_forward" => {
            let mut two = all(&[0, 5, 6, 7], 2);
            two.push(halved(case, &[(0, kind), (5, kind)], &[kind, Kind::Fp32]));
            two
        }
        "batchnorm_backward" => {
            let mut two = all(&[0, 1, 2, 3, 4, 5], 2);
            two.push(halved(case, &[(0, kind), (3, kind), (4, kind)], &[kind, Kind::Fp32]));
            two
        }
        "relu_forward" => all(&[0, 1], 1),
        "relu_backward" => all(&[0, 1, 2], 1),
        "maxpool_forward" => all(&[0, 2], 1),
        "maxpool_backward" | "averagepool_forward" | "averagepool_backward" => all(&[0, 1], 1),
        _ => Vec::new(),
    }
}

/// The case of half_… with these arguments of 16 bits, and these kinds as its last parameters.
fn halved(case: &Case, kinds: &[(usize, Kind)], trailing: &[Kind]) -> Case {
    let mut arguments = case.arguments.clone();
    for &(index, kind) in kinds {
        let halves = |values: &[f32]| -> Vec<u16> {
            // Poison stays poison.
            let half = |&value: &f32| if value.is_nan() { 0x7fff } else { kind.bits(value.into()) };
            values.iter().map(half).collect()
        };
        arguments[index] = match &arguments[index] {
            Value::Input(values) => Value::Halves(halves(values)),
            Value::Output { before, after, roundings } => Value::HalvesOutput {
                before: halves(before),
                after: after.clone(),
                roundings: *roundings,
                rounded: Rounded::Nearest(kind),
            },
            other => other.clone(),
        };
    }
    arguments.extend(trailing.iter().map(|kind| Value::U32(kind.code())));
    Case::new(&format!("half_{}", case.kernel.name), case.launch, arguments)
}

/// Numbers around every border of the formats: zeros, subnormal numbers, ties, overflow, infinities, and random bits.
fn specials(random: &mut Random) -> Vec<f32> {
    let mut values = vec![0.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX, 1e-45, 65_504.0, 65_520.0];
    for exponent in [-149, -134, -133, -126, -25, -24, -15, -14, -1, 0, 15, 16, 127] {
        for share in [1.0, 1.0 + 2_f64.powi(-11), 1.0 + 3.0 * 2_f64.powi(-11), 1.0 + 2_f64.powi(-8), 1.5] {
            values.push((share * 2_f64.powi(exponent)) as f32);
        }
    }
    let beside = |value: f32, step: i32| f32::from_bits(value.to_bits().wrapping_add_signed(step));
    let near: Vec<f32> = values.iter().flat_map(|&value| [beside(value, 1), beside(value, -1)]).collect();
    values.extend(near);
    values.extend(values.clone().iter().map(|value| -value));
    // Of all exponents, and of those that fp16 has.
    values.extend((0..20_000).map(|_| f32::from_bits(random.bits())));
    values.extend((0..20_000).map(|_| f32::from_bits((random.bits() & 0x8fff_ffff) + (96 << 23))));
    values
}

fn casts(random: &mut Random, kind: Kind) -> Vec<Case> {
    let values = specials(random);
    let size = Value::U64(values.len() as u64);
    let launch = geometry::elementwise(values.len() as u64);
    let narrow = Value::HalvesOutput {
        before: vec![0x7fff; values.len()],
        after: values.iter().map(|&value| exactly(value)).collect(),
        roundings: 0.0,
        rounded: Rounded::Nearest(kind),
    };
    let kinds = |output: Kind, input: Kind, accumulate| [output.code(), input.code(), accumulate].map(Value::U32);
    let mut arguments = vec![narrow, Value::Input(values), size];
    arguments.extend(kinds(kind, Kind::Fp32, 0));
    let mut cases = vec![Case::new("cast", launch, arguments)];

    // Every number that there is; no fp32 output can be compared with NaN.
    let every: Vec<u16> = (0..=u16::MAX).filter(|&bits| kind.wide(bits).is_finite()).collect();
    let launch = geometry::elementwise(every.len() as u64);
    let exact = every.iter().map(|&bits| exactly(kind.wide(bits) as f32)).collect();
    let widened = Value::Output { before: vec![f32::NAN; every.len()], after: exact, roundings: 0.0 };
    let mut arguments = vec![widened, Value::Halves(every.clone()), Value::U64(every.len() as u64)];
    arguments.extend(kinds(Kind::Fp32, kind, 0));
    cases.push(Case::new("cast", launch, arguments));

    let before = random.floats(every.len(), 2.0);
    let after = before.iter().zip(&every).map(|(&before, &bits)| sum([before.into(), kind.wide(bits)])).collect();
    let mut arguments = vec![Value::Output { before, after, roundings: 1.0 }, Value::Halves(every.clone())];
    arguments.push(Value::U64(every.len() as u64));
    arguments.extend(kinds(Kind::Fp32, kind, 1));
    cases.push(Case::new("cast", launch, arguments));
    cases
}

/// The fp32 update in f64; each result is one of the two bf16 numbers around it.
fn adamw(random: &mut Random, n: usize) -> Case {
    random.kind = Some(Kind::Bf16);
    let (weight, gradient, first) = (random.floats(n, 1.0), random.floats(n, 0.1), random.floats(n, 0.1));
    let second: Vec<f32> = random.floats(n, 0.01).iter().map(|x| x.abs()).collect();
    random.kind = None;
    let [rate, beta1, beta2, epsilon, decay, correction1, correction2] =
        [0.01_f32, 0.9, 0.999, 1e-8, 0.1, 0.271, 0.002_997];
    let of = f64::from;
    let mut after = [Vec::new(), Vec::new(), Vec::new()];
    for (((w, m), v), g) in wide(&weight).into_iter().zip(wide(&first)).zip(wide(&second)).zip(wide(&gradient)) {
        let m = sum([of(beta1) * m, (1.0 - of(beta1)) * g]);
        let v = sum([of(beta2) * v, (1.0 - of(beta2)) * g * g]);
        let denominator = (v.value / of(correction2)).sqrt() + of(epsilon);
        let of_moment = of(rate) / of(correction1) / denominator;
        after[0].push(Expected {
            value: w - of(rate) * of(decay) * w - of_moment * m.value,
            magnitude: w.abs() * (1.0 + of(rate) * of(decay)) + of_moment * m.magnitude,
        });
        after[1].push(m);
        after[2].push(v);
    }
    let halves = |values: &[f32]| values.iter().map(|&value| Kind::Bf16.bits(value.into())).collect::<Vec<u16>>();
    let rounded = Rounded::Stochastically(Kind::Bf16);
    let before = [halves(&weight), halves(&first), halves(&second)];
    let updated = before.into_iter().zip(after);
    let mut arguments: Vec<Value> =
        updated.map(|(before, after)| Value::HalvesOutput { before, after, roundings: 16.0, rounded }).collect();
    arguments.extend([Value::Halves(halves(&gradient)), Value::U64(n as u64)]);
    arguments.extend([rate, beta1, beta2, epsilon, decay, correction1, correction2].map(Value::F32));
    arguments.push(Value::U64(u64::from(random.bits())));
    Case::new("adamw_bf16", geometry::elementwise(n as u64), arguments)
}

/// Each number is one of the two bf16 numbers around it.
fn round(random: &mut Random, n: usize) -> Case {
    let input = random.floats(n, 3.0);
    let after = input.iter().map(|&x| Expected { value: x.into(), magnitude: x.abs().into() }).collect();
    let rounded = Rounded::Stochastically(Kind::Bf16);
    let output = Value::HalvesOutput { before: vec![0x7fff; n], after, roundings: 0.0, rounded };
    let seed = Value::U64(u64::from(random.bits()));
    let arguments = vec![output, Value::Input(input), Value::U64(n as u64), seed];
    Case::new("round_bf16", geometry::elementwise(n as u64), arguments)
}

/// Gradients of which the last is `found`, if that is given: then the flag goes up. It does not go down.
fn unscale(random: &mut Random, n: usize, found: Option<f32>) -> Case {
    let mut before = random.floats(n, 65_536.0);
    let factor = 1.0 / 65_536.0_f32;
    // A power of two: the product is exact, but that of what is not finite.
    let mut after: Vec<Expected> = before.iter().map(|&value| exactly(value * factor)).collect();
    if let Some(found) = found {
        before[n - 1] = found;
        after[n - 1] = exactly(found);
    }
    let flag = if found.is_some() { 1.0 } else { 0.0 };
    let arguments = vec![
        Value::Output { before, after, roundings: 1.0 },
        Value::Output { before: vec![0.0], after: vec![exactly(flag)], roundings: 0.0 },
        Value::U64(n as u64),
        Value::F32(factor),
    ];
    Case::new("unscale", geometry::elementwise(n as u64), arguments)
}
