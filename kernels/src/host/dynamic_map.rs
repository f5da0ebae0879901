//! The dynamic maps of 8-bit optimizer states, computed from their definition (cu/dynamic_map.cuh).

use std::sync::LazyLock;

/// A map: 256 ascending values from -1 or 0 to 1.
pub type Map = [f32; 256];

/// The map of states with a sign: the first moment.
pub static SIGNED: LazyLock<Map> = LazyLock::new(|| map(0, &[1.0, -1.0]));

/// The map of states without one: the second moment.
pub static UNSIGNED: LazyLock<Map> = LazyLock::new(|| map(1, &[1.0]));

/// For each power of ten, 2^(i + `finer`) midpoints with each of the signs; 0 and 1.
fn map(finer: u32, signs: &[f64]) -> Map {
    let mut values = vec![0.0, 1.0];
    for i in 0..7 {
        let midpoints = 1 << (i + finer);
        for midpoint in 0..midpoints {
            let fraction = 0.1 + 0.9 * (f64::from(midpoint) + 0.5) / f64::from(midpoints);
            values.extend(signs.iter().map(|sign| (sign * fraction / 10_f64.powi(6 - i as i32)) as f32));
        }
    }
    values.sort_by(f32::total_cmp);
    values.try_into().expect("7 powers of ten make 254 values")
}

/// The code of the value of `map` that is nearest to `x`; of two that are as near, the smaller.
pub fn nearest_code(map: &Map, x: f32) -> u8 {
    let code = map.partition_point(|&value| value <= x).saturating_sub(1);
    match map.get(code + 1) {
        Some(next) if next - x < x - map[code] => code as u8 + 1,
        _ => code as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: one midpoint of [0.1, 1] is 0.55; two are 0.325 and 0.775; of 64, the last is 1 - 0.9 / 128, and of 128 it
    /// is 1 - 0.9 / 256.
    #[test]
    fn values_are_those_of_the_definition() {
        assert_eq!((SIGNED[127], SIGNED[128], SIGNED[126]), (0.0, 5.5e-7, -5.5e-7));
        assert_eq!((SIGNED[129], SIGNED[130]), (3.25e-6, 7.75e-6));
        assert_eq!(
            (SIGNED[0], SIGNED[254], SIGNED[255]),
            ((0.9 / 128.0 - 1.0_f64) as f32, (1.0 - 0.9 / 128.0_f64) as f32, 1.0)
        );
        assert_eq!((UNSIGNED[0], UNSIGNED[1], UNSIGNED[2]), (0.0, 3.25e-7, 7.75e-7));
        assert_eq!(UNSIGNED[3..7], [2.125e-6, 4.375e-6, 6.625e-6, 8.875e-6]);
        assert_eq!((UNSIGNED[254], UNSIGNED[255]), ((1.0 - 0.9 / 256.0_f64) as f32, 1.0));
        for map in [&SIGNED, &UNSIGNED] {
            assert!(map.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    /// The kernel's tables are literals; a digit that is wrong in one is found here.
    #[test]
    fn the_kernels_tables_are_the_same_numbers() {
        let source = include_str!("../../cu/dynamic_map.cuh");
        for (name, map) in [("signed_map", &SIGNED), ("unsigned_map", &UNSIGNED)] {
            let (_, rest) = source.split_once(&format!("const float {name}[256] = {{")).expect("the table");
            let (table, _) = rest.split_once('}').expect("its end");
            let numbers = table.split(',').map(str::trim).filter(|number| !number.is_empty());
            let numbers: Vec<f32> =
                numbers.map(|number| number.trim_end_matches('f').parse().expect("a number")).collect();
            assert_eq!(numbers, **map, "{name}");
        }
    }

    #[test]
    fn the_nearest_is_found_by_trying_all() {
        let mut x = -1.2_f32;
        while x < 1.2 {
            for map in [&*SIGNED, &*UNSIGNED] {
                let distance = |code: u8| (map[usize::from(code)] - x).abs();
                let found = distance(nearest_code(map, x));
                assert!((0..=255).all(|code| found <= distance(code)), "{x}");
            }
            x += 0.000_37;
        }
        assert_eq!((nearest_code(&SIGNED, 0.0), nearest_code(&UNSIGNED, 0.0)), (127, 0));
        assert_eq!((nearest_code(&SIGNED, 2.0), nearest_code(&SIGNED, -2.0)), (255, 0));
    }
}
