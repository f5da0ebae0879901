//! Contexts: primary ones, made ones, and each thread's stack of current ones.
//!
//! Owns: life and death of a context with everything in it. Refuses: per-context limits beyond remembering them.

use crate::device::Visible;
use crate::error::{CUresult, Status};
use crate::lock::Lock;
use crate::process::{Process, process};
use crate::registry::{Handle, Registry, new_handle};
use crate::{event, memory, module, stream};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A live context.
pub struct Context {
    /// Its handle.
    pub handle: Handle,
    /// Its device.
    pub device: Visible,
    /// Flags of its creation.
    pub flags: u32,
    /// A number unique in the process (cuCtxGetId).
    pub id: u64,
    /// Limits that were set (CUlimit to value).
    pub limits: Lock<BTreeMap<u32, usize>>,
}

#[derive(Clone, Copy)]
struct Primary {
    handle: Handle,
    references: u32,
    flags: u32,
}

static CONTEXTS: Registry<Context> = Registry::new();
static PRIMARIES: Lock<BTreeMap<i32, Primary>> = Lock::new(BTreeMap::new());

thread_local! {
    static STACK: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// The thread's stack; an empty one for a thread that is past its end.
fn with_stack<T>(act: impl FnOnce(&mut Vec<Handle>) -> T) -> T {
    let mut act = Some(act);
    let done = STACK.try_with(|stack| act.take().map(|act| act(&mut stack.borrow_mut())));
    match (done, act) {
        (Ok(Some(result)), _) => result,
        (_, Some(act)) => act(&mut Vec::new()),
        _ => unreachable!("the action ran or is still there"),
    }
}

/// Handle of the thread's current context; 0 when there is none.
pub fn current_handle() -> Handle {
    with_stack(|stack| stack.last().copied().unwrap_or(0))
}

/// The thread's current context.
pub fn current() -> Result<Arc<Context>, CUresult> {
    process()?;
    match current_handle() {
        0 => Err(CUresult::ERROR_INVALID_CONTEXT),
        handle => CONTEXTS.get(handle).ok_or(CUresult::ERROR_CONTEXT_IS_DESTROYED),
    }
}

/// The context with this handle; 0 means the current one.
pub fn find(handle: Handle) -> Result<Arc<Context>, CUresult> {
    match handle {
        0 => current(),
        handle => CONTEXTS.get(handle).ok_or(CUresult::ERROR_INVALID_CONTEXT),
    }
}

/// Replaces the top of the thread's stack; 0 removes it.
pub fn set_current(handle: Handle) -> Status {
    if handle != 0 {
        find(handle)?;
    }
    with_stack(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
    Ok(())
}

/// Pushes a context on the thread's stack.
pub fn push(handle: Handle) -> Status {
    if handle == 0 {
        return Err(CUresult::ERROR_INVALID_CONTEXT);
    }
    find(handle)?;
    with_stack(|stack| stack.push(handle));
    Ok(())
}

/// Pops the thread's stack.
pub fn pop() -> Result<Handle, CUresult> {
    with_stack(Vec::pop).ok_or(CUresult::ERROR_INVALID_CONTEXT)
}

/// Makes a context (cuCtxCreate) and pushes it.
pub fn create(ordinal: i32, flags: u32) -> Result<Handle, CUresult> {
    let process = process()?;
    let handle = new_handle();
    enter(process, handle, process.device(ordinal)?, flags)?;
    with_stack(|stack| stack.push(handle));
    Ok(handle)
}

/// Destroys a context made by [`create`].
pub fn destroy(handle: Handle) -> Status {
    let process = process()?;
    if handle == 0 || PRIMARIES.lock().values().any(|primary| primary.handle == handle) {
        return Err(CUresult::ERROR_INVALID_CONTEXT);
    }
    let context = find(handle)?;
    with_stack(|stack| {
        if stack.last() == Some(&handle) {
            stack.pop();
        }
    });
    leave(process, &context, false);
    Ok(())
}

/// Retains a device's primary context, which comes to life with the first reference.
pub fn retain_primary(ordinal: i32) -> Result<Handle, CUresult> {
    let process = process()?;
    let device = process.device(ordinal)?;
    let mut primaries = PRIMARIES.lock();
    let primary = primary_of(&mut primaries, ordinal);
    if primary.references == 0 {
        enter(process, primary.handle, device, primary.flags)?;
    }
    primary.references += 1;
    Ok(primary.handle)
}

/// Releases a device's primary context, which dies with the last reference.
pub fn release_primary(ordinal: i32) -> Status {
    let process = process()?;
    process.device(ordinal)?;
    let mut primaries = PRIMARIES.lock();
    let primary = primary_of(&mut primaries, ordinal);
    match primary.references {
        0 => return Err(CUresult::ERROR_INVALID_CONTEXT),
        1 => leave_handle(process, primary.handle, false),
        _ => {}
    }
    primary.references -= 1;
    Ok(())
}

/// Destroys a device's primary context whatever its references.
pub fn reset_primary(ordinal: i32) -> Status {
    let process = process()?;
    process.device(ordinal)?;
    let mut primaries = PRIMARIES.lock();
    let primary = primary_of(&mut primaries, ordinal);
    leave_handle(process, primary.handle, true);
    primary.references = 0;
    Ok(())
}

/// Flags of a device's primary context, and whether it is alive.
pub fn primary_state(ordinal: i32) -> Result<(u32, bool), CUresult> {
    process()?.device(ordinal)?;
    let mut primaries = PRIMARIES.lock();
    let primary = primary_of(&mut primaries, ordinal);
    Ok((primary.flags, primary.references > 0))
}

/// Sets the flags with which a device's primary context is made.
pub fn set_primary_flags(ordinal: i32, flags: u32) -> Status {
    process()?.device(ordinal)?;
    primary_of(&mut PRIMARIES.lock(), ordinal).flags = flags;
    Ok(())
}

fn primary_of(primaries: &mut BTreeMap<i32, Primary>, ordinal: i32) -> &mut Primary {
    primaries.entry(ordinal).or_insert_with(|| Primary { handle: new_handle(), references: 0, flags: 0 })
}

fn enter(process: &Process, handle: Handle, device: Visible, flags: u32) -> Status {
    static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    process.enter_context(device.physical)?;
    let id = NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    CONTEXTS.insert_at(handle, Context { handle, device, flags, id, limits: Lock::new(BTreeMap::new()) });
    Ok(())
}

fn leave_handle(process: &Process, handle: Handle, reset: bool) {
    if let Some(context) = CONTEXTS.get(handle) {
        leave(process, &context, reset);
    }
}

/// Takes everything in the context away, and the context's own bytes with the last one on the device; all memory of the
/// device's pools if it is a reset.
fn leave(process: &Process, context: &Context, reset: bool) {
    stream::finish_all();
    stream::destroy_all(context.handle);
    event::destroy_all(context.handle);
    module::destroy_all(context.handle);
    if CONTEXTS.remove(context.handle).is_err() {
        return;
    }
    let last = CONTEXTS.all().iter().all(|other| other.device.physical != context.device.physical);
    memory::leave_context(process, context, last, reset);
    if last {
        process.leave_context(context.device.physical);
    }
}
