//! Functions of Python's for what the shim does in every call of a module and for every gradient: in Python they would take
//! longer than what they record.
//!
//! Owns: the thread's place among modules (`place`, `enter`, `leave`), and the hook of a parameter. Refuses: whatever is not the
//! ordinary case, which it hands to the shim: gradients of other classes than PyTorch's own, modes of the program's. All of
//! them run with the interpreter's lock; the shim does without them in a Python that has none.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use memscope_wire::{Category, Event, Origin, TextId};

use crate::interpreter::{Definition, NO_ARGUMENT, ONE_ARGUMENT, Object, Python};
use crate::{log, thread};

/// What the functions work with.
struct Tools {
    python: Python,
    /// Names of attributes.
    grad: Object,
    gradient: Object,
    /// What [`arrange`] was given, in its order: PyTorch's classes of tensors and of parameters, the function that gives a
    /// tensor's address, the function that counts the program's modes, and the shim's own hook.
    tensor: Object,
    parameter: Object,
    data_ptr: Object,
    modes: Object,
    unusual: Object,
}

struct Cell(UnsafeCell<MaybeUninit<Tools>>);

// SAFETY: written by `offer` and by `arrange`, before the functions that read it are in anybody's hands, under Python's lock.
unsafe impl Sync for Cell {}

static TOOLS: Cell = Cell(UnsafeCell::new(MaybeUninit::uninit()));

/// # Safety
/// [`offer`] has been called.
#[inline(always)]
unsafe fn tools<'a>() -> &'a Tools {
    // SAFETY: the caller's promise; see `Cell`.
    unsafe { (*TOOLS.0.get()).assume_init_ref() }
}

static ARRANGE: Definition = Definition::new(c"arrange", arrange, ONE_ARGUMENT);
static PLACE: Definition = Definition::new(c"place", place, NO_ARGUMENT);
static ENTER: Definition = Definition::new(c"enter", enter, ONE_ARGUMENT);
static LEAVE: Definition = Definition::new(c"leave", leave, ONE_ARGUMENT);
static HOOK: Definition = Definition::new(c"told", told, ONE_ARGUMENT);
static MAKE_ENTER: Definition = Definition::new(c"make_enter", make_enter, ONE_ARGUMENT);
static MAKE_HOOK: Definition = Definition::new(c"make_hook", make_hook, ONE_ARGUMENT);

/// Puts the functions into the shim's names; false when that cannot be done.
///
/// # Safety
/// The caller holds the interpreter's lock; `names` is a dictionary.
pub unsafe fn offer(python: Python, names: Object) -> bool {
    // SAFETY: the lock is held. What is made here lives as long as the program.
    unsafe {
        let (grad, gradient) = ((python.new_text)(c"grad".as_ptr()), (python.new_text)(c"gradient".as_ptr()));
        let nothing = null_mut();
        let tools = Tools {
            python,
            grad,
            gradient,
            tensor: nothing,
            parameter: nothing,
            data_ptr: nothing,
            modes: nothing,
            unusual: nothing,
        };
        let tools = (*TOOLS.0.get()).write(tools);
        let python = &tools.python;
        let mut done = !grad.is_null() && !gradient.is_null();
        for definition in [&ARRANGE, &PLACE, &LEAVE, &MAKE_ENTER, &MAKE_HOOK] {
            let function = (python.new_function)(definition, nothing, nothing);
            done = done && !function.is_null() && (python.set_item)(names, definition.name, function) == 0;
        }
        done
    }
}

/// A new reference to None.
unsafe fn none() -> Object {
    // SAFETY: the interpreter's lock is held.
    unsafe {
        let python = &tools().python;
        (python.keep)(python.none);
        python.none
    }
}

/// `arrange((Tensor, Parameter, data_ptr, modes, unusual))`, once, before a hook is made.
unsafe extern "C" fn arrange(_: Object, given: Object) -> Object {
    // SAFETY: the lock is held; no other reference to the tools is in use.
    unsafe {
        let tools = (*TOOLS.0.get()).assume_init_mut();
        let places =
            [&mut tools.tensor, &mut tools.parameter, &mut tools.data_ptr, &mut tools.modes, &mut tools.unusual];
        for (index, place) in places.into_iter().enumerate() {
            let item = (tools.python.tuple_item)(given, index as isize);
            if item.is_null() {
                return null_mut();
            }
            (tools.python.keep)(item);
            *place = item;
        }
        none()
    }
}

/// `place()`: the id of the path where the thread is, None outside of all modules.
unsafe extern "C" fn place(_: Object, _: Object) -> Object {
    let thread = thread::current();
    // SAFETY: the lock is held.
    unsafe { if thread.inside.get() == 0 { none() } else { (tools().python.new_integer)(thread.scope.get()) } }
}

/// `make_enter(paths)`: the function `enter(module)`, with the dictionary of paths: identity of a module to (weak reference to
/// it, id of its path).
unsafe extern "C" fn make_enter(_: Object, paths: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { (tools().python.new_function)(&ENTER, paths, null_mut()) }
}

/// The thread is in a module from now on; one without a path counts to the one that it is called in.
unsafe extern "C" fn enter(paths: Object, module: Object) -> Object {
    let thread = thread::current();
    thread.inside.set(1);
    // SAFETY: the lock is held; `paths` is what `make_enter` was given.
    unsafe {
        let python = &tools().python;
        let key = (python.new_address)(module);
        if key.is_null() {
            return null_mut();
        }
        let known = (python.value_of)(paths, key);
        (python.release)(key);
        if !known.is_null() {
            // Whoever else changes the dictionary meanwhile.
            (python.keep)(known);
            let here = (python.call)((python.tuple_item)(known, 0), null_mut());
            if here == module {
                thread.scope.set((python.integer_of)((python.tuple_item)(known, 1)));
            }
            if here.is_null() {
                (python.clear)()
            } else {
                (python.release)(here)
            }
            (python.release)(known);
        }
        none()
    }
}

/// `leave(before)`: the thread is where it was when `place` said `before`.
unsafe extern "C" fn leave(_: Object, before: Object) -> Object {
    let thread = thread::current();
    // SAFETY: the lock is held; `before` is what `place` gave.
    unsafe {
        let python = &tools().python;
        let outside = before == python.none;
        thread.scope.set(if outside { 0 } else { (python.integer_of)(before) });
        thread.inside.set(!outside as u64);
        none()
    }
}

/// `make_hook(watch)`: the hook of a parameter. `watch.gradient` is the id of the name of its gradient.
unsafe extern "C" fn make_hook(_: Object, watch: Object) -> Object {
    // SAFETY: the lock is held.
    unsafe { (tools().python.new_function)(&HOOK, watch, null_mut()) }
}

/// The hook `told(parameter)`: a parameter has got a gradient.
unsafe extern "C" fn told(watch: Object, parameter: Object) -> Object {
    // SAFETY: the lock is held; the shim has called `arrange`.
    unsafe {
        let tools = tools();
        match (tools.number_of(watch), tools.gradient_of(parameter)) {
            (Some(name), Some(address)) => {
                let (name, category) = (TextId(name), Category::Gradients);
                log::append(&Event::Tag { address, name, category, origin: Origin::Hooked });
                none()
            }
            _ => {
                (tools.python.clear)();
                tools.call_with(tools.unusual, [watch, parameter])
            }
        }
    }
}

impl Tools {
    /// The id in a watch.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn number_of(&self, watch: Object) -> Option<u64> {
        // SAFETY: the caller's promise; each object is checked before its use.
        unsafe { self.taken((self.python.attribute)(watch, self.gradient)) }
    }

    /// The number that a new reference is to, which is let go; `None` for null.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn taken(&self, number: Object) -> Option<u64> {
        // SAFETY: the caller's promise.
        unsafe {
            if number.is_null() {
                return None;
            }
            let value = (self.python.integer_of)(number);
            (self.python.release)(number);
            Some(value)
        }
    }

    /// Calls a function; null where it raised, or there was no memory for its arguments.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn call_with<const COUNT: usize>(&self, function: Object, given: [Object; COUNT]) -> Object {
        let python = &self.python;
        // SAFETY: the caller's promise; the tuple takes over a reference to each argument.
        unsafe {
            let arguments = (python.new_tuple)(COUNT as isize);
            if arguments.is_null() {
                return null_mut();
            }
            for (index, argument) in given.into_iter().enumerate() {
                (python.keep)(argument);
                (python.set_tuple_item)(arguments, index as isize, argument);
            }
            let result = (python.call)(function, arguments);
            (python.release)(arguments);
            result
        }
    }

    /// Where the gradient of a parameter is, if both are PyTorch's own and no mode of the program's would see the question.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn gradient_of(&self, parameter: Object) -> Option<u64> {
        let python = &self.python;
        // SAFETY: the caller's promise; each object is checked before its use.
        unsafe {
            let kind = self.kind_of(parameter);
            if kind != self.parameter && kind != self.tensor || self.has_modes() {
                return None;
            }
            let gradient = (python.attribute)(parameter, self.grad);
            if gradient.is_null() {
                return None;
            }
            let address = if self.kind_of(gradient) == self.tensor { self.address_of(gradient) } else { None };
            (python.release)(gradient);
            address
        }
    }

    /// The class of an object, to be compared only.
    unsafe fn kind_of(&self, object: Object) -> Object {
        // SAFETY: the interpreter's lock is held; the object keeps its class.
        unsafe {
            let kind = (self.python.kind_of)(object);
            (self.python.release)(kind);
            kind
        }
    }

    /// True when a mode of the program's is active, or that is not known.
    unsafe fn has_modes(&self) -> bool {
        // SAFETY: the interpreter's lock is held.
        unsafe {
            let count = (self.python.call)(self.modes, null_mut());
            if count.is_null() {
                return true;
            }
            let active = (self.python.small_integer_of)(count) != 0;
            (self.python.release)(count);
            active
        }
    }

    /// Where a tensor's memory is; `None` where it has none.
    unsafe fn address_of(&self, tensor: Object) -> Option<u64> {
        // SAFETY: the interpreter's lock is held.
        unsafe { self.taken(self.call_with(self.data_ptr, [tensor])).filter(|address| *address != 0) }
    }
}
