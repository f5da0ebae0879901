//! sgd, and AdamW in three kernels.

use crate::case::{Case, Expected, Random, Value, output, sum, wide};
use memscope_kernels::geometry::elementwise;

pub fn cases(random: &mut Random) -> Vec<Case> {
    [1, 100, 257, 40_001].into_iter().flat_map(|n| of_size(random, n)).collect()
}

fn of_size(random: &mut Random, n: usize) -> Vec<Case> {
    let mut cases = vec![sgd(random, n)];
    cases.extend(adamw(random, n));
    cases
}

fn updated(before: Vec<f32>, after: Vec<Expected>, roundings: f64) -> Value {
    Value::Output { before, after, roundings }
}

fn sgd(random: &mut Random, n: usize) -> Case {
    let (weight, gradient, rate) = (random.floats(n, 1.0), random.floats(n, 0.3), 0.03_f32);
    let pairs = wide(&weight).into_iter().zip(wide(&gradient));
    let after = pairs.map(|(w, g)| sum([w, -f64::from(rate) * g])).collect();
    let arguments = vec![updated(weight, after, 2.0), Value::Input(gradient), Value::U64(n as u64), Value::F32(rate)];
    Case::new("sgd", elementwise(n as u64), arguments)
}

fn adamw(random: &mut Random, n: usize) -> [Case; 3] {
    let launch = elementwise(n as u64);
    let (weight, gradient, first) = (random.floats(n, 1.0), random.floats(n, 0.1), random.floats(n, 0.1));
    let second: Vec<f32> = random.floats(n, 0.01).iter().map(|x| x.abs()).collect();
    let of = f64::from;
    let [rate, beta1, beta2, epsilon, decay, correction1, correction2] =
        [0.01_f32, 0.9, 0.999, 1e-8, 0.1, 0.271, 0.002_997];
    let size = || Value::U64(n as u64);

    let blended = |old: &[f32], beta: f32, new: &dyn Fn(f64) -> f64| -> Vec<Expected> {
        let pairs = wide(old).into_iter().zip(wide(&gradient));
        pairs.map(|(old, g)| sum([of(beta) * old, (1.0 - of(beta)) * new(g)])).collect()
    };
    let moments = vec![
        updated(first.clone(), blended(&first, beta1, &|g| g), 6.0),
        updated(second.clone(), blended(&second, beta2, &|g| g * g), 6.0),
        Value::Input(gradient.clone()),
        size(),
        Value::F32(beta1),
        Value::F32(beta2),
    ];
    let denominators: Vec<f64> = wide(&second).iter().map(|v| (v / of(correction2)).sqrt() + of(epsilon)).collect();
    let positive = |&value: &f64| Expected { value, magnitude: value };
    let denominator = vec![
        output(4.0, denominators.iter().map(positive).collect()),
        Value::Input(second),
        size(),
        Value::F32(epsilon),
        Value::F32(correction2),
    ];
    let divisors: Vec<f32> = denominators.iter().map(|&value| value as f32).collect();
    let mut after = Vec::new();
    for ((w, m), d) in wide(&weight).into_iter().zip(wide(&first)).zip(wide(&divisors)) {
        let (decayed, update) = (of(rate) * of(decay) * w, of(rate) * m / of(correction1) / d);
        after.push(sum([w, -decayed, -update]));
    }
    let apply = vec![
        updated(weight, after, 8.0),
        Value::Input(first),
        Value::Input(divisors),
        size(),
        Value::F32(rate),
        Value::F32(decay),
        Value::F32(correction1),
    ];
    [
        Case::new("adamw_moments", launch, moments),
        Case::new("adamw_denominator", launch, denominator),
        Case::new("adamw_apply", launch, apply),
    ]
}
