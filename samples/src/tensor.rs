//! A named tensor: one allocation of the driver, tagged with what it is for, freed when dropped.
//!
//! Owns: device memory. Refuses: to pool or reuse it. The allocation is the synchronous cuMemAlloc, not cuMemAllocAsync:
//! an asynchronous one comes out of a pool that reserves more than was asked for and gives it back later, and then the
//! device's free memory no longer says what the tensors sum to. cuMemFree also waits for kernels that still use the
//! memory, so that a tensor may be dropped as soon as its last kernel is launched.

use crate::Error;
use crate::device::{Device, driver_error};
use crate::techniques::Budget;
use cudarc::driver::{result, sys};
use memscope_client::{self as memscope, Category};
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;

/// An array on the device, of 4-byte floats, 8-byte integers, or bytes.
pub struct Tensor {
    address: u64,
    elements: u64,
    bytes: u64,
    category: Category,
    name: String,
    device: Rc<Device>,
    /// False of a part, which is freed with the whole.
    owned: bool,
}

/// Neighbouring elements of a tensor, as a tensor without an allocation of its own.
pub(crate) struct Part<'a>(Tensor, PhantomData<&'a Tensor>);

impl Deref for Part<'_> {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

impl Tensor {
    /// Allocates floats of this shape, whose values are undefined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::Driver`] when the driver refuses for another reason.
    pub fn floats(device: &Rc<Device>, category: Category, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::allocate(device, category, name, shape.iter().product(), size_of::<f32>() as u64)
    }

    /// Allocates integers and copies `values` there.
    ///
    /// # Errors
    /// As [`Tensor::floats`].
    pub fn integers(device: &Rc<Device>, category: Category, name: &str, values: &[i64]) -> Result<Tensor, Error> {
        let tensor = Tensor::allocate(device, category, name, values.len() as u64, size_of::<i64>() as u64)?;
        // SAFETY: the allocation has room for the values, and the copy is finished when the call returns.
        unsafe { result::memcpy_htod_sync(tensor.address, values) }
            .map_err(|error| driver_error("cuMemcpyHtoD", name, error))?;
        Ok(tensor)
    }

    /// Allocates integers of this shape, whose values are undefined.
    ///
    /// # Errors
    /// As [`Tensor::floats`].
    pub fn indices(device: &Rc<Device>, category: Category, name: &str, shape: &[u64]) -> Result<Tensor, Error> {
        Tensor::allocate(device, category, name, shape.iter().product(), size_of::<i64>() as u64)
    }

    /// Allocates bytes, zeros.
    ///
    /// # Errors
    /// As [`Tensor::floats`].
    pub fn bytes(device: &Rc<Device>, category: Category, name: &str, count: u64) -> Result<Tensor, Error> {
        let tensor = Tensor::allocate(device, category, name, count, 1)?;
        // SAFETY: the allocation has that many bytes, and nothing else uses them yet.
        unsafe { result::memset_d8_sync(tensor.address, 0, count as usize) }
            .map_err(|error| driver_error("cuMemsetD8", name, error))?;
        Ok(tensor)
    }

    fn allocate(
        device: &Rc<Device>,
        category: Category,
        name: &str,
        elements: u64,
        element_bytes: u64,
    ) -> Result<Tensor, Error> {
        let bytes = elements * element_bytes;
        if let Some((Budget { fraction, total, .. }, left)) = device.exceeded_by(bytes) {
            let (tensor, category) = (name.to_owned(), word(category));
            let (free, total, fraction) = (Some(left), Some(total), Some(fraction));
            return Err(Error::OutOfMemory { tensor, category, bytes, free, total, fraction });
        }
        // SAFETY: the context of `device` is current on this thread; the memory is freed in drop.
        let address = unsafe { result::malloc_sync(bytes as usize) }.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let information = result::mem_get_info().ok();
                Error::OutOfMemory {
                    tensor: name.to_owned(),
                    category: word(category),
                    bytes,
                    free: information.map(|(free, _)| free as u64),
                    total: information.map(|(_, total)| total as u64),
                    fraction: None,
                }
            }
            _ => driver_error("cuMemAlloc", name, error),
        })?;
        memscope::tag(address, category, name);
        device.ledger().add(category, bytes);
        Ok(Tensor { address, elements, bytes, category, name: name.to_owned(), device: Rc::clone(device), owned: true })
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many floats, integers or bytes it holds.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Bytes that it takes on the device.
    pub fn size_in_bytes(&self) -> u64 {
        self.bytes
    }

    /// Its name, e.g. `transformer.h.3.attn.qkv.weight`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `elements` of it from `first` on.
    pub(crate) fn part(&self, first: u64, elements: u64) -> Part<'_> {
        assert!(first + elements <= self.elements, "{elements} from {first} on of {}", self.name);
        let element_bytes = self.bytes / self.elements;
        let part = Tensor {
            address: self.address + first * element_bytes,
            elements,
            bytes: elements * element_bytes,
            category: self.category,
            name: self.name.clone(),
            device: Rc::clone(&self.device),
            owned: false,
        };
        Part(part, PhantomData)
    }

    /// The device that holds it.
    pub(crate) fn device(&self) -> &Rc<Device> {
        &self.device
    }

    /// Its floats, copied to the host, after everything launched before.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn to_host(&self) -> Result<Vec<f32>, Error> {
        let mut values = vec![0.0_f32; self.elements as usize];
        // SAFETY: the allocation holds that many floats, and the copy is finished when the call returns.
        unsafe { result::memcpy_dtoh_sync(&mut values, self.address) }
            .map_err(|error| driver_error("cuMemcpyDtoH", &self.name, error))?;
        Ok(values)
    }

    /// Replaces its floats.
    ///
    /// # Errors
    /// [`Error::Driver`].
    ///
    /// # Panics
    /// When `values` are not as many as the tensor's.
    pub fn set(&mut self, values: &[f32]) -> Result<(), Error> {
        assert_eq!(values.len() as u64, self.elements, "values for {}", self.name);
        // SAFETY: the allocation has room for the values, and the copy is finished when the call returns.
        unsafe { result::memcpy_htod_sync(self.address, values) }
            .map_err(|error| driver_error("cuMemcpyHtoD", &self.name, error))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        // SAFETY: allocated by this tensor and freed once. An error has been reported by an earlier call already.
        let _ = unsafe { result::free_sync(self.address) };
        self.device.ledger().remove(self.category, self.bytes);
    }
}

/// The category in memscope's word.
fn word(category: Category) -> &'static str {
    match category {
        Category::Unknown => "unknown",
        Category::Weights => "weights",
        Category::Gradients => "gradients",
        Category::Activations => "activations",
        Category::Optimizer => "optimizer",
        Category::Inputs => "inputs",
        Category::Workspace => "workspace",
    }
}
