//! The forward pass and the loss.
//!
//! Owns: the order of operations, and which results are kept (activations) and which are freed at once (workspace).
//! Refuses: to know what the kernels do.
//!
//! As in torchvision a ReLU and the addition of the skip connection overwrite what they read: the normalisation before them
//! keeps its input, not its output.

use super::blocks;
use super::network::{Block, COLOURS, Linear, Network, Unit};
use super::pass::{Inputs, Map, Pass, Saved, SavedBlock, SavedStem, SavedUnit};
use crate::gpt::Parameter;
use crate::operations::{self, BatchNorm, ConvolutionShape, Matrix, Product, Windows};
use crate::techniques::Keeping;
use crate::{Error, Tensor};
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// The logits (images, classes) of a batch, and what backward needs.
pub(super) fn forward(
    pass: &Pass<'_>,
    network: &Network<Parameter>,
    inputs: &Inputs,
) -> Result<(Tensor, Saved), Error> {
    pass.gather(network.stem.read())?;
    let (map, stem) = stem(pass, &network.stem, inputs)?;
    pass.scatter(network.stem.read());
    let (map, blocks) = blocks::forward(pass, network, map)?;
    let positions = map.height * map.width;
    let features = {
        let _scope = memscope::scope("avgpool");
        let features = pass.activation("avgpool.output", &[pass.images(), map.channels])?;
        operations::averagepool_forward(&features, &map.tensor)?;
        features
    };
    pass.gather(network.head.read())?;
    let logits = head(pass, &network.head, &features)?;
    pass.scatter(network.head.read());
    Ok((logits, Saved { stem, blocks, features, positions }))
}

/// Convolution, normalisation, ReLU and pooling of the images.
fn stem(pass: &Pass<'_>, one: &Unit<Parameter>, inputs: &Inputs) -> Result<(Map, SavedStem), Error> {
    let side = pass.plan.image;
    let images = Map { tensor: in_maps(pass, &inputs.images)?, channels: COLOURS, height: side, width: side };
    let (normal, saved) = unit(pass, one, &images, Some(pass.keeping), "relu.output")?;
    let rectified = rectify(normal)?;
    let _scope = memscope::scope("maxpool");
    let Map { channels, height, width, .. } = rectified;
    let windows = Windows { planes: pass.images() * channels, height, width, side: 3, stride: 2, padding: 1 };
    let [height, width] = windows.out();
    let shape = [pass.images(), channels, height, width];
    let output = pass.activation("maxpool.output", &shape)?;
    let indices = Tensor::indices(pass.device, Category::Activations, "maxpool.indices", &shape)?;
    operations::maxpool_forward(&output, &indices, &rectified.tensor, &windows)?;
    let saved = SavedStem { unit: saved, rectified: rectified.tensor, windows, indices };
    Ok((Map { tensor: Rc::new(output), channels, height, width }, saved))
}

/// Images as the first convolution reads them: in mixed precision their cast, which it keeps.
fn in_maps(pass: &Pass<'_>, images: &Rc<Tensor>) -> Result<Rc<Tensor>, Error> {
    if images.element() == pass.maps() {
        return Ok(Rc::clone(images));
    }
    let cast = pass.activation("input.images.cast", &[images.elements()])?;
    operations::cast(&cast, images, false)?;
    Ok(Rc::new(cast))
}

/// ReLU(units(x) + skip(x)), with a ReLU between two units too. Where nothing is kept, what is saved is less than backward reads.
pub(super) fn block(pass: &Pass<'_>, block: &Block<Parameter>, input: &Map) -> Result<(Map, SavedBlock), Error> {
    let name_of = |index: usize| format!("{}.relu{}.output", block.name, index + 1);
    let (last, inner) = block.units.split_last().expect("a block has units");
    let mut map = input.clone();
    let mut units = Vec::with_capacity(block.units.len());
    for (index, one) in inner.iter().enumerate() {
        let (normal, saved) = unit(pass, one, &map, Some(pass.keeping), &name_of(index))?;
        map = rectify(normal)?;
        units.extend(pass.keeps().then_some(saved));
    }
    let (sum, saved) = unit(pass, last, &map, Some(pass.keeping.of_output()), &name_of(inner.len()))?;
    drop(map);
    units.extend(pass.keeps().then_some(saved));
    let (skip, downsample) = match &block.downsample {
        None => (input.clone(), None),
        Some(one) => {
            let _scope = memscope::scope("downsample");
            let name = format!("{}.downsample.output", block.name);
            let (skip, saved) = unit(pass, one, input, None, &name)?;
            (skip, pass.keeps().then_some(saved))
        }
    };
    operations::add(&sum.tensor, &sum.tensor, &skip.tensor)?;
    let output = rectify(sum)?;
    let saved = SavedBlock { units, downsample, output: Rc::clone(&output.tensor) };
    Ok((output, saved))
}

/// Convolution and normalisation. The normalisation's output is called `name`, and is a temporary where `keeping` is none.
fn unit(
    pass: &Pass<'_>,
    unit: &Unit<Parameter>,
    input: &Map,
    keeping: Option<Keeping>,
    name: &str,
) -> Result<(Map, SavedUnit), Error> {
    let filter = unit.convolution.filter;
    let shape = ConvolutionShape {
        images: pass.images(),
        channels: input.channels,
        height: input.height,
        width: input.width,
        filters: filter.filters,
        side: filter.side,
        stride: filter.stride,
        padding: filter.side / 2,
    };
    let ([height, width], channels) = (shape.out(), filter.filters);
    let sizes = [pass.images(), channels, height, width];
    let convolved = {
        let _scope = memscope::scope(last_part(&unit.name));
        let convolved = pass.activation(&format!("{}.output", unit.name), &sizes)?;
        let weight = unit.convolution.weight.in_product(pass.maps())?;
        operations::convolution_forward(&convolved, &input.tensor, &weight, &shape)?;
        if pass.keeps() {
            unit.convolution.weight.keep_cast();
        }
        convolved
    };
    let _scope = memscope::scope(last_part(&unit.norm_name));
    let mean = pass.statistic(&format!("{}.mean", unit.norm_name), &[channels])?;
    let rstd = pass.statistic(&format!("{}.rstd", unit.norm_name), &[channels])?;
    let output = match keeping {
        Some(keeping) => pass.keeping(keeping).activation(name, &sizes)?,
        None => pass.workspace(name, &sizes)?,
    };
    let norm = BatchNorm { weight: unit.norm.weight.weight(), mean: &mean, rstd: &rstd };
    let running = unit.norm.running.each_ref().map(Parameter::weight);
    operations::batchnorm_forward(
        &output,
        &convolved,
        &norm,
        unit.norm.bias.weight(),
        running,
        pass.images(),
        pass.keeping != Keeping::Again,
    )?;
    let saved = SavedUnit { input: Rc::clone(&input.tensor), shape, convolved, mean, rstd };
    Ok((Map { tensor: Rc::new(output), channels, height, width }, saved))
}

/// The scope of a module inside of its block.
pub(super) fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// ReLU in place.
fn rectify(map: Map) -> Result<Map, Error> {
    operations::relu_forward(&map.tensor, &map.tensor)?;
    Ok(map)
}

/// The logits (images, classes), a temporary that lives until the loss has read it.
fn head(pass: &Pass<'_>, head: &Linear<Parameter>, features: &Tensor) -> Result<Tensor, Error> {
    let _scope = memscope::scope("fc");
    let (images, classes) = (pass.images(), pass.plan.configuration.classes);
    let logits = pass.workspace("logits", &[images, classes])?;
    let inputs = features.elements() / images;
    let [weight, bias] = [head.weight.in_product(pass.maps())?, head.bias.in_product(pass.maps())?];
    let weight = Matrix::new(&weight, classes, inputs).transposed();
    let product = Product::new(&logits, Matrix::new(features, images, inputs), weight);
    operations::matmul(&Product { bias: Some(&bias), ..product })?;
    head.weight.keep_cast();
    Ok(logits)
}

/// The mean cross-entropy (1), and the log-probabilities (images, classes), which are kept.
pub(super) fn loss(pass: &Pass<'_>, logits: Tensor, inputs: &Inputs) -> Result<(Tensor, Tensor), Error> {
    let _scope = memscope::scope("loss");
    let classes = pass.plan.configuration.classes;
    let logits = match pass.plan.techniques.precision().casts_logits() {
        false => logits,
        true => {
            let exact = pass.exact_workspace("logits.cast", &[pass.images(), classes])?;
            operations::cast(&exact, &logits, false)?;
            exact
        }
    };
    let log_probabilities = pass.statistic("loss.log_probabilities", &[pass.images(), classes])?;
    operations::log_softmax_forward(&log_probabilities, &logits, classes)?;
    drop(logits);
    let loss = pass.exact_workspace("loss", &[1])?;
    operations::nll_forward(&loss, &log_probabilities, &inputs.targets, 1.0 / pass.counted as f32)?;
    Ok((loss, log_probabilities))
}
