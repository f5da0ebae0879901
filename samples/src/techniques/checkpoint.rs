//! Checkpointing: blocks keep only their input for the backward pass, which computes the rest again (Chen et al. 2016).
//!
//! With L layers, α bytes that a layer keeps, c bytes of a layer's input, and segments of k layers, the activations of the
//! layers are at their peak when the last segment has been computed again:
//!
//! ⌈L/k⌉ · c + k · α
//!
//! instead of L · α. It is least where k = √(L·c/α). Segments are counted from the end, so that the short one, if k does not
//! divide L, is the first: the last is then full, and the formula exact. The price is one forward pass more whatever k is.
//!
//! `selective` (Korthikanti et al. 2022) drops only the attention probabilities, 4·b·a·s² bytes a layer in fp32, and computes
//! them again from q and k.
//!
//! Weights, gradients and optimizer stay the same. Where the device's peak is in the first segment's backward, in which all
//! gradients are alive, it falls by less than the activations do.

use crate::Error;
use std::ops::Range;
use std::str::FromStr;

/// What a block keeps for the backward pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checkpoint {
    /// All that backward reads.
    #[default]
    None,
    /// The input of every segment of so many layers.
    Every(u64),
    /// Segments of √L layers, rounded.
    Sqrt,
    /// All but the attention probabilities.
    Selective,
    /// Segments of the length that keeps least, from what a layer of this model turns out to keep.
    Auto,
}

impl FromStr for Checkpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Checkpoint::None),
            "sqrt" => Ok(Checkpoint::Sqrt),
            "selective" => Ok(Checkpoint::Selective),
            "auto" => Ok(Checkpoint::Auto),
            _ => text
                .strip_prefix("every=")
                .and_then(|layers| layers.parse().ok())
                .map(Checkpoint::Every)
                .ok_or_else(|| format!("`{text}` is not one of none, every=K (a number), sqrt, selective, auto")),
        }
    }
}

impl Checkpoint {
    /// Checks that the segments are not longer than the model.
    pub(crate) fn check(self, layers: u64) -> Result<(), Error> {
        match self {
            Checkpoint::Every(every) if !(1..=layers).contains(&every) => Err(Error::Arguments(format!(
                "--checkpoint every={every} is out of range: the model has {layers} layers, so it must be 1 to {layers}"
            ))),
            _ => Ok(()),
        }
    }

    /// The segments of the model's layers that keep only their input; none where layers keep more.
    pub(crate) fn segments(self, layers: u64) -> Option<Vec<Range<usize>>> {
        let every = match self {
            Checkpoint::None | Checkpoint::Selective | Checkpoint::Auto => return None,
            Checkpoint::Every(every) => every,
            Checkpoint::Sqrt => (layers as f64).sqrt().round() as u64,
        };
        let count = layers.div_ceil(every);
        let end = |segment: u64| layers - (count - 1 - segment) * every;
        Some((0..count).map(|segment| end(segment).saturating_sub(every) as usize..end(segment) as usize).collect())
    }
}

/// What `auto` chose, and from what.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Choice {
    layers: u64,
    /// α: bytes that a layer keeps.
    kept: u64,
    /// c: bytes of a layer's input.
    boundary: u64,
    pub every: u64,
}

impl Choice {
    /// The better of the two whole numbers beside √(L·c/α).
    pub fn new(layers: u64, kept: u64, boundary: u64) -> Choice {
        let of = |every| Choice { layers, kept, boundary, every };
        let below = (of(1).optimum() as u64).clamp(1, layers);
        let above = (below + 1).min(layers);
        of(if of(above).bytes() < of(below).bytes() { above } else { below })
    }

    fn optimum(&self) -> f64 {
        (self.layers as f64 * self.boundary as f64 / self.kept as f64).sqrt()
    }

    fn bytes(&self) -> u64 {
        self.layers.div_ceil(self.every) * self.boundary + self.every * self.kept
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Choice { layers, kept, boundary, every } = self;
        write!(
            f,
            "checkpoint every={every}: a layer keeps {kept} bytes and its input has {boundary}, so that √(L·c/α) is {:.2}; \
             activations of the {layers} layers {} bytes instead of {}",
            self.optimum(),
            self.bytes(),
            layers * kept
        )
    }
}

/// What `auto` chose for layers that are not alike, such as the blocks of a ResNet.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct UnlikeChoice {
    layers: u64,
    pub every: u64,
    /// The most bytes of activations of the layers with it, and with nothing computed again.
    bytes: u64,
    plain: u64,
}

impl UnlikeChoice {
    /// The length that keeps least, from what each layer keeps beside its input, and its input takes, in bytes. While a segment's
    /// backward lasts there are the inputs of it and those before it, and all that its own layers keep.
    pub fn new(kept: &[u64], inputs: &[u64]) -> UnlikeChoice {
        let layers = kept.len() as u64;
        let bytes = |every: u64| {
            let mut boundaries = 0;
            let mut in_backward = |segment: Range<usize>| {
                boundaries += inputs[segment.start];
                boundaries + kept[segment].iter().sum::<u64>()
            };
            Checkpoint::Every(every).segments(layers).into_iter().flatten().map(&mut in_backward).max().unwrap_or(0)
        };
        let every = (1..=layers).min_by_key(|&every| bytes(every)).expect("there is a layer");
        UnlikeChoice { layers, every, bytes: bytes(every), plain: inputs[0] + kept.iter().sum::<u64>() }
    }
}

impl std::fmt::Display for UnlikeChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let UnlikeChoice { layers, every, bytes, plain } = self;
        write!(
            f,
            "checkpoint every={every}: of all lengths it keeps least, activations of the {layers} blocks {bytes} bytes instead of \
             {plain}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_full_but_the_first() {
        assert_eq!(Checkpoint::Every(3).segments(7).unwrap(), [0..1, 1..4, 4..7]);
        assert_eq!(Checkpoint::Every(7).segments(7).unwrap(), [Range { start: 0, end: 7 }]);
        assert_eq!(Checkpoint::Sqrt.segments(12).unwrap(), [0..3, 3..6, 6..9, 9..12]);
        assert_eq!(Checkpoint::Sqrt.segments(1).unwrap(), [Range { start: 0, end: 1 }]);
        assert_eq!(Checkpoint::Selective.segments(7), None);
    }

    #[test]
    fn a_hundred_layers_of_one_unit_keep_nineteen() {
        // Chen's count: a segment's own input is among what it keeps, so that one is counted twice in the formula.
        let choice = Choice::new(100, 1, 1);
        assert_eq!((choice.every, choice.bytes() - 1), (10, 19));
    }

    #[test]
    fn no_length_keeps_less_than_the_one_chosen() {
        for layers in 1..40 {
            for kept in [1, 2, 7, 16, 100] {
                let choice = Choice::new(layers, kept, 10);
                let bytes = |every: u64| layers.div_ceil(every) * 10 + every * kept;
                // The formula without its rounding is convex; with it, a neighbour can be better by less than a boundary.
                let least = (1..=layers).map(bytes).min().unwrap();
                assert!(choice.bytes() < least + 10, "{layers} {kept}: {choice}");
            }
        }
        assert_eq!(Choice::new(12, 384, 12).every, 1, "GPT-2: inputs are small beside what a layer keeps");
    }

    /// By hand: segments of one: 10 + 100, 10 + 20 + 50, 10 + 20 + 5 + 60; of two: (2) 10 + 100, 10 + 20 + 50 + 60; of three 220.
    #[test]
    fn unlike_layers_are_tried_one_by_one() {
        let choice = UnlikeChoice::new(&[100, 50, 60], &[10, 20, 5]);
        assert_eq!((choice.every, choice.bytes, choice.plain), (1, 110, 220));
        // Where inputs are large beside what is kept: 10 + 10 + 10 + 1 = 31 of one, 10 + 10 + 2 = 22 of two, 10 + 3 of three.
        assert_eq!(UnlikeChoice::new(&[1, 1, 1], &[10, 10, 10]).every, 3);
    }

    #[test]
    fn words_are_read() {
        assert_eq!("every=12".parse(), Ok(Checkpoint::Every(12)));
        assert_eq!("sqrt".parse(), Ok(Checkpoint::Sqrt));
        for wrong in ["every", "every=", "every=-1", "all", ""] {
            assert!(wrong.parse::<Checkpoint>().is_err(), "{wrong}");
        }
    }
}
