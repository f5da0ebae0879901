//! ResNets against an independent one: plain loops in f64, written from the paper and torchvision's layout of it, with no tile
//! and no kernel. The loss itself, the running statistics, and every kind of gradient against differences of its loss.
//!
//! The difference is taken in f64, where a step of 10⁻⁸ is so small that next to no ReLU or window changes sides in it, and
//! the loss's own rounding of about 10⁻¹⁵ leaves 10⁻⁷. What is checked is fp32: through some tens of operations it rounds
//! to 10⁻⁵ of what is added up, which for the gradient of one element is about the largest gradient of its parameter. The
//! check allows 10⁻⁴ of that largest one, and 10⁻³ of the element's own.

use crate::device;
use memscope_samples::Device;
use memscope_samples::resnet::{Batch, BlockKind, Configuration, Plan, Trainer, images, targets};
use memscope_samples::techniques::Techniques;
use std::collections::BTreeMap;

/// (images, channels, height, width) in f64.
#[derive(Clone)]
struct Map {
    values: Vec<f64>,
    images: usize,
    channels: usize,
    height: usize,
    width: usize,
}

impl Map {
    fn zeros(images: usize, channels: usize, height: usize, width: usize) -> Map {
        Map { values: vec![0.0; images * channels * height * width], images, channels, height, width }
    }

    fn at(&self, image: usize, channel: usize, y: usize, x: usize) -> usize {
        ((image * self.channels + channel) * self.height + y) * self.width + x
    }

    fn relu(mut self) -> Map {
        self.values.iter_mut().for_each(|value| *value = value.max(0.0));
        self
    }
}

/// What `size` becomes under windows of `side`, `stride` apart, with `padding` on both sides.
fn pooled(size: usize, side: usize, stride: usize, padding: usize) -> usize {
    (size + 2 * padding - side) / stride + 1
}

struct Reference<'a> {
    plan: &'a Plan,
    weights: &'a BTreeMap<String, Vec<f64>>,
    /// Mean and unbiased variance of the channels, by module.
    statistics: BTreeMap<String, [Vec<f64>; 2]>,
}

impl Reference<'_> {
    fn weight(&self, name: &str) -> &[f64] {
        self.weights.get(name).unwrap_or_else(|| panic!("no parameter is called {name}"))
    }

    fn convolution(&self, name: &str, input: &Map, side: usize, stride: usize) -> Map {
        let weight = self.weight(&format!("{name}.weight"));
        let (padding, channels) = (side / 2, input.channels);
        let filters = weight.len() / (channels * side * side);
        let out = |size| pooled(size, side, stride, padding);
        let mut output = Map::zeros(input.images, filters, out(input.height), out(input.width));
        for image in 0..input.images {
            for filter in 0..filters {
                for y in 0..output.height {
                    for x in 0..output.width {
                        let mut sum = 0.0;
                        for (index, weight) in
                            weight.chunks(channels * side * side).nth(filter).unwrap().iter().enumerate()
                        {
                            let (channel, v, u) = (index / side / side, index / side % side, index % side);
                            let (row, column) = (y * stride + v, x * stride + u);
                            if row >= padding && column >= padding {
                                let (row, column) = (row - padding, column - padding);
                                if row < input.height && column < input.width {
                                    sum += weight * input.values[input.at(image, channel, row, column)];
                                }
                            }
                        }
                        let at = output.at(image, filter, y, x);
                        output.values[at] = sum;
                    }
                }
            }
        }
        output
    }

    fn norm(&mut self, name: &str, mut map: Map) -> Map {
        let (weight, bias) = (self.weight(&format!("{name}.weight")), self.weight(&format!("{name}.bias")));
        let plane = map.height * map.width;
        let mut statistics = [Vec::new(), Vec::new()];
        for channel in 0..map.channels {
            let here: Vec<usize> = (0..map.values.len()).filter(|at| at / plane % map.channels == channel).collect();
            let count = here.len() as f64;
            let mean = here.iter().map(|&at| map.values[at]).sum::<f64>() / count;
            let squares = here.iter().map(|&at| (map.values[at] - mean).powi(2)).sum::<f64>();
            for at in here {
                let normal = (map.values[at] - mean) / (squares / count + 1e-5).sqrt();
                map.values[at] = normal * weight[channel] + bias[channel];
            }
            statistics[0].push(mean);
            statistics[1].push(squares / (count - 1.0));
        }
        self.statistics.insert(name.to_owned(), statistics);
        map
    }

    fn block(&mut self, name: &str, kind: BlockKind, input: &Map, stride: usize, skips: bool) -> Map {
        // The side and stride of each convolution.
        let convolutions = match kind {
            BlockKind::Basic => vec![(3, stride), (3, 1)],
            BlockKind::Bottleneck => vec![(1, 1), (3, stride), (1, 1)],
        };
        let mut map = input.clone();
        for (index, &(side, stride)) in convolutions.iter().enumerate() {
            let convolved = self.convolution(&format!("{name}.conv{}", index + 1), &map, side, stride);
            map = self.norm(&format!("{name}.bn{}", index + 1), convolved);
            if index + 1 < convolutions.len() {
                map = map.relu();
            }
        }
        let skip = match skips {
            true => input.clone(),
            false => {
                let convolved = self.convolution(&format!("{name}.downsample.0"), input, 1, stride);
                self.norm(&format!("{name}.downsample.1"), convolved)
            }
        };
        map.values.iter_mut().zip(skip.values).for_each(|(value, skip)| *value += skip);
        map.relu()
    }

    fn loss(&mut self, batch: &Batch) -> f64 {
        let Plan { configuration, batch: count, image, .. } = *self.plan;
        let (count, side) = (count as usize, image as usize);
        let values = batch.images.iter().map(|&value| value.into()).collect();
        let images = Map { values, images: count, channels: 3, height: side, width: side };
        let convolved = self.convolution("conv1", &images, 7, 2);
        let mut map = max_pool(&self.norm("bn1", convolved).relu());
        for (stage, &blocks) in configuration.blocks.iter().enumerate() {
            for index in 0..blocks {
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                // The first block of a stage changes sizes, but for the first stage of basic blocks.
                let skips = index > 0 || (stage == 0 && configuration.kind == BlockKind::Basic);
                map = self.block(&format!("layer{}.{index}", stage + 1), configuration.kind, &map, stride, skips);
            }
        }
        let plane = map.height * map.width;
        let features: Vec<f64> =
            map.values.chunks(plane).map(|plane_of| plane_of.iter().sum::<f64>() / plane as f64).collect();
        let (weight, bias) = (self.weight("fc.weight"), self.weight("fc.bias"));
        let loss = |(features, &target): (&[f64], &i64)| {
            let dot = |row: &[f64]| row.iter().zip(features).map(|(w, x)| w * x).sum::<f64>();
            let logits: Vec<f64> = weight.chunks(features.len()).zip(bias).map(|(row, bias)| dot(row) + bias).collect();
            logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[target as usize]
        };
        features.chunks(map.channels).zip(&batch.targets).map(loss).sum::<f64>() / count as f64
    }
}

/// The largest of windows of 3 × 3, two apart.
fn max_pool(input: &Map) -> Map {
    let out = |size| pooled(size, 3, 2, 1);
    let mut output = Map::zeros(input.images, input.channels, out(input.height), out(input.width));
    output.values.fill(f64::NEG_INFINITY);
    for image in 0..input.images {
        for channel in 0..input.channels {
            for y in 0..input.height {
                for x in 0..input.width {
                    let value = input.values[input.at(image, channel, y, x)];
                    // The windows that begin at most two before, and not after.
                    for row in (0..output.height).filter(|row| (2 * row..2 * row + 3).contains(&(y + 1))) {
                        for column in (0..output.width).filter(|column| (2 * column..2 * column + 3).contains(&(x + 1)))
                        {
                            let at = output.at(image, channel, row, column);
                            output.values[at] = output.values[at].max(value);
                        }
                    }
                }
            }
        }
    }
    output
}

fn check(kind: BlockKind, blocks: [u64; 4], image: u64) {
    let configuration = Configuration { kind, blocks, width: 3, classes: 5 };
    let techniques = Techniques::default();
    let plan = Plan { configuration, batch: 3, image, steps: 1, learning_rate: 0.0, seed: 11, techniques };
    let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
    let mut weights = displace(&mut trainer);
    let targets = targets(5, 3, 11, 1);
    let batch = Batch { images: images(&targets, image, 11, 1), targets };

    let loss = f64::from(trainer.gradients(&batch).unwrap().expect("this device computes"));
    let mut reference = Reference { plan: &plan, weights: &weights, statistics: BTreeMap::new() };
    let expected = reference.loss(&batch);
    assert!((loss - expected).abs() < 1e-5, "{kind:?}: {loss}, not {expected}");
    check_statistics(&trainer, &reference.statistics);

    let mut checked = 0;
    for parameter in trainer.parameters_mut() {
        let name = parameter.name().to_owned();
        let gradient = parameter.gradient().expect("backward reaches every parameter").to_host().unwrap();
        let largest = f64::from(gradient.iter().fold(0.0_f32, |largest, value| largest.max(value.abs())));
        for element in (0..gradient.len()).step_by(1 + gradient.len() / 25) {
            const STEP: f64 = 1e-8;
            let start = weights[&name][element];
            let mut loss = |value| {
                weights.get_mut(&name).expect("every parameter is there")[element] = value;
                Reference { plan: &plan, weights: &weights, statistics: BTreeMap::new() }.loss(&batch)
            };
            let difference = (loss(start + STEP) - loss(start - STEP)) / (2.0 * STEP);
            loss(start);
            let computed = f64::from(gradient[element]);
            let allowed = 1e-6 + 1e-4 * largest + 1e-3 * difference.abs();
            assert!((computed - difference).abs() <= allowed, "{name}[{element}]: {computed} against {difference}");
            checked += 1;
        }
    }
    assert!(checked > 150, "only {checked} elements checked");
}

/// The running statistics began at 0 and 1, and moved by a tenth towards the batch's.
fn check_statistics(trainer: &Trainer, expected: &BTreeMap<String, [Vec<f64>; 2]>) {
    let statistics = trainer.statistics();
    assert_eq!(statistics.len(), 2 * expected.len());
    for statistic in statistics {
        let (module, what) = statistic.name().rsplit_once('.').expect("a statistic is in a module");
        let (which, first) = match what {
            "running_mean" => (0, 0.0),
            "running_var" => (1, 1.0),
            other => panic!("{other} is no statistic"),
        };
        for (&value, batch) in statistic.weight().to_host().unwrap().iter().zip(&expected[module][which]) {
            let expected = 0.9 * first + 0.1 * batch;
            assert!((f64::from(value) - expected).abs() < 1e-5 * (1.0 + batch.abs()), "{}: {value}", statistic.name());
        }
    }
}

/// Moves every parameter from its special first value, and gives all of them.
fn displace(trainer: &mut Trainer) -> BTreeMap<String, Vec<f64>> {
    let mut state = 1_u32;
    let mut all = BTreeMap::new();
    for parameter in trainer.parameters_mut() {
        let mut weights = parameter.weight().to_host().unwrap();
        for weight in &mut weights {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *weight += 0.6 * (state as f32 / u32::MAX as f32 - 0.5);
        }
        parameter.weight_mut().set(&weights).unwrap();
        all.insert(parameter.name().to_owned(), weights.iter().map(|&weight| weight.into()).collect());
    }
    all
}

#[test]
fn basic_blocks() {
    device::run("resnet_reference::basic_blocks", device::COMPUTING, || check(BlockKind::Basic, [2, 1, 1, 0], 25));
}

#[test]
fn bottlenecks() {
    device::run("resnet_reference::bottlenecks", device::COMPUTING, || check(BlockKind::Bottleneck, [2, 2, 0, 0], 19));
}
