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
