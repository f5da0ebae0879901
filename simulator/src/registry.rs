//! Live handles of one kind (contexts, streams, events, modules, functions).
//!
//! Owns: which handles exist. A handle is a number that is never used twice, so that a destroyed one is recognised.
//! Refuses: to be dereferenced: no handle is an address.

use crate::error::CUresult;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A handle as it crosses the C interface (CUcontext, CUstream, …).
pub type Handle = usize;

static NEXT: AtomicUsize = AtomicUsize::new(0x5150_0000_0040);

/// A number that no handle of this process had before.
pub fn new_handle() -> Handle {
    NEXT.fetch_add(0x40, Ordering::Relaxed)
}

/// The live objects of one kind.
pub struct Registry<T>(RwLock<BTreeMap<Handle, Arc<T>>>);

impl<T> Registry<T> {
    /// An empty registry.
    pub const fn new() -> Registry<T> {
        Registry(RwLock::new(BTreeMap::new()))
    }

    /// Adds an object under a new handle.
    pub fn insert(&self, object: T) -> Handle {
        let handle = new_handle();
        self.insert_at(handle, object);
        handle
    }

    /// Adds an object under a handle of [`new_handle`].
    pub fn insert_at(&self, handle: Handle, object: T) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::new(object));
    }

    /// The object with this handle.
    pub fn get(&self, handle: Handle) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// The object with this handle, or CUDA_ERROR_INVALID_HANDLE.
    pub fn find(&self, handle: Handle) -> Result<Arc<T>, CUresult> {
        self.get(handle).ok_or(CUresult::ERROR_INVALID_HANDLE)
    }

    /// Removes the object with this handle, or says CUDA_ERROR_INVALID_HANDLE.
    pub fn remove(&self, handle: Handle) -> Result<Arc<T>, CUresult> {
        let removed = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        removed.ok_or(CUresult::ERROR_INVALID_HANDLE)
    }

    /// Removes every object for which `gone` holds.
    pub fn remove_where(&self, gone: impl Fn(&T) -> bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|_, object| !gone(object));
    }

    /// All objects as of now.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_handle_is_not_given_again() {
        let registry = Registry::new();
        let first = registry.insert(1);
        registry.remove(first).unwrap();
        let second = registry.insert(2);
        assert_ne!(first, second);
        assert_eq!(registry.get(first), None);
        assert_eq!(registry.remove(first), Err(CUresult::ERROR_INVALID_HANDLE));
    }
}
