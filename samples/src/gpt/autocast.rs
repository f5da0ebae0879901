//! Where casts lie in mixed precision, and the cache of cast weights (techniques/precision.rs).
//!
//! Owns: casts between the type of weights and residual stream and that of matrix products. Where these are one type, nothing
//! here does anything. Refuses: to decide which operations run in which type: forward and backward allocate their results.

use super::parameter::Parameter;
use super::pass::Pass;
use crate::techniques::Keeping;
use crate::tensor::Element;
use crate::{Error, Tensor, operations};
use memscope_client::Category;
use std::ops::Deref;
use std::rc::Rc;

/// A weight as a matrix product reads it.
pub(crate) enum InProduct<'a> {
    Itself(&'a Tensor),
    Cast(Rc<Tensor>),
}

impl Deref for InProduct<'_> {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        match self {
            InProduct::Itself(weight) => weight,
            InProduct::Cast(cast) => cast,
        }
    }
}

impl Pass<'_> {
    /// What matrix products take and give.
    pub fn of_products(&self) -> Element {
        self.plan.techniques.precision().of_products()
    }

    /// The weight for a product: cast once, and kept while autocast lasts and while a product's backward needs it.
    pub fn in_product<'a>(&self, parameter: &'a Parameter) -> Result<InProduct<'a>, Error> {
        parameter.in_product(self.of_products())
    }

    /// A product has read the parameter's cast, and its backward pass will, unless it is computed again until then.
    pub fn keep_cast(&self, parameter: &Parameter) {
        if !matches!(self.keeping, Keeping::Dropped { .. }) {
            parameter.keep_cast();
        }
    }

    /// A result of a product, or of what runs in its type, that is kept for backward.
    pub fn product_activation(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        self.activation_of(self.of_products(), name, shape)
    }

    /// The same, as a temporary.
    pub fn product_workspace(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::of(self.device, Category::Workspace, name, self.of_products(), shape)
    }

    /// What only products read: in mixed precision a temporary, since they keep their own cast of it.
    pub fn before_product(&self, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        match self.plan.techniques.precision().is_mixed() {
            true => self.workspace(name, shape),
            false => self.activation(name, shape),
        }
    }

    /// The cast for a product that keeps it; none where the tensor has the type already.
    pub fn kept_cast(&self, tensor: &Tensor) -> Result<Option<Tensor>, Error> {
        if tensor.element() == self.of_products() {
            return Ok(None);
        }
        let cast = self.product_activation(&format!("{}.cast", tensor.name()), &[tensor.elements()])?;
        operations::cast(&cast, tensor, false)?;
        Ok(Some(cast))
    }

    /// What a product reads and keeps: the tensor, or its cast, and then the tensor may go.
    pub fn kept_for_product(&self, tensor: Rc<Tensor>) -> Result<Rc<Tensor>, Error> {
        Ok(self.kept_cast(&tensor)?.map_or(tensor, Rc::new))
    }

    /// A gradient in the type of products, a temporary; none where it has that already.
    pub fn gradient_for_product(&self, gradient: &Tensor) -> Result<Option<Tensor>, Error> {
        if gradient.element() == self.of_products() {
            return Ok(None);
        }
        let cast = self.product_workspace(&format!("{}.cast", gradient.name()), &[gradient.elements()])?;
        operations::cast(&cast, gradient, false)?;
        Ok(Some(cast))
    }

    /// A temporary in the type of the residual stream.
    pub fn in_stream(&self, tensor: Tensor) -> Result<Tensor, Error> {
        if tensor.element() == self.stream() {
            return Ok(tensor);
        }
        let raised = self.workspace(&format!("{}.cast", tensor.name()), &[tensor.elements()])?;
        operations::cast(&raised, &tensor, false)?;
        Ok(raised)
    }
}

/// Has `add` write a gradient in this type, or add to it if that is true. Where the gradient has another type, `add` writes a
/// temporary, which is then cast to the gradient, or added.
pub(super) fn write_in(
    element: Element,
    (gradient, accumulate): (&Tensor, bool),
    add: &mut dyn FnMut(&Tensor, bool) -> Result<(), Error>,
) -> Result<(), Error> {
    if gradient.element() == element {
        return add(gradient, accumulate);
    }
    let (name, shape) = (format!("{}.low", gradient.name()), [gradient.elements()]);
    let low = Tensor::of(gradient.device(), Category::Workspace, &name, element, &shape)?;
    add(&low, false)?;
    operations::cast(gradient, &low, accumulate)
}
