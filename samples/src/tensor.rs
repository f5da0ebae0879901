//! A named tensor: one allocation, tagged with what it is for, freed when dropped.
//!
//! Owns: device memory. Refuses: to know whether the driver or a pool gives it (device.rs). The driver's allocation is the
//! synchronous cuMemAlloc, not cuMemAllocAsync: an asynchronous one comes out of a pool that reserves more than was asked for
//! and gives it back later, and then the device's free memory no longer says what the tensors sum to. cuMemFree also waits for
//! kernels that still use the memory, so that a tensor may be dropped as soon as its last kernel is launched; a pool gives it
//! only to later kernels of the same stream.

use crate::Error;
use crate::device::{Device, driver_error};
use crate::techniques::Budget;
use cudarc::driver::result;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use half::{bf16, f16};
use memscope_client::{self as memscope, Category};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// What a float is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// 4 bytes.
    Fp32,
    /// 2 bytes: 5 bits of exponent, 10 of fraction.
    Fp16,
    /// 2 bytes: 8 bits of exponent, as fp32 has, and 7 of fraction.
    Bf16,
}

impl Element {
    /// Its size.
    pub fn bytes(self) -> u64 {
        if self == Element::Fp32 { 4 } else { 2 }
    }

    /// As kernels take it.
    pub(crate) fn code(self) -> u32 {
        self as u32
    }
}

/// An array on the device, of floats, 8-byte integers, or bytes.
pub struct Tensor {
    /// 0 while its memory is given back.
    address: Cell<u64>,
    elements: u64,
    element: Element,
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
        Tensor::of(device, category, name, Element::Fp32, shape)
    }

    /// Allocates floats of this kind and shape, whose values are undefined.
    ///
    /// # Errors
    /// As [`Tensor::floats`].
    pub fn of(
        device: &Rc<Device>,
        category: Category,
        name: &str,
        element: Element,
        shape: &[u64],
    ) -> Result<Tensor, Error> {
        let mut tensor = Tensor::allocate(device, category, name, shape.iter().product(), element.bytes())?;
        tensor.element = element;
        Ok(tensor)
    }

    /// Allocates integers and copies `values` there.
    ///
    /// # Errors
    /// As [`Tensor::floats`].
    pub fn integers(device: &Rc<Device>, category: Category, name: &str, values: &[i64]) -> Result<Tensor, Error> {
        let tensor = Tensor::allocate(device, category, name, values.len() as u64, size_of::<i64>() as u64)?;
        // SAFETY: the allocation has room for the values, and the copy is finished when the call returns.
        unsafe { result::memcpy_htod_sync(tensor.address(), values) }
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
        unsafe { result::memset_d8_sync(tensor.address(), 0, count as usize) }
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
        let address = Cell::new(Tensor::memory(device, category, name, bytes)?);
        Ok(Tensor {
            address,
            elements,
            element: Element::Fp32,
            bytes,
            category,
            name: name.to_owned(),
            device: Rc::clone(device),
            owned: true,
        })
    }

    /// The address of so much memory, tagged.
    fn memory(device: &Rc<Device>, category: Category, name: &str, bytes: u64) -> Result<u64, Error> {
        if let Some((Budget { fraction, total, .. }, left)) = device.exceeded_by(bytes) {
            let (tensor, category) = (name.to_owned(), word(category));
            let (free, total, fraction) = (Some(left), Some(total), Some(fraction));
            return Err(Error::OutOfMemory { tensor, category, bytes, free, total, fraction });
        }
        let allocated = device.allocate(bytes).map_err(|error| driver_error("cuMemAlloc", name, error))?;
        let address = allocated.ok_or_else(|| {
            let information = result::mem_get_info().ok();
            Error::OutOfMemory {
                tensor: name.to_owned(),
                category: word(category),
                bytes,
                free: information.map(|(free, _)| free as u64),
                total: information.map(|(_, total)| total as u64),
                fraction: None,
            }
        })?;
        memscope::tag(address, category, name);
        device.ledger().add(category, bytes);
        Ok(address)
    }

    /// The floats in this range, as a tensor that shares their memory and is not tagged.
    ///
    /// # Safety
    /// The view must be dropped, or not be used any more, when this tensor's memory is freed.
    pub(crate) unsafe fn view(&self, name: &str, range: Range<u64>) -> Tensor {
        assert!(range.end <= self.elements, "{name}: {range:?} of {}", self.elements);
        Tensor {
            address: Cell::new(self.address() + self.element.bytes() * range.start),
            elements: range.end - range.start,
            element: self.element,
            bytes: 0,
            category: self.category,
            name: name.to_owned(),
            device: Rc::clone(&self.device),
            owned: false,
        }
    }

    /// Gives the memory back, and with it the values, until [`Tensor::take_memory`].
    pub(crate) fn give_back_memory(&self) {
        if self.owned && self.address.get() != 0 {
            self.device.free(self.address.take());
            self.device.ledger().remove(self.category, self.bytes);
        }
    }

    /// Has memory again, with undefined values, if it was given back.
    ///
    /// # Errors
    /// As [`Tensor::floats`].
    pub(crate) fn take_memory(&self) -> Result<(), Error> {
        if self.address.get() == 0 {
            self.address.set(Tensor::memory(&self.device, self.category, &self.name, self.bytes)?);
        }
        Ok(())
    }

    /// Its address on the device.
    ///
    /// # Panics
    /// While its memory is given back.
    pub fn address(&self) -> u64 {
        let address = self.address.get();
        assert!(address != 0, "{} has no memory now", self.name);
        address
    }

    /// How many floats, integers or bytes it holds.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Bytes that it takes on the device.
    pub fn size_in_bytes(&self) -> u64 {
        self.bytes
    }

    /// What its floats are; of integers and bytes it says nothing.
    pub fn element(&self) -> Element {
        self.element
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
            address: Cell::new(self.address() + first * element_bytes),
            elements,
            element: self.element,
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
        Ok(match self.element {
            Element::Fp32 => self.copied_to_host(0.0_f32)?,
            Element::Fp16 => self.copied_to_host(f16::ZERO)?.to_f32_vec(),
            Element::Bf16 => self.copied_to_host(bf16::ZERO)?.to_f32_vec(),
        })
    }

    fn copied_to_host<T: Copy>(&self, zero: T) -> Result<Vec<T>, Error> {
        let mut values = vec![zero; self.elements as usize];
        // SAFETY: the allocation holds that many, and the copy is finished when the call returns.
        unsafe { result::memcpy_dtoh_sync(&mut values, self.address()) }
            .map_err(|error| driver_error("cuMemcpyDtoH", &self.name, error))?;
        Ok(values)
    }

    /// Replaces its first floats.
    ///
    /// # Errors
    /// [`Error::Driver`].
    ///
    /// # Panics
    /// When `values` are more than the tensor's.
    pub(crate) fn set_first(&self, values: &[f32]) -> Result<(), Error> {
        assert!(values.len() as u64 <= self.elements, "values for {}", self.name);
        match self.element {
            Element::Fp32 => self.copy_from_host(values),
            Element::Fp16 => self.copy_from_host(&Vec::<f16>::from_f32_slice(values)),
            Element::Bf16 => self.copy_from_host(&Vec::<bf16>::from_f32_slice(values)),
        }
    }

    /// Replaces its floats.
    ///
    /// # Errors
    /// [`Error::Driver`].
    ///
    /// # Panics
    /// When `values` are not as many as the tensor's.
    pub fn set(&mut self, values: &[f32]) -> Result<(), Error> {
        self.write(values)
    }

    /// The same: what is on the device may change behind a shared reference, as with every kernel.
    pub(crate) fn write(&self, values: &[f32]) -> Result<(), Error> {
        assert_eq!(values.len() as u64, self.elements, "values for {}", self.name);
        self.set_first(values)
    }

    fn copy_from_host<T>(&self, values: &[T]) -> Result<(), Error> {
        // SAFETY: the allocation has room for the values, and the copy is finished when the call returns.
        unsafe { result::memcpy_htod_sync(self.address(), values) }
            .map_err(|error| driver_error("cuMemcpyHtoD", &self.name, error))
    }

    /// Floats from `at` on become `count` of the source's from `from` on.
    pub(crate) fn copy(&self, at: u64, source: &Tensor, from: u64, count: u64) -> Result<(), Error> {
        assert!(at + count <= self.elements && from + count <= source.elements, "{} from {}", self.name, source.name);
        assert_eq!(self.element, source.element, "{} from {}", self.name, source.name);
        let bytes = self.element.bytes();
        let (to, from) = (self.address() + bytes * at, source.address() + bytes * from);
        // SAFETY: both have that many floats from there on; kernels of the same stream wait for the copy.
        unsafe { result::memcpy_dtod_sync(to, from, (bytes * count) as usize) }
            .map_err(|error| driver_error("cuMemcpyDtoD", &self.name, error))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        self.give_back_memory();
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
