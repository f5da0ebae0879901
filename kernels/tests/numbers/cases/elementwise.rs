//! fill, init_normal, add, gelu, adamw, momentum.

use crate::case::{Case, Expected, Random, Value, exactly, output, sum, wide};
use memscope_kernels::geometry::elementwise;
use std::f64::consts::PI;

pub fn cases(random: &mut Random) -> Vec<Case> {
    // One, less than a block, one more than one, and more than one piece of the host's work.
    [1, 100, 257, 40_001].into_iter().flat_map(|n| of_size(random, n)).collect()
}

fn of_size(random: &mut Random, n: usize) -> Vec<Case> {
    let launch = elementwise(n as u64);
    let size = || Value::U64(n as u64);
    let mut cases = Vec::new();

    let value = random.floats(1, 10.0)[0];
    cases.push(Case::new("fill", launch, vec![output(0.0, vec![exactly(value); n]), size(), Value::F32(value)]));

    let (seed, deviation) = (u64::from(random.bits()) << 32 | u64::from(random.bits()), 0.02_f32);
    let normal: Vec<Expected> = (0..n as u64).map(|i| normal(seed, i, deviation.into())).collect();
    // The angle is rounded at 2π, which moves its cosine by up to 4 units; the rest are single roundings.
    let arguments = vec![output(16.0, normal), size(), Value::F32(deviation), Value::U64(seed)];
    cases.push(Case::new("init_normal", launch, arguments));

    let (a, b) = (random.floats(n, 3.0), random.floats(n, 3.0));
    let added: Vec<Expected> = a.iter().zip(&b).map(|(&a, &b)| sum([a.into(), b.into()])).collect();
    let arguments = vec![output(1.0, added.clone()), Value::Input(a.clone()), Value::Input(b.clone()), size()];
    cases.push(Case::new("add", launch, arguments));
    let in_place = Value::Output { before: a, after: added, roundings: 1.0 };
    cases.push(Case::new("add", launch, vec![in_place, Value::Same(0), Value::Input(b), size()]));

    let (x, dy) = (random.floats(n, 5.0), random.floats(n, 2.0));
    let forward = x.iter().map(|&x| Expected { value: gelu(x.into()), magnitude: f64::from(x).abs() }).collect();
    cases.push(Case::new("gelu_forward", launch, vec![output(16.0, forward), Value::Input(x.clone()), size()]));
    let backward = x.iter().zip(&dy).map(|(&x, &dy)| gelu_gradient(x.into(), dy.into())).collect();
    let arguments = vec![output(16.0, backward), Value::Input(dy), Value::Input(x), size()];
    cases.push(Case::new("gelu_backward", launch, arguments));

    cases.push(adamw(random, n));
    cases.push(momentum(random, n));
    cases
}

/// SplitMix64 by its published constants, then Box-Muller.
fn normal(seed: u64, i: u64, deviation: f64) -> Expected {
    let mut z = seed.wrapping_add((i / 2 + 1).wrapping_mul(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^= z >> 31;
    let first = ((z >> 40) + 1) as f64 / f64::from(1 << 24);
    let second = ((z >> 8) & 0xff_ffff) as f64 / f64::from(1 << 24);
    let radius = deviation * (-2.0 * first.ln()).sqrt();
    let angle = 2.0 * PI * second;
    Expected { value: radius * if i.is_multiple_of(2) { angle.cos() } else { angle.sin() }, magnitude: radius }
}

fn inner(x: f64) -> f64 {
    (2.0 / PI).sqrt() * (x + 0.044715 * x.powi(3))
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + inner(x).tanh())
}

/// By the product rule, with d tanh(u) = du / cosh²(u).
fn gelu_gradient(x: f64, dy: f64) -> Expected {
    let slope = (2.0 / PI).sqrt() * (1.0 + 3.0 * 0.044715 * x * x);
    let value = dy * (0.5 * (1.0 + inner(x).tanh()) + 0.5 * x * slope / inner(x).cosh().powi(2));
    // tanh² next to 1 loses everything but the rounding of tanh, which x · slope multiplies.
    Expected { value, magnitude: dy.abs() * (1.0 + x.abs() * slope) }
}

fn adamw(random: &mut Random, n: usize) -> Case {
    let (weight, gradient) = (random.floats(n, 1.0), random.floats(n, 0.1));
    let first = random.floats(n, 0.1);
    let second: Vec<f32> = random.floats(n, 0.01).iter().map(|x| x.abs()).collect();
    let [rate, beta1, beta2, epsilon, decay, correction1, correction2] =
        [0.01_f32, 0.9, 0.999, 1e-8, 0.1, 0.271, 0.002_997];
    let of = f64::from;
    let mut after = [Vec::new(), Vec::new(), Vec::new()];
    for (((w, m), v), g) in wide(&weight).into_iter().zip(wide(&first)).zip(wide(&second)).zip(wide(&gradient)) {
        let m = sum([of(beta1) * m, (1.0 - of(beta1)) * g]);
        let v = sum([of(beta2) * v, (1.0 - of(beta2)) * g * g]);
        let denominator = (v.value / of(correction2)).sqrt() + of(epsilon);
        let update = of(rate) * m.value / of(correction1) / denominator;
        let size_of_update = of(rate) * m.magnitude / of(correction1) / denominator;
        after[0].push(Expected {
            value: w - of(rate) * of(decay) * w - update,
            magnitude: w.abs() * (1.0 + of(rate) * of(decay)) + size_of_update,
        });
        after[1].push(m);
        after[2].push(v);
    }
    let [weight_after, first_after, second_after] = after;
    let updated = |before, after| Value::Output { before, after, roundings: 16.0 };
    let arguments = vec![
        updated(weight, weight_after),
        updated(first, first_after),
        updated(second, second_after),
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
    Case::new("adamw", elementwise(n as u64), arguments)
}

fn momentum(random: &mut Random, n: usize) -> Case {
    let (weight, velocity, gradient) = (random.floats(n, 1.0), random.floats(n, 0.3), random.floats(n, 0.1));
    let [rate, momentum, decay] = [0.1_f32, 0.9, 0.01];
    let of = f64::from;
    let (mut weight_after, mut velocity_after) = (Vec::new(), Vec::new());
    for ((w, v), g) in wide(&weight).into_iter().zip(wide(&velocity)).zip(wide(&gradient)) {
        let v = sum([of(momentum) * v, g, of(decay) * w]);
        let magnitude = w.abs() + of(rate) * v.magnitude;
        weight_after.push(Expected { value: w - of(rate) * v.value, magnitude });
        velocity_after.push(v);
    }
    let updated = |before, after| Value::Output { before, after, roundings: 8.0 };
    let mut arguments = vec![updated(weight, weight_after), updated(velocity, velocity_after), Value::Input(gradient)];
    arguments.push(Value::U64(n as u64));
    arguments.extend([rate, momentum, decay].map(Value::F32));
    Case::new("sgd_momentum", elementwise(n as u64), arguments)
}
