//! Floats in pinned host memory: one allocation of the driver, tagged with what it is for, freed when dropped.
//!
//! Owns: such memory, and what its floats are. Refuses: to be read by kernels: it is for copies to and from the device, and for
//! the host.

use crate::device::{Device, driver_error};
use crate::tensor::Element;
use crate::{Error, Tensor};
use cudarc::driver::result;
use half::bf16;
use half::slice::HalfFloatSliceExt;
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// An array in pinned host memory.
pub(crate) struct Pinned {
    bytes: *mut u8,
    elements: u64,
    element: Element,
    // Its context owns the memory.
    _device: Rc<Device>,
}

impl Pinned {
    /// Allocates fp32 whose values are undefined.
    ///
    /// # Errors
    /// [`Error::Driver`] when the host has no such memory left.
    pub fn floats(device: &Rc<Device>, category: Category, name: &str, elements: u64) -> Result<Pinned, Error> {
        Pinned::of(device, category, name, Element::Fp32, elements)
    }

    /// Allocates floats of this kind, fp32 or bf16, whose values are undefined.
    ///
    /// # Errors
    /// As [`Pinned::floats`].
    pub fn of(
        device: &Rc<Device>,
        category: Category,
        name: &str,
        element: Element,
        elements: u64,
    ) -> Result<Pinned, Error> {
        let bytes = (elements * element.bytes()) as usize;
        // SAFETY: the context of `device` is current on this thread; the memory is freed in drop.
        let bytes =
            unsafe { result::malloc_host(bytes, 0) }.map_err(|error| driver_error("cuMemHostAlloc", name, error))?;
        memscope::tag(bytes as u64, category, name);
        Ok(Pinned { bytes: bytes.cast(), elements, element, _device: Rc::clone(device) })
    }

    /// Where element `index` is.
    pub fn address(&self, index: u64) -> u64 {
        self.bytes as u64 + index * self.element.bytes()
    }

    /// What its floats are.
    pub fn element(&self) -> Element {
        self.element
    }

    /// `count` of its floats from `first` on, which are `T`.
    fn part<T>(&mut self, first: u64, count: u64) -> &mut [T] {
        assert!(first + count <= self.elements && size_of::<T>() as u64 == self.element.bytes());
        // SAFETY: inside, as asserted, and ours alone while this is borrowed; any bits are a float.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.cast::<T>().add(first as usize), count as usize) }
    }

    /// Every float becomes `value`; they are fp32.
    pub fn fill(&mut self, value: f32) {
        self.part::<f32>(0, self.elements).fill(value);
    }

    /// bf16 floats from `first` on, widened.
    pub fn widened(&mut self, first: u64, into: &mut [f32]) {
        self.part::<bf16>(first, into.len() as u64).convert_to_f32_slice(into);
    }

    /// bf16 floats from `first` on become these, to the nearest.
    pub fn round(&mut self, first: u64, from: &[f32]) {
        self.part::<bf16>(first, from.len() as u64).convert_from_f32_slice(from);
    }

    /// `count` of its fp32 floats from `first` on.
    pub fn exact(&mut self, first: u64, count: u64) -> &mut [f32] {
        self.part(first, count)
    }

    /// Its first floats become the tensor's, which are of the same kind, after everything launched before.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn copy_from(&mut self, tensor: &Tensor) -> Result<(), Error> {
        // SAFETY: as many bytes on both sides, and the copy is finished when the call returns.
        unsafe { result::memcpy_dtoh_sync(self.first(tensor), tensor.address()) }
            .map_err(|error| driver_error("cuMemcpyDtoH", tensor.name(), error))
    }

    /// The tensor's floats become its first ones, which are of the same kind.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn copy_to(&mut self, tensor: &Tensor) -> Result<(), Error> {
        // SAFETY: as many bytes on both sides, and the copy is finished when the call returns.
        unsafe { result::memcpy_htod_sync(tensor.address(), self.first(tensor)) }
            .map_err(|error| driver_error("cuMemcpyHtoD", tensor.name(), error))
    }

    /// As many bytes as the tensor has.
    fn first(&mut self, tensor: &Tensor) -> &mut [u8] {
        assert!(tensor.elements() <= self.elements && tensor.element() == self.element, "{}", tensor.name());
        let bytes = tensor.elements() * self.element.bytes();
        // SAFETY: inside, as asserted, and ours alone while this is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.bytes, bytes as usize) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated here and freed once; copies are finished when their calls return.
        let _ = unsafe { result::free_host(self.bytes.cast()) };
    }
}
