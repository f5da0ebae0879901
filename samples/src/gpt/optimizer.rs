//! An optimizer step: which parameters are updated, in which order, in which scopes.
//!
//! Owns: the count of steps. Refuses: the updates themselves, and what they keep (techniques/).

use super::parameter::Parameter;
use super::scopes;
use super::trainer::module_of;
use crate::Error;
use crate::pinned::Pinned;
use crate::techniques::{self, Offload, OptimizerArguments, Update, foreach, offload};

/// The optimizer.
pub(crate) struct Optimizer {
    arguments: OptimizerArguments,
    offload: Option<Offload>,
    learning_rate: f32,
    steps: i32,
    /// Where gradients arrive on the host, if the optimizer is offloaded and has been used.
    arrivals: Option<Pinned>,
}

impl Optimizer {
    pub fn new(arguments: OptimizerArguments, learning_rate: f32) -> Optimizer {
        Optimizer { arguments, offload: None, learning_rate, steps: 0, arrivals: None }
    }

    /// The same, with this on the host.
    pub fn with_offload(self, offload: Option<Offload>) -> Optimizer {
        Optimizer { offload, ..self }
    }

    /// Another step begins.
    pub fn begin_step(&mut self) {
        self.steps += 1;
    }

    /// The step that began is not taken: the next has its number.
    pub fn skip_step(&mut self) {
        self.steps -= 1;
    }

    /// Updates every parameter that has a gradient.
    pub fn step(&mut self, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        match (self.offload, self.arguments.foreach) {
            (Some(Offload::Optimizer), _) => self.step_on_host(parameters),
            (None, true) => self.step_together(parameters),
            (None, false) => parameters.into_iter().try_for_each(|parameter| self.update(parameter)),
        }
    }

    /// One parameter after the other on the host.
    fn step_on_host(&mut self, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        let mut updates: Vec<Update<'_>> = parameters.into_iter().filter_map(Parameter::for_update).collect();
        let Some(largest) = updates.iter().map(|update| update.weight).max_by_key(|weight| weight.elements()) else {
            return Ok(());
        };
        let arrivals = match &mut self.arrivals {
            Some(arrivals) => arrivals,
            none => none.insert(offload::arrivals(largest)?),
        };
        updates.iter_mut().try_for_each(|update| {
            let _scopes = scopes::module(module_of(update.name));
            offload::update(update, arrivals, self.learning_rate, self.steps)
        })
    }

    /// One operation for every parameter, then the next.
    fn step_together(&self, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        let mut updates: Vec<Update<'_>> = parameters.into_iter().filter_map(Parameter::for_update).collect();
        for update in &mut updates {
            let _scopes = scopes::module(module_of(update.name));
            foreach::moments(update, self.steps)?;
        }
        let mut denominators = Vec::new();
        for update in &updates {
            let _scopes = scopes::module(module_of(update.name));
            denominators.push(foreach::denominator(update, self.steps)?);
        }
        for (update, denominator) in updates.iter().zip(&denominators) {
            let _scopes = scopes::module(module_of(update.name));
            foreach::apply(update, denominator, self.learning_rate, self.steps)?;
        }
        Ok(())
    }

    /// Updates one parameter, if it has a gradient.
    pub fn update(&self, parameter: &mut Parameter) -> Result<(), Error> {
        let Some(mut update) = parameter.for_update() else { return Ok(()) };
        let _scopes = scopes::module(module_of(update.name));
        techniques::update(&self.arguments, &mut update, self.learning_rate, self.steps)
    }
}
