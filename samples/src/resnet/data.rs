//! Images made from a seed: each class has a pattern of its own, which noise covers in part.
//!
//! Owns: which images and targets a step sees; the same for the same seed. Refuses: the device.

use super::network::COLOURS;
use crate::gpt::random::Random;
use crate::techniques::parts;
use std::f32::consts::TAU;

/// A batch on the host.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// (batch, 3, image, image), values of order 1; empty for a device that does not compute, which would not read them.
    pub images: Vec<f32>,
    /// The class of each image.
    pub targets: Vec<i64>,
}

impl Batch {
    /// The batch as `count` micro-batches; `count` divides its images.
    pub(super) fn micro_batches(&self, count: u64) -> Vec<Batch> {
        let images = parts(&self.images, count);
        images.zip(parts(&self.targets, count)).map(|(images, targets)| Batch { images, targets }).collect()
    }
}

/// The targets of a step, counted from 1: classes by chance.
pub fn targets(classes: u64, batch: u64, seed: u64, step: u64) -> Vec<i64> {
    let mut random = Random::new(seed, &[1, step]);
    (0..batch).map(|_| random.below(classes) as i64).collect()
}

/// The images for these targets at this step.
///
/// The pattern of a class is one plane wave a colour: up to four periods across and down the image, in a direction and with
/// a phase that the seed gives to the class. An image shows it with a contrast between 0.5 and 1.5, and under noise
/// between -1 and 1.
pub fn images(targets: &[i64], image: u64, seed: u64, step: u64) -> Vec<f32> {
    let mut noise = Random::new(seed, &[2, step]);
    let side = image as usize;
    let mut all = Vec::with_capacity(targets.len() * COLOURS as usize * side * side);
    for &target in targets {
        let contrast = 1.0 + 0.5 * uniform(&mut noise);
        let mut class = Random::new(seed, &[3, target as u64]);
        for _ in 0..COLOURS {
            // cos(a + b) by rows and columns: a pixel costs two products and no cosine.
            let [down, across] = [(); 2].map(|()| 4.0 * uniform(&mut class) * TAU / image as f32);
            let phase = TAU * uniform(&mut class);
            let row: Vec<(f32, f32)> = (0..side).map(|x| (across * x as f32 + phase).sin_cos()).collect();
            for y in 0..side {
                let (sine, cosine) = (down * y as f32).sin_cos();
                all.extend(row.iter().map(|&(row_sine, row_cosine)| {
                    contrast * (cosine * row_cosine - sine * row_sine) + uniform(&mut noise)
                }));
            }
        }
    }
    all
}

/// A number between -1 and 1.
fn uniform(random: &mut Random) -> f32 {
    (random.bits() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_repeats_and_another_differs() {
        assert_eq!(targets(10, 50, 1, 1), targets(10, 50, 1, 1));
        assert_ne!(targets(10, 50, 1, 1), targets(10, 50, 1, 2));
        assert!(targets(10, 500, 1, 1).iter().all(|target| (0..10).contains(target)));
        assert_eq!(images(&[3, 1], 8, 1, 1), images(&[3, 1], 8, 1, 1));
        assert_ne!(images(&[3, 1], 8, 1, 1), images(&[3, 1], 8, 1, 2));
        assert_eq!(images(&[3, 1], 8, 1, 1).len(), 2 * 3 * 8 * 8);
    }

    /// Two images of one class have more in common than two of different classes: that is what can be learnt.
    #[test]
    fn a_class_has_a_pattern() {
        let values = images(&[0, 0, 1, 1, 2, 2], 32, 7, 1);
        let images: Vec<&[f32]> = values.chunks(3 * 32 * 32).collect();
        let alike = |a: usize, b: usize| {
            let product: f32 = images[a].iter().zip(images[b]).map(|(a, b)| a * b).sum();
            product / images[a].len() as f32
        };
        for class in 0..3 {
            // The mean of contrast² · cos² is at least 0.5² / 2, and noise adds little to a mean of 3,072 products.
            assert!(alike(2 * class, 2 * class + 1) > 0.1, "{class}");
            assert!(alike(2 * class, (2 * class + 2) % 6) < alike(2 * class, 2 * class + 1) / 2.0, "{class}");
        }
    }
}
