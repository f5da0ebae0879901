//! The host references on every case.

use crate::case::{Case, Random};
use crate::cases;
use memscope_kernels::{Arguments, KERNELS};
use std::collections::BTreeSet;

/// Runs a case on the host; its outputs in the order of the arguments.
pub fn run(case: &Case) -> Vec<Vec<f32>> {
    let (outputs, cells) = case.on_host();
    // SAFETY: every array is as long as the sizes among the arguments say; outputs are ours alone.
    unsafe { (case.kernel.host)(&case.launch, &Arguments::new(&cells)) };
    outputs
}

#[test]
fn every_host_reference_agrees_with_f64() {
    let cases = cases::all(&mut Random::from_environment());
    for case in &cases {
        case.check("host", &run(case));
    }
    let met: BTreeSet<&str> = cases.iter().map(|case| case.kernel.name).collect();
    let all: BTreeSet<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
    assert_eq!(met, all, "every kernel has a case");
}

#[test]
fn a_host_reference_gives_the_same_bits_each_time() {
    for case in &cases::all(&mut Random::from_environment()) {
        let bits = |outputs: Vec<Vec<f32>>| outputs.concat().iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(run(case)), bits(run(case)), "{}", case.kernel.name);
    }
}

/// Mean 0, variance 1 and the tails of a normal distribution, over a million values.
#[test]
fn first_values_are_normal() {
    const COUNT: usize = 1_000_000;
    let mut values = vec![f32::NAN; COUNT];
    let cells = [values.as_mut_ptr() as u64, COUNT as u64, 1.0_f32.to_bits().into(), 42];
    let kernel = KERNELS.iter().find(|kernel| kernel.name == "init_normal").expect("a kernel of the table");
    // SAFETY: the array is as long as the second cell says.
    unsafe { (kernel.host)(&memscope_kernels::geometry::elementwise(COUNT as u64), &Arguments::new(&cells)) };
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / COUNT as f64;
    let variance = values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / COUNT as f64;
    let beyond_two = values.iter().filter(|x| x.abs() > 2.0).count() as f64 / COUNT as f64;
    let neighbours = values.chunks(2).map(|pair| f64::from(pair[0] * pair[1])).sum::<f64>() / (COUNT / 2) as f64;
    // Five deviations of each estimate; P(|x| > 2) is 0.0455.
    assert!(mean.abs() < 5.0 / 1000.0, "{mean}");
    assert!((variance - 1.0).abs() < 5.0 * 2_f64.sqrt() / 1000.0, "{variance}");
    assert!((beyond_two - 0.0455).abs() < 5.0 * 0.000_209, "{beyond_two}");
    assert!(neighbours.abs() < 5.0 / (COUNT as f64 / 2.0).sqrt(), "{neighbours}");
}

/// Stochastic rounding arrives in the mean: of a million weights whose update is 0.3 of a bf16 step, 0.3 go up, where rounding
/// to the nearest would take none; and weight and moments go up independently of each other.
#[test]
fn stochastic_rounding_is_unbiased_and_repeats() {
    const COUNT: usize = 1_000_000;
    // With no memory and no corrections, m = g, v = g² and the weight moves by rate: from 1 to 1 + 0.3 steps of 2⁻⁷. The
    // moments begin at m = 1, v = 1 and take a share of (g - 1) and (g² - 1).
    let kernel = KERNELS.iter().find(|kernel| kernel.name == "adamw_bf16").expect("a kernel of the table");
    let one = 0x3f80_u16;
    let run = |seed: u64, gradient: u16, rate: f32, betas: [f32; 2]| {
        let mut updated = [vec![one; COUNT], vec![one; COUNT], vec![one; COUNT]];
        let gradients = vec![gradient; COUNT];
        let mut cells: Vec<u64> = updated.iter_mut().map(|array| array.as_mut_ptr() as u64).collect();
        cells.extend([gradients.as_ptr() as u64, COUNT as u64]);
        cells.extend([rate, betas[0], betas[1], 0.0, 0.0, 1.0, 1.0].map(|value| u64::from(value.to_bits())));
        cells.push(seed);
        // SAFETY: the arrays are as long as the fifth cell says.
        unsafe { (kernel.host)(&memscope_kernels::geometry::elementwise(COUNT as u64), &Arguments::new(&cells)) };
        updated
    };
    let near = |count: usize, share: f64, what: &str| {
        let deviation = (COUNT as f64 * share * (1.0 - share)).sqrt();
        let distance = (count as f64 - COUNT as f64 * share).abs();
        // Five deviations of the binomial distribution.
        assert!(distance <= 5.0 * deviation, "{what}: {count} of {COUNT}, not {share}");
    };
    let step = 2_f32.powi(-7);
    // g = -1: the weight goes from 1 to 1 + rate.
    let rate = 0.3 * step;
    let share = f64::from((1.0 + rate) - 1.0) / f64::from(step);
    let [weights, ..] = run(7, 0xbf80, rate, [0.0, 0.0]);
    assert!(weights.iter().all(|&weight| weight == one || weight == one + 1));
    near(weights.iter().filter(|&&weight| weight == one + 1).count(), share, "weights");
    assert_eq!(run(7, 0xbf80, rate, [0.0, 0.0])[0], weights, "the same seed");
    assert_ne!(run(8, 0xbf80, rate, [0.0, 0.0])[0], weights, "another seed");
    let neighbours = weights.windows(2).filter(|pair| pair[0] != one && pair[1] != one).count();
    // Neighbouring pairs overlap, which at most doubles the variance of their count: five deviations of this are ten of that.
    let share_of_pairs = share * share;
    let allowed = 10.0 * (COUNT as f64 * share_of_pairs).sqrt();
    assert!((neighbours as f64 - COUNT as f64 * share_of_pairs).abs() < allowed, "{neighbours} pairs");

    // g = 2: m goes from 1 to 1 + (1 - beta1), v from 1 to 1 + 3·(1 - beta2).
    let betas = [1.0 - 0.5 * step, 1.0 - 0.2 * step];
    let shares = [(1.0 - betas[0]) / step, 3.0 * (1.0 - betas[1]) / step].map(f64::from);
    let [_, first, second] = run(9, 0x4000, 0.0, betas);
    let up = |array: &[u16]| array.iter().filter(|&&moment| moment == one + 1).count();
    near(up(&first), shares[0], "first moments");
    near(up(&second), shares[1], "second moments");
    let both = first.iter().zip(&second).filter(|&(&m, &v)| m != one && v != one).count();
    near(both, shares[0] * shares[1], "both moments");
}

/// The same of numbers that are given: of a million 1 + 0.3 steps of 2⁻⁷, 0.3 go up, the same for the same seed.
#[test]
fn numbers_rounded_stochastically_arrive_in_the_mean() {
    const COUNT: usize = 1_000_000;
    let input = vec![1.0 + 0.3 * 2_f32.powi(-7); COUNT];
    let share = f64::from(input[0] - 1.0) * 128.0;
    let kernel = KERNELS.iter().find(|kernel| kernel.name == "round_bf16").expect("a kernel of the table");
    let run = |seed: u64| {
        let mut output = vec![0x7fff_u16; COUNT];
        let cells = [output.as_mut_ptr() as u64, input.as_ptr() as u64, COUNT as u64, seed];
        // SAFETY: the arrays are as long as the third cell says.
        unsafe { (kernel.host)(&memscope_kernels::geometry::elementwise(COUNT as u64), &Arguments::new(&cells)) };
        output
    };
    let rounded = run(3);
    let one = 0x3f80_u16;
    assert!(rounded.iter().all(|&bits| bits == one || bits == one + 1));
    let up = rounded.iter().filter(|&&bits| bits == one + 1).count() as f64;
    let deviation = (COUNT as f64 * share * (1.0 - share)).sqrt();
    assert!((up - COUNT as f64 * share).abs() <= 5.0 * deviation, "{up} of {COUNT}, not {share}");
    assert_eq!(run(3), rounded);
    assert_ne!(run(4), rounded);
}
