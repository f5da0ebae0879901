//! An optimizer step: which parameters are updated, in which order, in which scopes.
//!
//! Owns: the count of steps. Refuses: the updates themselves, and what they keep (techniques/).

use super::parameter::Parameter;
use super::scopes;
use super::trainer::module_of;
use crate::Error;
use crate::techniques::{self, OptimizerArguments, Update, foreach};

/// The optimizer.
pub(crate) struct Optimizer {
    arguments: OptimizerArguments,
    learning_rate: f32,
    steps: i32,
}

impl Optimizer {
    pub fn new(arguments: OptimizerArguments, learning_rate: f32) -> Optimizer {
        Optimizer { arguments, learning_rate, steps: 0 }
    }

    /// Another step begins.
    pub fn begin_step(&mut self) {
        self.steps += 1;
    }

    /// Updates every parameter that has a gradient.
    pub fn step(&self, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        match self.arguments.foreach {
            true => self.step_together(parameters),
            false => parameters.into_iter().try_for_each(|parameter| self.update(parameter)),
        }
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
