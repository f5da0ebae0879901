//! A parameter on the device: its weight, and what training adds to it.
//!
//! Owns: when a gradient comes into being, which is as in PyTorch: when backward first reaches it, until it is set to none.
//! The optimizer's state comes at the first optimizer step, for good (techniques/optimizer.rs).

use super::autocast::{InProduct, write_in};
use super::network::{Description, Initial};
use super::optimizer::Optimizer;
use crate::ranks::Group;
use crate::techniques::{Rank, State, Update, optimizer_in_backward, precision};
use crate::tensor::Element;
use crate::{Device, Error, Tensor, operations};
use memscope_client::Category;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// A parameter with its gradient and optimizer state.
pub struct Parameter {
    description: Description,
    weight: Tensor,
    /// The weight in the type of matrix products, from the first that reads it in a forward pass.
    cast: RefCell<Option<Rc<Tensor>>>,
    /// How many products' backward passes will read the cast.
    readers: Cell<u32>,
    seed: u64,
    gradient: Option<Tensor>,
    /// How many times the backward pass of one batch adds to the gradient, and has added since it was last taken away.
    uses: u32,
    added: u32,
    frozen: bool,
    state: Option<State>,
    /// This rank's part, where ranks share it out.
    part: Option<Part>,
}

/// A rank's part of a parameter: what its optimizer works on.
struct Part {
    range: Range<u64>,
    /// Between which elements the parameter is cut.
    unit: u64,
    /// Of a matrix also a matrix, whose rows are units if it has whole ones.
    shape: Vec<u64>,
    group: Group,
    /// Shares the memory of the whole weight, unless weights are shared out.
    weight: Tensor,
    /// Once it is summed over the ranks. Shares the memory of the whole gradient, unless gradients are shared out.
    gradient: Option<Tensor>,
}

impl Parameter {
    /// Allocates the weight and gives it its first values, made on the device.
    pub(crate) fn new(
        device: &Rc<Device>,
        description: Description,
        element: Element,
        seed: u64,
    ) -> Result<Parameter, Error> {
        let Description { name, shape, .. } = &description;
        let weight = Tensor::of(device, Category::Weights, name, element, shape)?;
        match description.initial {
            Initial::Constant(value) => operations::fill(&weight, value)?,
            Initial::Normal(deviation) if element == Element::Fp32 => {
                operations::init_normal(&weight, deviation, seed)?;
            }
            Initial::Normal(deviation) => {
                let exact = Tensor::floats(device, Category::Workspace, &format!("{name}.fp32"), shape)?;
                operations::init_normal(&exact, deviation, seed)?;
                operations::cast(&weight, &exact, false)?;
            }
        }
        Ok(Parameter {
            description,
            weight,
            cast: RefCell::new(None),
            readers: Cell::new(0),
            seed,
            gradient: None,
            uses: 1,
            added: 0,
            frozen: false,
            state: None,
            part: None,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// The weight.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// The weight, to be replaced.
    pub fn weight_mut(&mut self) -> &mut Tensor {
        self.drop_cast();
        &mut self.weight
    }

    /// The weight as a matrix product of this type reads it.
    pub(crate) fn in_product(&self, element: Element) -> Result<InProduct<'_>, Error> {
        if self.weight.element() == element {
            return Ok(InProduct::Itself(&self.weight));
        }
        let mut cast = self.cast.borrow_mut();
        if cast.is_none() {
            let Description { name, shape, .. } = &self.description;
            let made = Tensor::of(self.weight.device(), Category::Weights, &format!("{name}.cast"), element, shape)?;
            operations::cast(&made, &self.weight, false)?;
            *cast = Some(Rc::new(made));
        }
        Ok(InProduct::Cast(Rc::clone(cast.as_ref().expect("made above"))))
    }

    /// The backward pass of a product will read the cast.
    pub(crate) fn keep_cast(&self) {
        self.readers.set(self.readers.get() + 1);
    }

    /// The backward pass of one product has read the cast, which is freed if it was the last.
    pub(crate) fn release_cast(&self) {
        self.readers.set(self.readers.get().saturating_sub(1));
        self.drop_unread_cast();
    }

    /// Frees the cast of the weight, if there is one and no backward pass will read it: what autocast does where it ends.
    pub(crate) fn drop_unread_cast(&self) {
        if self.readers.get() == 0 {
            *self.cast.borrow_mut() = None;
        }
    }

    /// Frees the cast of the weight, if there is one: no backward pass will come.
    pub(crate) fn drop_cast(&self) {
        self.readers.set(0);
        self.drop_unread_cast();
    }

    /// The gradient, if backward has reached it.
    pub fn gradient(&self) -> Option<&Tensor> {
        self.gradient.as_ref()
    }

    /// What an update reads of the gradient: this rank's part, where there is one.
    pub(crate) fn summed_gradient(&self) -> Option<&Tensor> {
        self.part.as_ref().map_or(self.gradient.as_ref(), |part| part.gradient.as_ref())
    }

    /// The gradient to write to, and whether it holds values to be added to.
    pub(crate) fn reach_gradient(&mut self) -> Result<(&Tensor, bool), Error> {
        let accumulate = self.gradient.is_some();
        self.added += 1;
        if self.gradient.is_none() {
            let Description { name, shape, .. } = &self.description;
            let name = format!("{name}.grad");
            let (device, element) = (self.weight.device(), self.weight.element());
            self.gradient = Some(Tensor::of(device, Category::Gradients, &name, element, shape)?);
        }
        Ok((self.gradient.as_ref().expect("made above"), accumulate))
    }

    /// Has `add` write the gradient, or add to it, in this type.
    pub(crate) fn in_gradient(
        &mut self,
        element: Element,
        add: &mut dyn FnMut(&Tensor, bool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        write_in(element, self.reach_gradient()?, add)
    }

    /// The same for a part of a sum; the first part counts as reaching the gradient, the others add to it.
    pub(super) fn in_gradient_of_part(
        &mut self,
        is_first: bool,
        element: Element,
        add: &mut dyn FnMut(&Tensor, bool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if is_first {
            return self.in_gradient(element, add);
        }
        write_in(element, (self.gradient.as_ref().expect("the first part made it"), true), add)
    }

    /// Backward has added to the gradient. If nothing more is to come: where gradients are shared out, this rank's part of their
    /// sum stays of it; and an optimizer, if one is given, updates the parameter by the sum and frees the gradient.
    pub(crate) fn added(&mut self, rank: Option<&Rank>, optimizer: Option<&Optimizer>) -> Result<(), Error> {
        if !self.is_complete() {
            return Ok(());
        }
        let early = |rank: &&Rank| optimizer.is_some() || rank.parallel.shards_gradients() && self.is_shared_out();
        if let Some(rank) = rank.filter(early) {
            rank.reduce_one(self)?;
        }
        optimizer.map_or(Ok(()), |optimizer| optimizer_in_backward::complete(optimizer, self))
    }

    /// The backward pass adds to the gradient this many times, not once.
    pub(super) fn is_used(&mut self, uses: u32) {
        self.uses = uses;
    }

    /// It is not trained: backward computes no gradient of it.
    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// True when it is not trained.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// True when the backward pass of one batch has added to the gradient for the last time.
    pub(crate) fn is_complete(&self) -> bool {
        self.added == self.uses
    }

    /// How many numbers it is.
    pub(crate) fn elements(&self) -> u64 {
        self.weight.elements()
    }

    /// True if ranks have parts of it.
    pub(crate) fn is_shared_out(&self) -> bool {
        self.part.is_some()
    }

    /// From now on a part of it is this rank's, and the optimizer works on that part alone; unless it must stay whole.
    pub(crate) fn share_out(&mut self, rank: &Rank) -> Result<(), Error> {
        let Some(unit) = rank.unit(&self.description.shape) else { return Ok(()) };
        let range = rank.part(self.elements(), unit);
        let elements = range.end - range.start;
        let shape = match self.description.shape.len() {
            1 => vec![elements],
            _ if elements.is_multiple_of(unit) => vec![elements / unit, unit],
            _ => vec![1, elements],
        };
        let name = format!("{}.part", self.name());
        let weight = if rank.parallel.shards_weights() {
            let (device, element) = (self.weight.device(), self.weight.element());
            let part = Tensor::of(device, Category::Weights, &name, element, &shape)?;
            part.copy(0, &self.weight, range.start, elements)?;
            self.weight.give_back_memory();
            part
        } else {
            // SAFETY: the weight keeps its memory while both are in this parameter, which drops them together.
            unsafe { self.weight.view(&name, range.clone()) }
        };
        let group = rank.group.member(rank.group.rank());
        self.part = Some(Part { range, unit, shape, group, weight, gradient: None });
        Ok(())
    }

    /// The whole weight comes together from the ranks' parts, if they have parts of it.
    pub(crate) fn gather_weight(&self, rank: &Rank) -> Result<(), Error> {
        let Some(part) = &self.part else { return Ok(()) };
        self.weight.take_memory()?;
        rank.all_gather(&part.weight, &self.weight, part.unit)
    }

    /// Frees the whole weight, and its cast, which is made again where it is gathered, if the ranks have their parts.
    pub(crate) fn scatter_weight(&self) {
        if self.is_shared_out() {
            *self.cast.borrow_mut() = None;
            self.weight.give_back_memory();
        }
    }

    /// This rank's part of the gradient becomes its sum over the ranks. Where gradients are shared out, that is added to the part
    /// that is kept, if there is one, and the whole gradient is freed.
    pub(crate) fn reduce_gradient(&mut self, rank: &Rank) -> Result<(), Error> {
        let Parameter { gradient, part, .. } = self;
        let part = part.as_mut().expect("shared out when it was made");
        let whole = gradient.as_ref().expect("backward has reached it");
        let name = format!("{}.grad.part", self.description.name);
        // SAFETY: dropped before the whole one is, here or in free_gradient, and made anew when that is.
        let in_whole = || unsafe { whole.view(&name, part.range.clone()) };
        if !rank.parallel.shards_gradients() {
            let sum = in_whole();
            rank.reduce_scatter(whole, &sum, part.unit)?;
            part.gradient = Some(sum);
            return Ok(());
        }
        match &part.gradient {
            None => {
                let sum = Tensor::of(whole.device(), Category::Gradients, &name, whole.element(), &part.shape)?;
                rank.reduce_scatter(whole, &sum, part.unit)?;
                part.gradient = Some(sum);
            }
            Some(kept) => {
                let sum = in_whole();
                rank.reduce_scatter(whole, &sum, part.unit)?;
                operations::add(kept, kept, &sum)?;
            }
        }
        self.gradient = None;
        self.added = 0;
        Ok(())
    }

    /// Frees the gradient.
    pub(crate) fn free_gradient(&mut self) {
        if let Some(part) = &mut self.part {
            part.gradient = None;
        }
        self.gradient = None;
        self.added = 0;
    }

    /// Fills the gradient with zeros, if there is one, or this rank's part, if that is all that is kept.
    pub(crate) fn zero_gradient(&mut self) -> Result<(), Error> {
        self.added = 0;
        let part = self.part.as_ref().and_then(|part| part.gradient.as_ref());
        self.gradient.as_ref().or(part).map_or(Ok(()), |gradient| operations::fill(gradient, 0.0))
    }

    /// What an optimizer needs to update it; none before backward has reached it.
    pub(super) fn for_update(&mut self) -> Option<Update<'_>> {
        let Parameter { description: Description { name, shape, .. }, weight, gradient, state, part, seed, .. } = self;
        let (seed, whole) = (*seed, weight.elements());
        if let Some(Part { range, shape, group, weight, gradient, .. }) = part {
            let seed = precision::seed_from(seed, range.start);
            let group = Some(&*group);
            return Some(Update { name, shape, whole, group, weight, gradient: gradient.as_ref()?, seed, state });
        }
        Some(Update { name, shape, whole, group: None, weight, gradient: gradient.as_ref()?, seed, state })
    }

    /// The two moments in fp32, if the optimizer has made them.
    pub fn moments(&self) -> Option<&[Tensor; 2]> {
        match &self.state {
            Some(State::Moments(moments)) => Some(moments),
            _ => None,
        }
    }

    /// The velocity of momentum, if the optimizer has made it.
    pub fn velocity(&self) -> Option<&Tensor> {
        match &self.state {
            Some(State::Velocity(velocity)) => Some(velocity),
            _ => None,
        }
    }
}
