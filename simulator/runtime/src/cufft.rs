//! cuFFT: plans.
//!
//! Owns: their handles, and which of them can be executed. Refuses: workspaces. No documentation says how large one is, so a plan
//! asks for none, and the report says that they are left out; and transforms over several devices.

use crate::api::{Out, store};
use crate::calls;
use crate::status::CufftResult;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most dimensions of a transform.
const MOST_DIMENSIONS: c_int = 3;

/// A plan is created without a transform, and then made for one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plan {
    Created,
    Made,
}

struct Plans {
    plans: BTreeMap<c_int, Plan>,
    next: c_int,
}

static PLANS: Mutex<Plans> = Mutex::new(Plans { plans: BTreeMap::new(), next: 1 });

fn plans() -> MutexGuard<'static, Plans> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What becomes of a plan; an error for a handle that is none.
fn plan(handle: c_int) -> Result<Plan, CufftResult> {
    plans().plans.get(&handle).copied().ok_or(CufftResult::INVALID_PLAN)
}

api! {
    simulated fn cufftCreate(handle: Out<'_, c_int>) -> CufftResult {
        let mut plans = plans();
        let new = plans.next;
        plans.next += 1;
        plans.plans.insert(new, Plan::Created);
        store(handle, new);
        Ok(())
    }
    simulated fn cufftDestroy(handle: c_int) -> CufftResult {
        plans().plans.remove(&handle).map(|_| ()).ok_or(CufftResult::INVALID_PLAN)
    }
    simulated fn cufftSetAutoAllocation(handle: c_int, _automatic: c_int) -> CufftResult {
        // A workspace of nothing is not allocated by anybody.
        plan(handle).map(|_| ())
    }
    simulated fn cufftSetStream(handle: c_int, _stream: usize) -> CufftResult { plan(handle).map(|_| ()) }
    simulated fn cufftSetWorkArea(handle: c_int, _area: *mut c_void) -> CufftResult { plan(handle).map(|_| ()) }
    size fn cufftXtMakePlanMany(
        handle: c_int, dimensions: c_int, sizes: *const c_longlong,
        _in_embed: *const c_longlong, _in_stride: c_longlong, _in_distance: c_longlong, _in_kind: c_int,
        _out_embed: *const c_longlong, _out_stride: c_longlong, _out_distance: c_longlong, _out_kind: c_int,
        batch: c_longlong, bytes: Out<'_, usize>, _kind: c_int,
    ) -> CufftResult {
        if plan(handle)? == Plan::Made {
            return Err(CufftResult::INVALID_PLAN);
        }
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) || sizes.is_null() {
            return Err(CufftResult::INVALID_VALUE);
        }
        // SAFETY: the program gives a size for each dimension.
        let sizes = unsafe { std::slice::from_raw_parts(sizes, dimensions as usize) };
        if batch < 1 || sizes.iter().any(|&size| size < 1) {
            return Err(CufftResult::INVALID_SIZE);
        }
        plans().plans.insert(handle, Plan::Made);
        store(bytes, 0);
        Ok(())
    }
    no_op fn cufftXtExec(handle: c_int, _input: *mut c_void, _output: *mut c_void, _direction: c_int) -> CufftResult {
        if plan(handle)? == Plan::Created {
            return Err(CufftResult::INVALID_PLAN);
        }
        calls::computed::<CufftResult>("cufftXtExec");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    fn made(handle: c_int, sizes: &[c_longlong], batch: c_longlong) -> (CufftResult, Option<usize>) {
        let (count, null) = (sizes.len() as c_int, std::ptr::null());
        let mut bytes = MaybeUninit::new(77_usize);
        // SAFETY: sizes of so many dimensions, and a place for a number that has one.
        unsafe {
            let place = Some(&mut bytes);
            let result =
                cufftXtMakePlanMany(handle, count, sizes.as_ptr(), null, 1, 1, 0, null, 1, 1, 4, batch, place, 4);
            (result, Some(bytes.assume_init()).filter(|&bytes| bytes != 77))
        }
    }

    #[test]
    fn a_plan_is_made_once_and_gone_when_destroyed() {
        let mut handle = MaybeUninit::new(0);
        // SAFETY: a place for a handle, which then has one.
        let handle = unsafe {
            assert_eq!(cufftCreate(Some(&mut handle)), CufftResult(0));
            handle.assume_init()
        };
        for (sizes, batch, expected) in [
            (&[8, 0][..], 1, CufftResult::INVALID_SIZE),
            (&[8], 0, CufftResult::INVALID_SIZE),
            (&[], 1, CufftResult::INVALID_VALUE),
            (&[2, 2, 2, 2], 1, CufftResult::INVALID_VALUE),
        ] {
            assert_eq!(made(handle, sizes, batch), (expected, None), "{sizes:?}");
        }
        assert_eq!(made(handle, &[8, 9], 3), (CufftResult(0), Some(0)));
        assert_eq!(made(handle, &[8, 9], 3), (CufftResult::INVALID_PLAN, None));
        // SAFETY: handles are only looked up.
        unsafe {
            assert_eq!(cufftSetStream(handle, 1), CufftResult(0));
            assert_eq!(cufftDestroy(handle), CufftResult(0));
            assert_eq!(cufftSetStream(handle, 1), CufftResult::INVALID_PLAN);
            assert_eq!(cufftDestroy(handle), CufftResult::INVALID_PLAN);
        }
    }
}
