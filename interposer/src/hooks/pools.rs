//! What pools of stream-ordered memory keep beyond what is allocated from them: the driver's own figures, asked for after calls that
//! may have changed them.
//!
//! Owns: which pools were met, and when they are asked: after an allocation or a free at most once in [`INTERVAL`]; after a trim,
//! another threshold, and where the program has waited for the device while one of them kept something (the driver gives memory back
//! then). Refuses: to ask in a process that uses no pool, and to ask while the driver is in a call of its own.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use memscope_wire::Event;
use memscope_wire::event::NO_DEVICE;

use crate::driver::{self, SUCCESS};
use crate::state::{Pool, State};
use crate::table::Row;
use crate::{clock, log, owner};

/// Ticks of a time-stamp counter, a few milliseconds; of a clock in nanoseconds it is about 17 ms.
const INTERVAL: u64 = 1 << 24;

/// Where an allocation came from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This pool.
    Pool(u64),
    /// The current pool of its device.
    Current,
}

/// Memory was allocated from a pool.
#[inline(always)]
pub fn taken(row: Row, state: &State, source: Source, device: u32) {
    let is_known = match source {
        Source::Pool(pool) => find(state, |known| known.handle.load(Relaxed) == pool).is_some(),
        // Another one may have become the current one: that is seen when it is time to ask.
        Source::Current => find(state, |known| known.device.load(Relaxed) == device).is_some(),
    };
    if !is_known || is_due(state) {
        ask_with(row, state, source, device);
    }
}

/// Memory was given back to some pool.
#[inline(always)]
pub fn given_back(row: Row, state: &State) {
    if find(state, |_| true).is_some() && is_due(state) {
        ask(row, state, |_| true);
    }
}

/// The program has waited for the device.
pub fn waited(row: Row, state: &State, result: c_int) {
    if result == SUCCESS && find(state, keeps).is_some() {
        ask(row, state, keeps);
    }
}

/// A pool was told to keep less, or it may keep more.
pub fn changed(row: Row, state: &State, pool: u64, result: c_int) {
    if result == SUCCESS {
        ask(row, state, |known| known.handle.load(Relaxed) == pool);
    }
}

fn keeps(pool: &Pool) -> bool {
    pool.kept.load(Relaxed) != 0
}

/// The first pool for which that holds.
#[inline(always)]
fn find(state: &State, wanted: impl Fn(&Pool) -> bool) -> Option<&Pool> {
    state.pools.iter().take_while(|pool| pool.handle.load(Acquire) != 0).find(|pool| wanted(pool))
}

#[inline(always)]
fn is_due(state: &State) -> bool {
    clock::ticks(state.clock.load(Relaxed)).wrapping_sub(state.pools_asked.load(Relaxed)) > INTERVAL
}

#[cold]
#[inline(never)]
fn ask_with(row: Row, state: &State, source: Source, device: u32) {
    let pool = match source {
        Source::Pool(pool) => pool,
        Source::Current if device == NO_DEVICE => 0,
        Source::Current => driver::preserving_errno(|| driver::current_pool(device)),
    };
    // The places are taken in turn, and never given up: a handle that is given again is a pool again.
    if pool != 0 {
        let takes = |place: &&Pool| match place.handle.compare_exchange(0, pool, AcqRel, Acquire) {
            Ok(_) => true,
            Err(known) => known == pool,
        };
        if let Some(place) = state.pools.iter().find(takes) {
            place.device.store(device, Relaxed);
        }
    }
    ask(row, state, |_| true);
}

#[cold]
#[inline(never)]
fn ask(row: Row, state: &State, wanted: impl Fn(&Pool) -> bool) {
    state.pools_asked.store(clock::ticks(state.clock.load(Relaxed)), Relaxed);
    for place in state.pools.iter().take_while(|pool| pool.handle.load(Acquire) != 0).filter(|pool| wanted(pool)) {
        let pool = place.handle.load(Relaxed);
        // A pool that is gone keeps nothing.
        let bytes = driver::preserving_errno(|| driver::kept_by_pool(pool)).unwrap_or(0);
        if place.kept.swap(bytes, Relaxed) != bytes {
            let device = place.device.load(Relaxed);
            driver::preserving_errno(|| driver::introduce(state, device));
            owner::settle();
            log::append(&Event::PoolReserve { pool, bytes, device, row: row as u16 });
        }
    }
}

macro_rules! waits {
    (($dollar:tt) $($shape:ident($($argument:ident: $type:ty),*);)*) => {
        $(waits! { @one $dollar $shape ($($argument: $type),*) })*
    };
    (@one $dollar:tt $shape:ident ($($argument:ident: $type:ty),*)) => {
        macro_rules! $shape {
            ($dollar name:ident) => {
                hook! { $dollar name($($argument: $type),*) |call| {
                    observe(Row::$dollar name, call, |state, result| {
                        pools::waited(Row::$dollar name, state, result);
                        None
                    })
                } }
            };
        }
        pub(super) use $shape;
    };
}

waits! {
    ($)
    wait();
    wait_for(what: *mut c_void);
}

macro_rules! pool_trim {
    ($name:ident) => {
        hook! { $name(pool: u64, keep: usize) |call| {
            observe(Row::$name, call, |state, result| { pools::changed(Row::$name, state, pool, result); None })
        } }
    };
}
pub(super) use pool_trim;

macro_rules! pool_setting {
    ($name:ident) => {
        hook! { $name(pool: u64, attribute: c_int, value: *mut c_void) |call| {
            observe(Row::$name, call, |state, result| { pools::changed(Row::$name, state, pool, result); None })
        } }
    };
}
pub(super) use pool_setting;

macro_rules! pool_end {
    ($name:ident) => {
        hook! { $name(handle: u64) |call| {
            observe(Row::$name, call, |state, result| {
                pools::changed(Row::$name, state, handle, result);
                let (object, row) = (Object::Pool, Row::$name as u16);
                (result == SUCCESS).then_some(Event::ObjectEnd { object, handle, row })
            })
        } }
    };
}
pub(super) use pool_end;
