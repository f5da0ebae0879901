//! Floats in pinned host memory: one allocation of the driver, tagged with what it is for, freed when dropped.
//!
//! Owns: such memory. Refuses: to be read by kernels: it is for copies to and from the device, and for the host.

use crate::device::{Device, driver_error};
use crate::{Error, Tensor};
use cudarc::driver::result;
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// An array in pinned host memory.
pub(crate) struct Pinned {
    floats: *mut f32,
    elements: u64,
    // Its context owns the memory.
    _device: Rc<Device>,
}

impl Pinned {
    /// Allocates floats whose values are undefined.
    ///
    /// # Errors
    /// [`Error::Driver`] when the host has no such memory left.
    pub fn floats(device: &Rc<Device>, category: Category, name: &str, elements: u64) -> Result<Pinned, Error> {
        let bytes = elements as usize * size_of::<f32>();
        // SAFETY: the context of `device` is current on this thread; the memory is freed in drop.
        let floats =
            unsafe { result::malloc_host(bytes, 0) }.map_err(|error| driver_error("cuMemHostAlloc", name, error))?;
        memscope::tag(floats as u64, category, name);
        Ok(Pinned { floats: floats.cast(), elements, _device: Rc::clone(device) })
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        self.floats as u64
    }

    /// Its first `count` floats.
    fn first(&mut self, count: u64) -> &mut [f32] {
        assert!(count <= self.elements);
        // SAFETY: ours alone while this is borrowed; any bits are a float.
        unsafe { std::slice::from_raw_parts_mut(self.floats, count as usize) }
    }

    /// Every float becomes `value`.
    pub fn fill(&mut self, value: f32) {
        self.first(self.elements).fill(value);
    }

    /// Its first floats become the tensor's, after everything launched before.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn copy_from(&mut self, tensor: &Tensor) -> Result<(), Error> {
        // SAFETY: as many floats on both sides, and the copy is finished when the call returns.
        unsafe { result::memcpy_dtoh_sync(self.first(tensor.elements()), tensor.address()) }
            .map_err(|error| driver_error("cuMemcpyDtoH", tensor.name(), error))
    }

    /// The tensor's floats become its first ones.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn copy_to(&mut self, tensor: &Tensor) -> Result<(), Error> {
        // SAFETY: as many floats on both sides, and the copy is finished when the call returns.
        unsafe { result::memcpy_htod_sync(tensor.address(), self.first(tensor.elements())) }
            .map_err(|error| driver_error("cuMemcpyHtoD", tensor.name(), error))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated here and freed once; copies are finished when their calls return.
        let _ = unsafe { result::free_host(self.floats.cast()) };
    }
}
