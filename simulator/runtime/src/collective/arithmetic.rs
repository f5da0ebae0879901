//! What a collective gives a rank, of what the ranks put in.
//!
//! Owns: the reductions of the numbers that NCCL knows, and which bytes of whose contribution land where. Refuses: numbers of
//! 8 bits with a point, and operations that the program made: their sums are unknown.

/// `ncclDataType_t`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind(pub i32);

/// `ncclRedOp_t`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation(pub i32);

const SUM: i32 = 0;
const PRODUCT: i32 = 1;
const GREATEST: i32 = 2;
const LEAST: i32 = 3;
const AVERAGE: i32 = 4;

impl Kind {
    /// Bytes of an element; `None` for a number that is no type.
    pub fn bytes(self) -> Option<usize> {
        [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1].get(usize::try_from(self.0).ok()?).copied()
    }
}

macro_rules! reduce_as {
    ($number:ty, $wide:ty, $parts:ident, $operation:ident, $from:expr, $to:expr, $sum:expr, $product:expr) => {{
        const BYTES: usize = size_of::<$number>();
        let ranks = $parts.len();
        let elements = $parts[0].len() / BYTES;
        let mut result = Vec::with_capacity(elements * BYTES);
        for index in 0..elements {
            let at = |part: &[u8]| -> $wide {
                let mut bytes = [0; BYTES];
                bytes.copy_from_slice(&part[index * BYTES..][..BYTES]);
                $from(<$number>::from_ne_bytes(bytes))
            };
            let mut value = at($parts[0]);
            for part in &$parts[1..] {
                let other = at(part);
                value = match $operation.0 {
                    SUM | AVERAGE => $sum(value, other),
                    PRODUCT => $product(value, other),
                    GREATEST if other > value => other,
                    LEAST if other < value => other,
                    // Of the greatest and the least: what there was.
                    _ => value,
                };
            }
            if $operation.0 == AVERAGE {
                value /= ranks as $wide;
            }
            let number: $number = $to(value);
            result.extend_from_slice(&number.to_ne_bytes());
        }
        Some(result)
    }};
}

macro_rules! integers {
    ($number:ty, $parts:ident, $operation:ident) => {
        reduce_as!(
            $number,
            $number,
            $parts,
            $operation,
            std::convert::identity,
            std::convert::identity,
            <$number>::wrapping_add,
            <$number>::wrapping_mul
        )
    };
}

macro_rules! floats {
    ($number:ty, $wide:ty, $parts:ident, $operation:ident, $from:expr, $to:expr) => {
        reduce_as!($number, $wide, $parts, $operation, $from, $to, |a: $wide, b: $wide| a + b, |a: $wide, b: $wide| a
            * b)
    };
}

/// Element by element, the parts of all ranks; `None` where that is not known, and if their lengths differ.
pub fn reduce(parts: &[&[u8]], kind: Kind, operation: Operation) -> Option<Vec<u8>> {
    let first = parts.first()?;
    if parts.iter().any(|part| part.len() != first.len()) || !(SUM..=AVERAGE).contains(&operation.0) {
        return None;
    }
    match kind.0 {
        0 => integers!(i8, parts, operation),
        1 => integers!(u8, parts, operation),
        2 => integers!(i32, parts, operation),
        3 => integers!(u32, parts, operation),
        4 => integers!(i64, parts, operation),
        5 => integers!(u64, parts, operation),
        6 => floats!(u16, f32, parts, operation, half_to_single, single_to_half),
        7 => floats!(f32, f32, parts, operation, std::convert::identity, std::convert::identity),
        8 => floats!(f64, f64, parts, operation, std::convert::identity, std::convert::identity),
        9 => floats!(u16, f32, parts, operation, brain_to_single, single_to_brain),
        _ => None,
    }
}

fn brain_to_single(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// To the nearest, of two equally near ones to the even one.
fn single_to_brain(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

fn half_to_single(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    }
}

/// To the nearest, of two equally near ones to the even one.
fn single_to_half(value: f32) -> u16 {
    let sign = ((value.to_bits() >> 16) & 0x8000) as u16;
    let size = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    // 65520 is the middle between the largest number and the next power.
    if size >= 65_520.0 {
        return sign | 0x7c00;
    }
    let exponent = if size < 2_f32.powi(-14) { -14 } else { (size.to_bits() >> 23) as i32 - 127 };
    // Steps of 2^(exponent - 10): rounding to 1024 carries into the exponent, as it should.
    let steps = (size * 2_f32.powi(10 - exponent)).round_ties_even() as u16;
    let subnormal = size < 2_f32.powi(-14);
    sign | if subnormal { steps } else { (((exponent + 15) as u16) << 10) + (steps - 1024) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(numbers: &[[u8; N]]) -> Vec<u8> {
        numbers.concat()
    }

    #[test]
    fn integers_wrap_and_averages_are_whole() {
        let (one, other) =
            (bytes(&[1_i64.to_ne_bytes(), (-7_i64).to_ne_bytes()]), bytes(&[2_i64.to_ne_bytes(), 3_i64.to_ne_bytes()]));
        let both: &[&[u8]] = &[&one, &other];
        for (operation, expected) in
            [(SUM, [3_i64, -4]), (PRODUCT, [2, -21]), (GREATEST, [2, 3]), (LEAST, [1, -7]), (AVERAGE, [1, -2])]
        {
            let told = reduce(both, Kind(4), Operation(operation)).unwrap();
            assert_eq!(told, bytes(&expected.map(i64::to_ne_bytes)), "{operation}");
        }
        assert_eq!(reduce(&[&[200], &[100]], Kind(1), Operation(SUM)), Some(vec![44]));
        assert_eq!(reduce(&[&[200], &[100]], Kind(0), Operation(GREATEST)), Some(vec![100]), "-56 is less");
    }

    #[test]
    fn numbers_with_a_point_keep_their_precision() {
        let single = |value: f32| value.to_ne_bytes().to_vec();
        let (one, two) = (single(1.0), single(2.0));
        assert_eq!(reduce(&[&one, &two], Kind(7), Operation(SUM)), Some(single(3.0)));
        assert_eq!(reduce(&[&one, &two], Kind(7), Operation(AVERAGE)), Some(single(1.5)));
        let (half, brain) = (0x3c00_u16.to_ne_bytes(), 0x3f80_u16.to_ne_bytes());
        assert_eq!(reduce(&[&half, &half], Kind(6), Operation(SUM)), Some(0x4000_u16.to_ne_bytes().to_vec()));
        assert_eq!(reduce(&[&brain, &brain], Kind(9), Operation(SUM)), Some(0x4000_u16.to_ne_bytes().to_vec()));
    }

    #[test]
    fn halves_go_there_and_back() {
        for bits in (0..=u16::MAX).filter(|bits| !half_to_single(*bits).is_nan()) {
            assert_eq!(single_to_half(half_to_single(bits)), bits, "{bits:#x}");
        }
        assert_eq!(single_to_half(65_519.0), 0x7bff);
        assert_eq!(single_to_half(65_520.0), 0x7c00);
        assert_eq!(single_to_half(1.0 + 2_f32.powi(-11)), 0x3c00, "to the even one");
        assert!(half_to_single(single_to_half(f32::NAN)).is_nan());
        assert_eq!(single_to_brain(1.0 + 2_f32.powi(-8)), 0x3f80, "to the even one");
        assert_eq!(single_to_brain(1.0 + 3.0 * 2_f32.powi(-8)), 0x3f82);
        assert!(brain_to_single(single_to_brain(f32::NAN)).is_nan());
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert_eq!(reduce(&[&[1], &[1]], Kind(10), Operation(SUM)), None, "8 bits with a point");
        assert_eq!(reduce(&[&[1], &[1]], Kind(1), Operation(5)), None, "an operation of the program's");
        assert_eq!(reduce(&[&[1], &[1, 2]], Kind(1), Operation(SUM)), None, "parts of different lengths");
        assert_eq!(reduce(&[], Kind(1), Operation(SUM)), None);
        assert_eq!(Kind(12).bytes(), None);
    }
}
