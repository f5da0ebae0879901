//! A launch with its inputs, what it must give, and how far rounding may carry it from that.
//!
//! Each expected number comes with its magnitude M, the sum of the absolute values of the terms that it is made of, and its
//! case with a number R of roundings that any order of the operations goes through. The check is |computed - expected| ≤
//! R · 2⁻²⁴ · M: the usual bound for floating-point sums (Higham, Accuracy and Stability of Numerical Algorithms, ch. 4).

use crate::kind::Kind;
use memscope_kernels::{KERNELS, Kernel, Launch};
use std::ops::RangeInclusive;

/// Half the distance between 1 and the next fp32 number.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

/// An expected number, and the size of the terms behind it.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub value: f64,
    pub magnitude: f64,
}

/// Exactly this.
pub fn exactly(value: f32) -> Expected {
    Expected { value: value.into(), magnitude: 0.0 }
}

/// The sum of these terms.
pub fn sum(terms: impl IntoIterator<Item = f64>) -> Expected {
    let zero = Expected { value: 0.0, magnitude: 0.0 };
    terms
        .into_iter()
        .fold(zero, |sum, term| Expected { value: sum.value + term, magnitude: sum.magnitude + term.abs() })
}

/// One argument of a launch.
#[derive(Clone)]
pub enum Value {
    /// Floats that are only read.
    Input(Vec<f32>),
    /// Indices that are only read.
    Indices(Vec<i64>),
    /// Floats that are written: what they are before, what they must be after, and the number of roundings.
    Output {
        before: Vec<f32>,
        after: Vec<Expected>,
        roundings: f64,
    },
    /// Indices that are written, and what they must be after.
    IndicesOutput(Vec<i64>),
    /// Bytes that are written: what they are before, and the range that each must be in after. Like indices they travel as
    /// floats: the bits of four bytes make one.
    Codes {
        before: Vec<u8>,
        after: Vec<RangeInclusive<u8>>,
    },
    /// Elements of 16 bits that are only read.
    Halves(Vec<u16>),
    /// Elements of 16 bits that are written. They travel as floats: the bits of two make one.
    HalvesOutput {
        before: Vec<u16>,
        after: Vec<Expected>,
        roundings: f64,
        rounded: Rounded,
    },
    /// The same memory as an argument before.
    Same(usize),
    /// No memory.
    Null,
    U32(u32),
    U64(u64),
    F32(f32),
}

impl Value {
    /// What an output is before the launch. Indices are as many bytes of NaN, which is no index.
    pub fn before(&self) -> Option<Vec<f32>> {
        match self {
            Value::Output { before, .. } => Some(before.clone()),
            Value::IndicesOutput(after) => Some(vec![f32::NAN; 2 * after.len()]),
            Value::Codes { before, .. } => Some(packed(before)),
            Value::HalvesOutput { before, .. } => Some(packed(&bytes(before))),
            _ => None,
        }
    }
}

/// An output that is NaN before the launch: one that is not written stays so.
pub fn output(roundings: f64, after: Vec<Expected>) -> Value {
    Value::Output { before: vec![f32::NAN; after.len()], after, roundings }
}

/// How a number in fp32 becomes one of 16 bits.
#[derive(Clone, Copy)]
pub enum Rounded {
    /// To the nearest.
    Nearest(Kind),
    /// Up or down, as chance will have it.
    Stochastically(Kind),
}

fn bytes(halves: &[u16]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
}

/// Bytes as the bits of floats, with zeros after the last.
fn packed(bytes: &[u8]) -> Vec<f32> {
    let four = |chunk: &[u8]| std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0));
    bytes.chunks(4).map(|chunk| f32::from_bits(u32::from_le_bytes(four(chunk)))).collect()
}

/// A launch.
#[derive(Clone)]
pub struct Case {
    pub kernel: &'static Kernel,
    pub launch: Launch,
    pub arguments: Vec<Value>,
}

impl Case {
    pub fn new(kernel: &str, launch: Launch, arguments: Vec<Value>) -> Case {
        let kernel = KERNELS.iter().find(|candidate| candidate.name == kernel).expect("a kernel of the table");
        assert_eq!(arguments.len(), kernel.parameters.len(), "{}", kernel.name);
        Case { kernel, launch, arguments }
    }

    /// Copies of the outputs, in the order of the arguments, and the argument cells that point to them and to the inputs.
    pub fn on_host(&self) -> (Vec<Vec<f32>>, Vec<u64>) {
        let mut outputs: Vec<Vec<f32>> = Vec::new();
        let mut cells: Vec<u64> = Vec::new();
        for value in &self.arguments {
            cells.push(match value {
                Value::Input(values) => values.as_ptr() as u64,
                Value::Indices(values) => values.as_ptr() as u64,
                Value::Halves(values) => values.as_ptr() as u64,
                Value::Output { .. } | Value::IndicesOutput(_) | Value::Codes { .. } | Value::HalvesOutput { .. } => {
                    outputs.push(value.before().expect("an output"));
                    outputs.last_mut().expect("pushed above").as_mut_ptr() as u64
                }
                Value::Same(index) => cells[*index],
                Value::Null => 0,
                Value::U32(value) => (*value).into(),
                Value::U64(value) => *value,
                Value::F32(value) => value.to_bits().into(),
            });
        }
        (outputs, cells)
    }

    /// Checks what the outputs hold after the launch, in the order of the arguments.
    pub fn check(&self, by: &str, outputs: &[Vec<f32>]) {
        let mut outputs = outputs.iter();
        for (value, parameter) in self.arguments.iter().zip(self.kernel.parameters) {
            if let Value::IndicesOutput(after) = value {
                let halves = outputs.next().expect("every output is given").chunks(2);
                let computed = halves.map(|half| u64::from(half[1].to_bits()) << 32 | u64::from(half[0].to_bits()));
                let computed: Vec<i64> = computed.map(|bits| bits as i64).collect();
                assert_eq!(&computed, after, "{by} {}: {}", self.kernel.name, parameter.name);
            }
            if let Value::Codes { after, .. } = value {
                self.check_codes(by, parameter.name, after, outputs.next().expect("every output is given"));
            }
            if let Value::HalvesOutput { after, roundings, rounded, .. } = value {
                let computed = outputs.next().expect("every output is given");
                self.check_halves(by, parameter.name, (after, *roundings, *rounded), computed);
            }
            let Value::Output { after, roundings, .. } = value else { continue };
            let computed = outputs.next().expect("every output is given");
            assert_eq!(computed.len(), after.len());
            for (index, (computed, Expected { value, magnitude })) in computed.iter().zip(after).enumerate() {
                let allowed = roundings * ROUNDING * magnitude;
                let is_it = f64::from(*computed) == *value || computed.is_nan() && value.is_nan();
                assert!(
                    is_it || (f64::from(*computed) - value).abs() <= allowed,
                    "{} {}: {}[{index}] is {computed}, not {value} ± {allowed:e}",
                    by,
                    self.kernel.name,
                    parameter.name
                );
            }
        }
    }
}

impl Case {
    fn check_codes(&self, by: &str, name: &str, after: &[RangeInclusive<u8>], computed: &[f32]) {
        let computed: Vec<u8> = computed.iter().flat_map(|four| four.to_bits().to_le_bytes()).collect();
        for (index, (code, after)) in computed.iter().zip(after).enumerate() {
            assert!(after.contains(code), "{by} {}: {name}[{index}] is {code}, not in {after:?}", self.kernel.name);
        }
        assert!(computed[after.len()..].iter().all(|&beyond| beyond == 0), "{by} {}: {name}", self.kernel.name);
    }
}

impl Case {
    /// What was computed in fp32 is within the bound of there; the one rounding to 16 bits comes on top.
    fn check_halves(
        &self,
        by: &str,
        name: &str,
        (after, roundings, rounded): (&[Expected], f64, Rounded),
        computed: &[f32],
    ) {
        let bits = computed.iter().flat_map(|two| [two.to_bits() as u16, (two.to_bits() >> 16) as u16]);
        for (index, (bits, &Expected { value, magnitude })) in bits.zip(after).enumerate() {
            let before = roundings * ROUNDING * magnitude;
            let (kind, units) = match rounded {
                Rounded::Nearest(kind) => (kind, 1.0),
                Rounded::Stochastically(kind) => (kind, 2.0),
            };
            let computed = kind.wide(bits);
            let right = if magnitude == 0.0 {
                let nearest = kind.nearest(value);
                computed == nearest || computed.is_nan() && nearest.is_nan()
            } else {
                (computed - value).abs() <= before + units * kind.half_unit(value.abs() + before)
            };
            assert!(
                right,
                "{by} {}: {name}[{index}] is {computed} in {kind:?}, not {value} ± {before:e}",
                self.kernel.name
            );
        }
        assert_eq!(computed.len(), after.len().div_ceil(2));
    }
}

/// Random numbers for inputs (PCG: a linear congruence, its output permuted).
pub struct Random {
    state: u64,
    /// Floats are numbers of this kind, where one is given.
    pub kind: Option<Kind>,
}

impl Random {
    /// From MEMSCOPE_TEST_SEED, or else from the clock; the seed is printed.
    pub fn from_environment() -> Random {
        let seed = std::env::var("MEMSCOPE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.expect("after 1970").as_nanos() as u64
        });
        println!("MEMSCOPE_TEST_SEED={seed}");
        Random { state: seed, kind: None }
    }

    pub fn bits(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let state = self.state;
        ((((state >> 18) ^ state) >> 27) as u32).rotate_right((state >> 59) as u32)
    }

    /// Floats between -scale and scale.
    pub fn floats(&mut self, count: usize, scale: f32) -> Vec<f32> {
        let values =
            (0..count).map(|_| (f64::from(self.bits()) / f64::from(1_u32 << 31) - 1.0) as f32 * scale).collect();
        self.of_kind(values)
    }

    /// The nearest numbers of the kind that is given.
    pub fn of_kind(&self, values: Vec<f32>) -> Vec<f32> {
        match self.kind {
            Some(kind) => values.into_iter().map(|value| kind.nearest(value.into()) as f32).collect(),
            None => values,
        }
    }

    /// Indices from `least` to below `limit`.
    pub fn indices(&mut self, count: usize, least: i64, limit: i64) -> Vec<i64> {
        (0..count).map(|_| least + i64::from(self.bits()) % (limit - least)).collect()
    }
}

/// The floats in f64.
pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| value.into()).collect()
}
