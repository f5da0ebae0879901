//! A mutex that outlives a panic of its holder: the driver answers CUDA_ERROR_UNKNOWN for the call that panicked, and
//! goes on answering others.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex without poisoning.
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
