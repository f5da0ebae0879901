//! e^x and the logistic function in steps that a compiler turns into vector code, which the C library's are not.
//!
//! Owns: their precision, which the tests state. Refuses: to be the last word in precision.

/// ln 2 in two parts: 355/512, whose product with a small whole number is exact, and the rest.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;
/// 1.5 · 2²³: a small number added to it is rounded to a whole one, which then stands in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;
/// Beyond these e^x is infinite, or 0.
const RANGE: [f32; 2] = [-104.0, 89.0];

/// e^x, within two units in the last place; NaN of NaN.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Comparisons, and not clamp, which vector units have only with another treatment of NaN.
    let x = if x < RANGE[0] { RANGE[0] } else { x };
    let x = if x > RANGE[1] { RANGE[1] } else { x };
    // x = n · ln 2 + r with |r| ≤ ln 2 / 2.
    let rounded = x * std::f32::consts::LOG2_E + ROUNDER;
    let n = rounded - ROUNDER;
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    // Taylor's series: what it leaves out is below r⁸/8!, a twelfth of a unit.
    let series = 1.0 / 720.0 + r * (1.0 / 5040.0);
    let series = 1.0 / 24.0 + r * (1.0 / 120.0 + r * series);
    let series = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * series)));
    // 2ⁿ in two factors, since n may lie outside the exponents of normal numbers.
    let n = (rounded.to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32);
    let half = n >> 1;
    series * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// 2ⁿ for n of a normal number.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// 1 / (1 + e^-x), which is (1 + tanh(x/2)) / 2.
#[inline(always)]
pub(super) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units of the last place of the true value.
    fn units(found: f32, truth: f64) -> f64 {
        let magnitude = truth.abs().max(f64::from(f32::MIN_POSITIVE)) as f32;
        (f64::from(found) - truth).abs() / f64::from(f32::from_bits(magnitude.to_bits() + 1) - magnitude)
    }

    #[test]
    fn e_to_the_x_is_within_two_units() {
        // Every 997th float from -103 to 88.7, both signs.
        for sign in [0, 1_u32 << 31] {
            let most = if sign == 0 { 88.7_f32 } else { 103.0 };
            for bits in (0..=most.to_bits()).step_by(997) {
                let x = f32::from_bits(bits | sign);
                let apart = units(exp(x), f64::from(x).exp());
                assert!(apart <= 2.0, "exp({x}) = {} is {apart} units away", exp(x));
            }
        }
    }

    #[test]
    fn the_ends_are_as_they_should_be() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-200.0), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(89.0), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan() && exp(-f32::NAN).is_nan());
        assert!(exp(-103.0) > 0.0, "a denormal number");
        assert_eq!([logistic(f32::INFINITY), logistic(0.0), logistic(f32::NEG_INFINITY)], [1.0, 0.5, 0.0]);
    }

    #[test]
    fn the_logistic_function_keeps_its_relative_precision() {
        for step in -8000..8000 {
            let x = step as f32 / 100.0;
            let apart = units(logistic(x), 1.0 / (1.0 + f64::from(-x).exp()));
            assert!(apart <= 4.0, "logistic({x}) = {} is {apart} units away", logistic(x));
        }
    }
}
