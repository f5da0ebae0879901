//! The optimizer offloaded to the host (ZeRO-Offload, Ren et al. 2021): its moments, and the weights that it updates, are in
//! pinned host memory. A step copies each gradient down, updates on the host, and copies the weight up.
//!
//! Device bytes: optimizer 0. Host bytes: 12·P, which is weights and two moments in fp32, and 4 · the largest gradient, where
//! they arrive one after the other. Over the bus in a step: 8·P bytes. With `--precision bf16`, as in the paper, weights and
//! gradients on the device are bf16, and the host's weights in fp32 their masters: 2 · the largest gradient instead of 4, where
//! weights leave rounded too, to the nearest, since no update is lost in a master; over the bus 4·P. By arithmetic.

use super::adamw;
use super::optimizer::{State, Update};
use crate::pinned::Pinned;
use crate::tensor::Element;
use crate::{Error, Tensor, operations};
use memscope_client::Category;
use memscope_kernels::{Arguments, geometry, host};
use std::ops::Range;

/// What is offloaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Offload {
    /// The optimizer's moments and its update
    Optimizer,
}

/// A parameter's weight and moments on the host.
pub(crate) struct OnHost {
    weight: Pinned,
    moments: [Pinned; 2],
}

/// Where gradients arrive, the largest of which has as many elements as `largest` and is of its kind.
pub(crate) fn arrivals(largest: &Tensor) -> Result<Pinned, Error> {
    let (device, element) = (largest.device(), largest.element());
    Pinned::of(device, Category::Gradients, "offload.gradient", element, largest.elements())
}

/// Elements of bf16 that are widened, updated and rounded together.
const TOGETHER: u64 = 1 << 20;

/// Updates a parameter by AdamW on the host, with all cores.
pub(crate) fn update(parameter: &mut Update<'_>, arrivals: &mut Pinned, rate: f32, step: i32) -> Result<(), Error> {
    let by = adamw::numbers(rate, step, parameter.is_matrix());
    let Update { name, weight, gradient, state, .. } = parameter;
    if state.is_none() {
        **state = Some(State::OnHost(OnHost::new(name, weight, arrivals)?));
    }
    let Some(State::OnHost(on_host)) = state else { unreachable!("only offloading made the state") };
    arrivals.copy_from(gradient)?;
    // Where nothing is computed the memory stays untouched, and so costs the host nothing.
    let (computes, elements) = (weight.device().computes(), weight.elements());
    if arrivals.element() == Element::Fp32 {
        if computes {
            on_host.update(0..elements, arrivals.address(0), &by);
        }
        return on_host.weight.copy_to(weight);
    }
    let mut exact = vec![0.0; if computes { TOGETHER.min(elements) as usize } else { 0 }];
    for first in (0..elements).step_by(TOGETHER as usize).filter(|_| computes) {
        let count = TOGETHER.min(elements - first);
        let gradients = &mut exact[..count as usize];
        arrivals.widened(first, gradients);
        on_host.update(first..first + count, gradients.as_ptr() as u64, &by);
        arrivals.round(first, on_host.weight.exact(first, count));
    }
    arrivals.copy_to(weight)
}

impl OnHost {
    /// The weight as it is, and moments of 0. A weight of bf16 passes through `arrivals`.
    fn new(name: &str, weight: &Tensor, arrivals: &mut Pinned) -> Result<OnHost, Error> {
        let (device, elements) = (weight.device(), weight.elements());
        let floats = |category, what: &str| Pinned::floats(device, category, &format!("{name}.{what}"), elements);
        let mut copy = floats(Category::Weights, "master")?;
        if weight.element() == Element::Fp32 {
            copy.copy_from(weight)?;
        } else {
            arrivals.copy_from(weight)?;
            if device.computes() {
                arrivals.widened(0, copy.exact(0, elements));
            }
        }
        let mut moments = [floats(Category::Optimizer, "exp_avg")?, floats(Category::Optimizer, "exp_avg_sq")?];
        if device.computes() {
            moments.iter_mut().for_each(|moment| moment.fill(0.0));
        }
        Ok(OnHost { weight: copy, moments })
    }

    /// Updates these elements by as many gradients in fp32 at this address of the host.
    fn update(&mut self, range: Range<u64>, gradients: u64, by: &operations::AdamW) {
        let OnHost { weight, moments: [first, second] } = self;
        let count = range.end - range.start;
        let addresses = [&*weight, first, second].map(|array| array.address(range.start));
        let numbers = [by.rate, by.beta1, by.beta2, by.epsilon, by.decay, by.correction1, by.correction2];
        let numbers = numbers.map(|number| u64::from(number.to_bits()));
        let cells: Vec<u64> = addresses.into_iter().chain([gradients, count]).chain(numbers).collect();
        // SAFETY: the parameters of adamw in their order, over four arrays of that many floats, which are ours.
        unsafe { host::adamw::adamw(&geometry::elementwise(count), &Arguments::new(&cells)) };
    }
}
