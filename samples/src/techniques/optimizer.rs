//! Which optimizer, and what it keeps for each parameter.
//!
//! Bytes kept, for P parameters in fp32:
//!
//! | optimizer | bytes | file |
//! | --- | --- | --- |
//! | sgd | 0 | sgd.rs |
//! | momentum | 4·P | sgd.rs |
//! | adamw | 8·P | adamw.rs |
//! | adamw8bit | Σ 2·(N + 4·⌈N/256⌉) over tensors of N ≥ 4096, Σ 8·N over the others | eight_bit.rs |
//! | adafactor | Σ 4·(rows + columns) over matrices, Σ 4·N over vectors | adafactor.rs |
//!
//! All are allocated at the first step, parameter by parameter, and stay.

use super::offload::OnHost;
use super::{adafactor, adamw, eight_bit, precision, sgd};
use crate::ranks::Group;
use crate::tensor::Element;
use crate::{Error, Tensor};

/// An optimizer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Kind {
    /// Stochastic gradient descent, which keeps nothing
    Sgd,
    /// The same with a momentum of 0.9
    Momentum,
    /// AdamW in fp32
    #[default]
    #[value(name = "adamw")]
    AdamW,
    /// AdamW with moments of 8 bits, in blocks of 256
    #[value(name = "adamw8bit")]
    AdamW8bit,
    /// Adafactor: of a matrix's second moment its rows' and columns' means, and no first moment
    Adafactor,
}

/// How 8-bit AdamW keeps the states of embedding tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum EmbeddingStates {
    /// In fp32, as bitsandbytes does
    Fp32,
    /// In 8 bits, as the other tables
    #[default]
    #[value(name = "8bit")]
    EightBit,
}

/// The optimizer's flags.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct OptimizerArguments {
    /// Optimizer
    #[arg(long = "optimizer", value_name = "NAME", value_enum, default_value_t)]
    pub kind: Kind,
    /// How adamw8bit keeps the states of embedding tables [default: 8bit]
    #[arg(long, value_name = "KIND", value_enum)]
    pub embedding_states: Option<EmbeddingStates>,
    /// Update with one kernel a parameter and no temporaries, which is the default
    #[arg(long, conflicts_with = "foreach")]
    pub fused: bool,
    /// Update all parameters at once, one operation after the other, with temporaries as large as the weights (adamw)
    #[arg(long)]
    pub foreach: bool,
}

impl OptimizerArguments {
    /// Checks that the flags combine.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.embedding_states.is_some() && self.kind != Kind::AdamW8bit {
            return Err(Error::Arguments(
                "--embedding-states says how --optimizer adamw8bit keeps its states; the other optimizers have no 8-bit ones"
                    .to_owned(),
            ));
        }
        if self.fused && self.foreach {
            return Err(Error::Arguments("--fused and --foreach are two ways of one update: choose one".to_owned()));
        }
        if self.foreach && self.kind != Kind::AdamW {
            return Err(Error::Arguments(
                "--foreach is of --optimizer adamw: the other updates here are fused and have no other form".to_owned(),
            ));
        }
        Ok(())
    }

    /// The learning rate where none is given; `adamw` is that of AdamW for the model.
    pub(crate) fn default_rate(&self, adamw: f32) -> f32 {
        match self.kind {
            Kind::AdamW | Kind::AdamW8bit => adamw,
            Kind::Sgd => sgd::RATE,
            Kind::Momentum => sgd::MOMENTUM_RATE,
            Kind::Adafactor => adafactor::RATE,
        }
    }
}

/// What an optimizer keeps for one parameter.
pub(crate) enum State {
    Velocity(Tensor),
    /// First and second moment.
    Moments([Tensor; 2]),
    EightBit(eight_bit::States),
    Factored(adafactor::Factors),
    /// Adafactor's of a vector.
    SecondMoment(Tensor),
    OnHost(OnHost),
}

/// A parameter with a gradient, for its update.
pub(crate) struct Update<'a> {
    pub name: &'a str,
    pub shape: &'a [u64],
    /// Elements of the whole parameter, of which this may be a rank's part.
    pub whole: u64,
    /// The ranks, if it is a part.
    pub group: Option<&'a Group>,
    pub weight: &'a Tensor,
    pub gradient: &'a Tensor,
    /// Of what is random in an update.
    pub seed: u64,
    /// None before the parameter's first update.
    pub state: &'a mut Option<State>,
}

impl Update<'_> {
    /// True for tables and matrices; norms and biases are vectors.
    pub fn is_matrix(&self) -> bool {
        self.shape.len() > 1
    }
}

impl Kind {
    /// Elements of a tensor of this shape that a cut between ranks must not part; none where the tensor must stay whole.
    pub(crate) fn unit(self, shape: &[u64], world: u64) -> Option<u64> {
        match self {
            Kind::AdamW8bit => Some(eight_bit::unit(shape.iter().product())),
            Kind::Adafactor => adafactor::unit(shape, world),
            _ => Some(1),
        }
    }
}

/// Updates one parameter, in step `step` counted from 1.
pub(crate) fn update(
    arguments: &OptimizerArguments,
    parameter: &mut Update<'_>,
    rate: f32,
    step: i32,
) -> Result<(), Error> {
    if parameter.weight.element() == Element::Bf16 {
        return match arguments.kind {
            Kind::AdamW => precision::update(parameter, rate, step),
            _ => precision::in_fp32(parameter, step, &mut |exact| update_in_fp32(arguments, exact, rate, step)),
        };
    }
    update_in_fp32(arguments, parameter, rate, step)
}

fn update_in_fp32(
    arguments: &OptimizerArguments,
    parameter: &mut Update<'_>,
    rate: f32,
    step: i32,
) -> Result<(), Error> {
    match arguments.kind {
        Kind::Sgd => sgd::update(parameter, rate),
        Kind::Momentum => sgd::update_with_momentum(parameter, rate),
        Kind::AdamW => adamw::update(parameter, rate, step),
        Kind::AdamW8bit => eight_bit::update(parameter, rate, step, arguments.embedding_states.unwrap_or_default()),
        Kind::Adafactor => adafactor::update(parameter, rate, step),
    }
}
