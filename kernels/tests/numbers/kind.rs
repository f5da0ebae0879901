//! fp32, fp16 and bf16 by their definitions (IEEE 754 and, for bf16, the upper half of fp32), in f64: nothing of this is shared
//! with the kernels or with the crate that the host references convert with.

/// What an element is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Fp32,
    Fp16,
    Bf16,
}

impl Kind {
    /// As kernels take it.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Bits of the fraction, exponent of the smallest normal number, and the largest number.
    fn format(self) -> (i32, i32, f64) {
        match self {
            Kind::Fp32 => (23, -126, f64::from(f32::MAX)),
            Kind::Fp16 => (10, -14, 65_504.0),
            Kind::Bf16 => (7, -126, (2.0 - 2_f64.powi(-7)) * 2_f64.powi(127)),
        }
    }

    /// Half the distance between numbers near `size`.
    pub fn half_unit(self, size: f64) -> f64 {
        let (fraction, least, _) = self.format();
        let exponent = if size == 0.0 { least } else { (size.log2().floor() as i32).max(least) };
        2_f64.powi(exponent - fraction - 1)
    }

    /// The nearest number of this kind, of two that are as near the one whose last bit is 0.
    pub fn nearest(self, value: f64) -> f64 {
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        // log2 may round up to a whole number just below it.
        let mut unit = 2.0 * self.half_unit(value.abs());
        let (fraction, least, largest) = self.format();
        if value.abs() < unit * 2_f64.powi(fraction) && unit > 2_f64.powi(least - fraction) {
            unit /= 2.0;
        }
        let rounded = (value / unit).round_ties_even() * unit;
        if rounded.abs() > largest { f64::INFINITY.copysign(value) } else { rounded }
    }

    /// The number that 16 bits stand for.
    pub fn wide(self, bits: u16) -> f64 {
        let (fraction, least, _) = self.format();
        let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
        let ones = (1 << (15 - fraction)) - 1;
        let (exponent, fraction_bits) = (i32::from(bits & 0x7fff) >> fraction, i32::from(bits) & ((1 << fraction) - 1));
        let share = f64::from(fraction_bits) / f64::from(1 << fraction);
        sign * match exponent {
            0 => share * 2_f64.powi(least),
            _ if exponent == ones && fraction_bits == 0 => f64::INFINITY,
            _ if exponent == ones => f64::NAN,
            _ => (1.0 + share) * 2_f64.powi(least + exponent - 1),
        }
    }

    /// The 16 bits of a number of this kind.
    ///
    /// # Panics
    /// When it is none.
    pub fn bits(self, value: f64) -> u16 {
        // Bits of numbers of one sign are ordered as the numbers.
        let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
        let (mut least, mut above) = (0_u16, 0x7fff_u16);
        while least + 1 < above {
            let middle = least.midpoint(above);
            let not_above = self.wide(middle).partial_cmp(&value.abs()).is_some_and(std::cmp::Ordering::is_le);
            *(if not_above { &mut least } else { &mut above }) = middle;
        }
        assert_eq!(self.wide(least), value.abs(), "{value} is no number of {self:?}");
        sign | least
    }
}

#[test]
fn formats_have_their_published_numbers() {
    assert_eq!(Kind::Fp16.wide(0x7bff), 65_504.0);
    assert_eq!(Kind::Fp16.wide(1), 2_f64.powi(-24));
    assert_eq!(Kind::Fp16.wide(0x0400), 2_f64.powi(-14));
    assert_eq!(Kind::Bf16.wide(0x3f80), 1.0);
    assert_eq!(Kind::Bf16.wide(0xc2f7), -123.5);
    assert_eq!(Kind::Fp16.nearest(65_519.9), 65_504.0);
    assert_eq!(Kind::Fp16.nearest(65_520.0), f64::INFINITY);
    assert_eq!(Kind::Fp16.nearest(2_f64.powi(-25)), 0.0);
    assert_eq!(Kind::Fp16.nearest(1.5 * 2_f64.powi(-24)), 2_f64.powi(-23));
    assert_eq!(Kind::Bf16.nearest(1.0 + 2_f64.powi(-8)), 1.0);
    assert_eq!(Kind::Bf16.nearest(1.0 + 3.0 * 2_f64.powi(-8)), 1.0 + 2_f64.powi(-6));
    for kind in [Kind::Fp16, Kind::Bf16] {
        assert!((0..0x7c00_u16).all(|bits| kind.bits(kind.wide(bits)) == bits));
        assert!((0..0x7c00_u16).all(|bits| kind.nearest(kind.wide(bits)) == kind.wide(bits)));
    }
}
