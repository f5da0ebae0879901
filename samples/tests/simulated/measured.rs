//! One pass over a batch, and what it is measured by: loss, gradients, and the most bytes of each category.

use memscope_client::Category;
use memscope_samples::Device;
use memscope_samples::gpt::{Batch, Configuration, Family, Parameter, Plan, Trainer, batch};
use memscope_samples::techniques::Techniques;

/// The sizes of a model and its batch, for arithmetic by hand.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub layers: u64,
    pub b: u64,
    pub s: u64,
    pub h: u64,
    pub a: u64,
    pub v: u64,
}

impl Sizes {
    /// Rows of a batch.
    pub fn n(&self) -> u64 {
        self.b * self.s
    }

    /// Bytes of one (rows, width) tensor.
    pub fn row(&self) -> u64 {
        4 * self.n() * self.h
    }

    /// Bytes of a layer's attention probabilities.
    pub fn matrix(&self) -> u64 {
        4 * self.b * self.a * self.s * self.s
    }

    /// Bytes that a layer keeps: sixteen tensors of a row, the probabilities, and two statistics of each of two norms.
    pub fn layer(&self) -> u64 {
        16 * self.row() + self.matrix() + 2 * 2 * 4 * self.n()
    }

    /// Bytes that are kept around the layers while the loss is computed, all but the log-probabilities. GPT-2: the last
    /// layer's output, and the final norm's with its statistics. BERT: these with two tensors of the transform, and the
    /// embedding with the statistics of its norm.
    pub fn around(&self, family: Family) -> u64 {
        let statistics = 2 * 4 * self.n();
        match family {
            Family::Gpt2 => 2 * self.row() + statistics,
            Family::Bert => 5 * self.row() + 2 * statistics,
        }
    }

    /// Bytes of the log-probabilities.
    pub fn head(&self) -> u64 {
        4 * self.n() * self.v
    }

    /// Bytes that are kept from the embedding to the end of backward, beside the layers' inputs.
    pub fn embedding(&self, family: Family) -> u64 {
        match family {
            Family::Gpt2 => 0,
            Family::Bert => self.row() + 2 * 4 * self.n(),
        }
    }

    pub fn plan(&self, family: Family, tied: bool, techniques: Techniques) -> Plan {
        let Sizes { layers, b: batch, s: sequence, h: width, a: heads, v: vocabulary } = *self;
        let configuration = Configuration { family, layers, width, heads, vocabulary, positions: sequence + 2, tied };
        Plan { configuration, batch, sequence, steps: 1, learning_rate: 0.01, seed: 5, techniques }
    }
}

/// What a pass came to.
pub struct Measured {
    pub loss: f32,
    /// By parameter, in order; those without a gradient are left out.
    pub gradients: Vec<(String, Vec<f32>)>,
    pub activations: u64,
    pub workspace: u64,
    /// Of all categories together.
    pub peak: u64,
    pub weights: u64,
}

pub fn a_batch(plan: &Plan) -> Batch {
    batch(&plan.configuration, plan.batch, plan.sequence, 3, 9)
}

/// A second pass, so that what the first leaves behind is there too.
pub fn measure(plan: &Plan) -> Measured {
    let mut trainer = Trainer::new(plan, Device::open().unwrap()).unwrap();
    let batch = a_batch(plan);
    trainer.gradients(&batch).unwrap();
    trainer.device().forget_peaks();
    let loss = trainer.gradients(&batch).unwrap().expect("this device computes");
    let of = |parameter: &&mut Parameter| {
        parameter.gradient().map(|gradient| (parameter.name().to_owned(), gradient.to_host().unwrap()))
    };
    let gradients = trainer.parameters_mut().iter().filter_map(of).collect();
    let device = trainer.device();
    let peak = |category| device.peak_bytes(category);
    assert_eq!(device.live_bytes(Category::Activations) + device.live_bytes(Category::Workspace), 0, "left behind");
    Measured {
        loss,
        gradients,
        activations: peak(Category::Activations),
        workspace: peak(Category::Workspace),
        peak: device.peak_of_all_bytes(),
        weights: peak(Category::Weights),
    }
}

/// Both passes gave the same bits.
pub fn assert_same(one: &Measured, other: &Measured) {
    assert_eq!(one.loss.to_bits(), other.loss.to_bits());
    assert_eq!(one.gradients.len(), other.gradients.len());
    for ((name, one), (other_name, other)) in one.gradients.iter().zip(&other.gradients) {
        assert_eq!(name, other_name);
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(one), bits(other), "{name}");
    }
}

/// Each gradient differs by at most `units` of 2⁻²⁴ of its tensor's largest, and the loss by as many of itself.
pub fn assert_near(one: &Measured, other: &Measured, units: f32) {
    let allowed = units / 16_777_216.0;
    assert!((one.loss - other.loss).abs() <= allowed * other.loss.abs(), "{} against {}", one.loss, other.loss);
    assert_eq!(one.gradients.len(), other.gradients.len());
    for ((name, one), (_, other)) in one.gradients.iter().zip(&other.gradients) {
        let largest = other.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        for (one, other) in one.iter().zip(other) {
            assert!((one - other).abs() <= allowed * largest, "{name}: {one} against {other}, of {largest}");
        }
    }
}
