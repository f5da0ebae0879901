//! Sums and maxima over slices, in an order that vector units can keep: sixteen partial results, joined at the end.
//!
//! Owns: that order, which is the same on every machine and more precise than one running sum. Refuses: to know what is
//! summed.

/// Partial results: the widest vector of x86-64.
const LANES: usize = 16;

/// Σ of f(a).
#[inline(always)]
pub(super) fn sum(a: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let (groups, rest) = a.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for group in groups {
        for lane in 0..LANES {
            sums[lane] += f(group[lane]);
        }
    }
    for (sum, &a) in sums.iter_mut().zip(rest) {
        *sum += f(a);
    }
    sums.iter().sum()
}

/// Σ of f(a, b) over two slices of one length.
#[inline(always)]
pub(super) fn sum_of_pairs(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let ((groups_a, rest_a), (groups_b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in groups_a.iter().zip(groups_b) {
        for lane in 0..LANES {
            sums[lane] += f(a[lane], b[lane]);
        }
    }
    for ((sum, &a), &b) in sums.iter_mut().zip(rest_a).zip(rest_b) {
        *sum += f(a, b);
    }
    sums.iter().sum()
}

/// The largest value, NaN passed over; -∞ of none.
#[inline(always)]
pub(super) fn largest(a: &[f32]) -> f32 {
    // A comparison, and not max, which vector units have only with another treatment of NaN.
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (groups, rest) = a.as_chunks::<LANES>();
    let mut largest = [f32::NEG_INFINITY; LANES];
    for group in groups {
        for lane in 0..LANES {
            largest[lane] = larger(largest[lane], group[lane]);
        }
    }
    largest.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every length around whole groups, so that no element is left out or counted twice.
    #[test]
    fn every_element_counts_once() {
        for length in 0..70 {
            let a: Vec<f32> = (1..=length).map(|value| value as f32).collect();
            let b: Vec<f32> = a.iter().map(|a| 3.0 - a).collect();
            let triangle = (length * (length + 1) / 2) as f32;
            assert_eq!(sum(&a, |a| 2.0 * a), 2.0 * triangle);
            assert_eq!(sum_of_pairs(&a, &b, |a, b| a + b), 3.0 * length as f32);
            for position in 0..length as usize {
                let mut low = vec![-7.0; length as usize];
                low[position] = -2.0;
                assert_eq!(largest(&low), -2.0);
            }
        }
        assert_eq!(largest(&[]), f32::NEG_INFINITY);
        assert_eq!(largest(&[f32::NAN, 1.0, f32::NAN]), 1.0);
    }
}
