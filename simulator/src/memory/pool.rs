//! Pools of stream-ordered memory.
//!
//! Owns: what a pool uses and what it keeps reserved. A pool keeps freed bytes up to its release threshold (0 unless
//! set), as documented; what is above goes back at once rather than at the next synchronisation, which a program cannot
//! tell apart. A pool of another process gives nothing here: it is a name for pointers that are imported. Refuses: addresses.

use super::shared::Share;
use crate::error::{CUresult, Status};
use crate::process::Process;
use crate::registry::{Handle, new_handle};
use std::collections::BTreeMap;

/// Numbers of the pool attributes (CUmemPool_attribute).
mod attribute {
    pub const RELEASE_THRESHOLD: i32 = 4;
    pub const RESERVED_CURRENT: i32 = 5;
    pub const RESERVED_HIGH: i32 = 6;
    pub const USED_CURRENT: i32 = 7;
    pub const USED_HIGH: i32 = 8;
}

struct Pool {
    physical: u32,
    ordinal: i32,
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
    threshold: u64,
    limit: u64,
    destroyed: bool,
    reuse: [i32; 3],
    is_exportable: bool,
    /// Whose it is, if it was imported.
    origin: Option<Share>,
}

/// The pools of this process.
pub struct Pools {
    pools: BTreeMap<Handle, Pool>,
    defaults: BTreeMap<i32, Handle>,
    current: BTreeMap<i32, Handle>,
}

impl Pools {
    /// No pools.
    pub const fn new() -> Pools {
        Pools { pools: BTreeMap::new(), defaults: BTreeMap::new(), current: BTreeMap::new() }
    }

    /// Makes a pool on a device. `limit` is its largest size in bytes; 0 for none.
    pub fn create(&mut self, ordinal: i32, physical: u32, limit: u64, is_exportable: bool) -> Handle {
        let handle = new_handle();
        let pool = Pool {
            physical,
            ordinal,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
            threshold: 0,
            limit,
            destroyed: false,
            reuse: [1; 3],
            is_exportable,
            origin: None,
        };
        self.pools.insert(handle, pool);
        handle
    }

    /// Takes in a pool that a process shares.
    pub fn import(&mut self, ordinal: i32, physical: u32, origin: Share) -> Handle {
        let handle = self.create(ordinal, physical, 0, false);
        if let Some(pool) = self.pools.get_mut(&handle) {
            pool.origin = Some(origin);
        }
        handle
    }

    /// What tells another process of a pool that was made for that, else CUDA_ERROR_INVALID_VALUE.
    pub fn share(&mut self, handle: Handle) -> Result<Share, CUresult> {
        let pool = self.find(handle)?;
        if !pool.is_exportable {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        Ok(Share::of_pool(handle as u64, pool.physical))
    }

    /// Whose an imported pool is, else CUDA_ERROR_INVALID_VALUE.
    pub fn origin(&mut self, handle: Handle) -> Result<Share, CUresult> {
        self.find(handle)?.origin.ok_or(CUresult::ERROR_INVALID_VALUE)
    }

    /// The device's default pool.
    pub fn default_of(&mut self, ordinal: i32, physical: u32) -> Handle {
        if let Some(&handle) = self.defaults.get(&ordinal) {
            return handle;
        }
        let handle = self.create(ordinal, physical, 0, false);
        self.defaults.insert(ordinal, handle);
        handle
    }

    /// The device's current pool, from which cuMemAllocAsync takes.
    pub fn current_of(&mut self, ordinal: i32, physical: u32) -> Handle {
        match self.current.get(&ordinal) {
            Some(&handle) => handle,
            _ => self.default_of(ordinal, physical),
        }
    }

    /// Makes a pool the current one of a device.
    pub fn set_current(&mut self, ordinal: i32, handle: Handle) -> Status {
        let pool = self.find(handle)?;
        if pool.ordinal != ordinal || pool.origin.is_some() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        self.current.insert(ordinal, handle);
        Ok(())
    }

    /// CUDA ordinal of a pool's device.
    pub fn ordinal(&mut self, handle: Handle) -> Result<i32, CUresult> {
        Ok(self.find(handle)?.ordinal)
    }

    /// Destroys a pool that is no default pool. What is allocated from it stays until it is freed.
    pub fn destroy(&mut self, process: &Process, handle: Handle) -> Status {
        if self.defaults.values().any(|&default| default == handle) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let pool = self.find(handle)?;
        (pool.threshold, pool.destroyed) = (0, true);
        self.trim(process, handle, 0)?;
        self.pools.retain(|_, pool| !pool.destroyed || pool.used > 0);
        self.current.retain(|_, current| *current != handle);
        Ok(())
    }

    /// Takes bytes for an allocation: first of what the pool keeps, then of the device.
    pub fn take(&mut self, process: &Process, handle: Handle, bytes: u64) -> Status {
        let pool = self.find(handle)?;
        if pool.destroyed || pool.origin.is_some() {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        if pool.limit > 0 && pool.used.saturating_add(bytes) > pool.limit {
            return Err(CUresult::ERROR_OUT_OF_MEMORY);
        }
        let (physical, missing) = (pool.physical, bytes.saturating_sub(pool.reserved - pool.used));
        if missing > 0 && process.charge(physical, missing).is_err() {
            // Its own cached bytes are not given back: they are part of what is being taken.
            self.release_cached_except(process, physical, handle);
            process.charge(physical, missing).map_err(|_| CUresult::ERROR_OUT_OF_MEMORY)?;
        }
        let pool = self.find(handle)?;
        pool.used += bytes;
        pool.reserved += missing;
        pool.used_high = pool.used_high.max(pool.used);
        pool.reserved_high = pool.reserved_high.max(pool.reserved);
        Ok(())
    }

    /// Gives an allocation's bytes back to the pool, and what exceeds its threshold to the device.
    pub fn give_back(&mut self, process: &Process, handle: Handle, bytes: u64) {
        let Ok(pool) = self.find(handle) else { return };
        pool.used -= bytes;
        let (kept, last) = (pool.threshold, pool.destroyed && pool.used == 0);
        let _ = self.trim(process, handle, kept);
        if last {
            self.pools.remove(&handle);
        }
    }

    /// Releases what the pool keeps beyond `keep` bytes.
    pub fn trim(&mut self, process: &Process, handle: Handle, keep: u64) -> Status {
        let pool = self.find(handle)?;
        let target = pool.used.max(keep.min(pool.reserved));
        process.release(pool.physical, pool.reserved - target);
        pool.reserved = target;
        Ok(())
    }

    /// Releases everything that pools keep on a device.
    pub fn release_cached(&mut self, process: &Process, physical: u32) {
        self.release_cached_except(process, physical, 0);
    }

    fn release_cached_except(&mut self, process: &Process, physical: u32, spared: Handle) {
        let of_device = |(handle, pool): (&Handle, &Pool)| (pool.physical == physical).then_some(*handle);
        for handle in self.pools.iter().filter_map(of_device).filter(|&handle| handle != spared).collect::<Vec<_>>() {
            let _ = self.trim(process, handle, 0);
        }
    }

    /// Value of an attribute: 32-bit for the reuse switches, else 64-bit.
    pub fn attribute(&mut self, handle: Handle, number: i32) -> Result<Value, CUresult> {
        let pool = self.find(handle)?;
        Ok(match number {
            1..=3 => Value::Int(pool.reuse[number as usize - 1]),
            attribute::RELEASE_THRESHOLD => Value::Long(pool.threshold),
            attribute::RESERVED_CURRENT => Value::Long(pool.reserved),
            attribute::RESERVED_HIGH => Value::Long(pool.reserved_high),
            attribute::USED_CURRENT => Value::Long(pool.used),
            attribute::USED_HIGH => Value::Long(pool.used_high),
            _ => return Err(CUresult::ERROR_INVALID_VALUE),
        })
    }

    /// Sets an attribute; the high marks can only be reset to the present value.
    pub fn set_attribute(&mut self, process: &Process, handle: Handle, number: i32, value: Value) -> Status {
        let pool = self.find(handle)?;
        match (number, value) {
            (1..=3, Value::Int(value)) => pool.reuse[number as usize - 1] = value,
            (attribute::RELEASE_THRESHOLD, Value::Long(threshold)) => {
                pool.threshold = threshold;
                self.trim(process, handle, threshold)?;
            }
            (attribute::RESERVED_HIGH, Value::Long(0)) => pool.reserved_high = pool.reserved,
            (attribute::USED_HIGH, Value::Long(0)) => pool.used_high = pool.used,
            _ => return Err(CUresult::ERROR_INVALID_VALUE),
        }
        Ok(())
    }

    fn find(&mut self, handle: Handle) -> Result<&mut Pool, CUresult> {
        self.pools.get_mut(&handle).ok_or(CUresult::ERROR_INVALID_VALUE)
    }
}

/// Value of a pool attribute, in the width that its documentation gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// `int`
    Int(i32),
    /// `cuuint64_t`
    Long(u64),
}

impl Value {
    /// True when the attribute is an `int`.
    pub fn is_int(number: i32) -> bool {
        matches!(number, 1..=3)
    }
}
