//! The optimizer offloaded to the host (ZeRO-Offload, Ren et al. 2021): its moments, and the weights that it updates, are in
//! pinned host memory. A step copies each gradient down, updates on the host, and copies the weight up.
//!
//! Device bytes: optimizer 0. Host bytes: 12·P, which is weights and two moments in fp32, and 4 · the largest gradient, where
//! they arrive one after the other. Over the bus in a step: 8·P bytes. By arithmetic.

use super::adamw;
use super::optimizer::{State, Update};
use crate::pinned::Pinned;
use crate::{Device, Error, Tensor};
use memscope_client::Category;
use memscope_kernels::{Arguments, geometry, host};
use std::rc::Rc;

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

/// Where gradients arrive, the largest of which has `elements`.
pub(crate) fn arrivals(device: &Rc<Device>, elements: u64) -> Result<Pinned, Error> {
    Pinned::floats(device, Category::Gradients, "offload.gradient", elements)
}

/// Updates a parameter by AdamW on the host, with all cores.
pub(crate) fn update(parameter: &mut Update<'_>, arrivals: &mut Pinned, rate: f32, step: i32) -> Result<(), Error> {
    let by = adamw::numbers(rate, step, parameter.is_matrix());
    let Update { name, weight, gradient, state, .. } = parameter;
    if state.is_none() {
        **state = Some(State::OnHost(OnHost::new(name, weight)?));
    }
    let Some(State::OnHost(OnHost { weight: updated, moments: [first, second] })) = state else {
        unreachable!("only offloading made the state")
    };
    arrivals.copy_from(gradient)?;
    // Where nothing is computed the memory stays untouched, and so costs the host nothing.
    if weight.device().computes() {
        let elements = weight.elements();
        let addresses = [&*updated, &*first, &*second, &*arrivals].map(Pinned::address);
        let numbers = [by.rate, by.beta1, by.beta2, by.epsilon, by.decay, by.correction1, by.correction2];
        let numbers = numbers.map(|number| u64::from(number.to_bits()));
        let cells: Vec<u64> = addresses.into_iter().chain([elements]).chain(numbers).collect();
        // SAFETY: the parameters of adamw in their order, over four arrays of that many floats, which are ours.
        unsafe { host::adamw::adamw(&geometry::elementwise(elements), &Arguments::new(&cells)) };
    }
    updated.copy_to(weight)
}

impl OnHost {
    /// The weight as it is, and moments of 0.
    fn new(name: &str, weight: &Tensor) -> Result<OnHost, Error> {
        let floats = |category, what: &str| {
            Pinned::floats(weight.device(), category, &format!("{name}.{what}"), weight.elements())
        };
        let mut copy = floats(Category::Weights, "master")?;
        copy.copy_from(weight)?;
        let mut moments = [floats(Category::Optimizer, "exp_avg")?, floats(Category::Optimizer, "exp_avg_sq")?];
        if weight.device().computes() {
            moments.iter_mut().for_each(|moment| moment.fill(0.0));
        }
        Ok(OnHost { weight: copy, moments })
    }
}
