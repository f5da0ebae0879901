"""What memscope's interposer runs inside a Python program at its first import of torch.

Owns: what only Python knows of a training program: the module that is running, the phase, the step, and which tensors are
parameters, gradients, optimizer states and inputs. Refuses: to change what the program computes, prints or raises. Each part
is installed on its own, and one that cannot be is a notice in memscope's report; an error of ours never reaches the program.

This is no module: the interposer evaluates it in a namespace of its own. Figures of cost are those of a call: a module's call
writes one word of memory, everything else is done once a root module, a phase or a parameter.

No code of the program's is run from here, but `__tensor_flatten__` of tensors that wrap others: its objects are read through the
methods of PyTorch's and Python's own classes, while no mode of the program's sees that (`unobserved`). No weak reference to a tensor is made:
torch.utils.swap_tensors refuses such tensors. An exception that passes leaves no trace of it (`untraced`).
"""

import ctypes
import importlib
import itertools
import os
import sys
import threading
import types
import weakref

# The code of this text, with all that is in it.
ALL = sys._getframe().f_code
WEIGHTS, GRADIENTS, OPTIMIZER, INPUTS = 1, 2, 4, 5

torch = None
# PyTorch's own class of tensors, and how to read one without being seen by the program's modes and classes of tensors.
Tensor = data_ptr = unobserved = None


# ---- the interposer's functions (src/python.rs, src/api.rs)


def native(name, arguments, result=None):
    function = getattr(library, name)
    function.argtypes, function.restype = arguments, result
    return function


library = ctypes.PyDLL(None)
send_text = native("memscope_shim_text", [ctypes.c_char_p], ctypes.c_uint64)
send_tag = native("memscope_shim_tag", [ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64])
send_notice = native("memscope_shim_notice", [ctypes.c_char_p])
send_phase = native("memscope_phase", [ctypes.c_char_p])
send_step = native("memscope_step", [ctypes.c_uint64])
send_refused = native("memscope_shim_refused", [ctypes.c_uint32, ctypes.c_char_p])
scope_word = native("memscope_shim_scope", [], ctypes.c_void_p)
lacks_hooks = native("memscope_shim_lacks_hooks", [], ctypes.c_int)
wait_for_torch = native("memscope_shim_wait", [])

failures = set()


def failed(part, error):
    """Says once that a part does not work here."""
    if part not in failures:
        failures.add(part)
        send_notice(f"PyTorch: {part} are not followed: {type(error).__name__}: {error}".encode(errors="replace"))


texts = {}


def text(name):
    """The id of a text, which is sent once; 0 for none."""
    known = texts.get(name)
    if known is None:
        known = texts[name] = send_text(name.encode(errors="replace")) if name else 0
    return known


# ---- tensors


def address(tensor):
    """Where a tensor's memory is; 0 where it has none (meta, fake, sparse tensors, those of functorch)."""
    try:
        return data_ptr(tensor)
    except Exception:
        pass
    try:
        inner, _ = tensor.__tensor_flatten__()
        return address(getattr(tensor, inner[0]))
    except Exception:
        return 0


def tag(tensor, category, name=0):
    send_tag(address(tensor), category, name)


# Items that are looked at in one list or dictionary of a batch.
MOST_ITEMS = 1000


def tensors_in(value, depth=4):
    """The tensors in nested lists, tuples and dictionaries."""
    kind = type(value)
    if issubclass(kind, Tensor):
        yield value
    elif not depth:
        return
    elif issubclass(kind, (list, tuple)):
        for item in itertools.islice((list if issubclass(kind, list) else tuple).__iter__(value), MOST_ITEMS):
            yield from tensors_in(item, depth - 1)
    elif issubclass(kind, dict):
        for item in list(itertools.islice(dict.values(value), MOST_ITEMS)):
            yield from tensors_in(item, depth - 1)


class Facts:
    """What is known of objects, by their identity, until they are gone. (Modules may define their own equality.)"""

    def __init__(self):
        self.by_id = {}

    def get(self, thing):
        known = self.by_id.get(id(thing))
        return known[1] if known is not None and known[0]() is thing else None

    def put(self, thing, facts):
        key, by_id = id(thing), self.by_id
        by_id[key] = (weakref.ref(thing, lambda _: by_id.pop(key, None)), facts)
        return facts


# ---- phases and steps, of the whole process

phase = ""


def enter_phase(name):
    global phase
    if name != phase:
        phase = name
        send_phase(name.encode() or None)


# How many steps have begun, and whether the last one has not ended.
steps, in_step = 0, False
# Ids of the optimizers that have stepped in this step, and in the one before.
stepped, expected = set(), set()


def begin_step():
    """A step begins with what is done for it: a forward pass that records gradients, a backward pass or an optimizer.

    What lies between (evaluation, a checkpoint that is saved) counts to the step that was done.
    """
    global steps, in_step
    if not in_step:
        in_step = True
        steps += 1
        send_step(steps)


def end_step():
    global expected, in_step
    expected = set(stepped)
    stepped.clear()
    in_step = False


def optimizer_stepped(optimizer):
    """A step ends when every optimizer of the step before has stepped: a GAN has two."""
    stepped.add(id(optimizer))
    if stepped >= expected:
        end_step()


# ---- modules


class Place(threading.local):
    """Where a thread is: its word in the interposer, and how deep it is in modules."""

    def __init__(self):
        self.word = ctypes.c_uint64.from_address(scope_word())
        self.depth = 0
        # The phase before the outermost call.
        self.before = ""


place = Place()
# How many backward passes run, one inside another, and the threads that called for them.
backwards = 0
backward_threads = []
# Of a module: the id of its path.
paths = Facts()
# Of a root module: [the generation in which its tensors were told, how often since, whether it has parameters].
roots = Facts()
# Grows when parameters are made or moved.
generation = 0

WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# Wrappers whose part of a name is an ordinary one.
PARALLEL = ("DistributedDataParallel", "DataParallel")


def clean(name):
    """A name without the parts that wrappers add."""
    if "_orig_mod" in name or "_wrapped_module" in name:
        name = ".".join(part for part in name.split(".") if part not in WRAPPERS)
    return name


def held(module, kind):
    """A module's own table of `_modules`, `_parameters` or `_buffers`, without what it has none of."""
    table = vars(module).get(kind)
    return [(name, part) for name, part in list(table.items()) if part is not None] if table else []


def walk(root, prefix="", seen=None):
    """(path, module) of `root` and all that is in it, each once; wrappers are not in the paths."""
    seen = set() if seen is None else seen
    if id(root) not in seen:
        seen.add(id(root))
        yield prefix, root
        parallel = type(root).__name__ in PARALLEL
        for name, module in held(root, "_modules"):
            hidden = name in WRAPPERS or parallel and name == "module"
            yield from walk(module, prefix if hidden else f"{prefix}.{name}" if prefix else name, seen)


def name_modules(root):
    """Gives each module in `root` its path: the class of the root, and the names from there."""
    found = list(walk(root))
    # A wrapper has the path of what it wraps.
    top = type([module for path, module in found if not path][-1]).__name__
    for path, module in found:
        paths.put(module, text(f"{top}.{path}" if path else top))


def tell_tensors(root):
    """Tags what `root` holds; true if there are parameters."""
    told = set()
    for path, module in walk(root):
        prefix = f"{path}." if path else ""
        for name, parameter in held(module, "_parameters"):
            # A weight that several modules share has its first name.
            if id(parameter) not in told:
                told.add(id(parameter))
                tell_parameter(parameter, clean(prefix + name))
        for name, buffer in held(module, "_buffers"):
            tag(buffer, WEIGHTS, text(clean(prefix + name)))
    return bool(told)


def tell_parameter(parameter, name):
    """Tags a parameter and its gradient, and each gradient that it gets from now on."""
    at = address(parameter)
    if not at:
        return
    send_tag(at, WEIGHTS, text(name))
    # A tensor that stands for a parameter (functional_call) may be no leaf: asking for its gradient would warn.
    if not parameter.is_leaf or not parameter.requires_grad:
        return
    tell_gradient(parameter, name)
    watch = watch_of(parameter)
    if watch is None:
        watch = Watch(name)
        parameter.register_post_accumulate_grad_hook(watch)
    watch.name = name


def tell_gradient(parameter, name):
    gradient = parameter.grad
    if gradient is not None:
        tag(gradient, GRADIENTS, text(f"{name}.grad") if name else 0)


class Watch:
    """The hook of a parameter that tells its gradients; PyTorch copies it neither with deepcopy nor to a file."""

    def __init__(self, name):
        self.name = name

    def __call__(self, parameter):
        with unobserved():
            tell_gradient(parameter, self.name)


def watch_of(parameter):
    """The hook of ours that a parameter has, if it has."""
    hooks = parameter._post_accumulate_grad_hooks
    return next((hook for hook in hooks.values() if type(hook) is Watch), None) if hooks else None


def enter_root(module, arguments):
    """A thread's outermost call of a module."""
    if backwards:
        # A checkpoint computes again what it did not keep.
        enter_phase("recompute")
        return
    told = roots.get(module)
    if told is None or told[0] != generation:
        told = roots.put(module, [generation, 0, False])
        name_modules(module)
    if told[1] < 2:
        # The second time for what a lazy module made in its first call.
        told[1] += 1
        told[2] = tell_tensors(module)
    place.before = phase
    if not torch.is_grad_enabled():
        enter_phase("inference")
    else:
        begin_step()
        if phase != "loss" or told[2]:
            enter_phase("forward")
    for tensor in tensors_in(arguments):
        if not tensor.requires_grad:
            tag(tensor, INPUTS)


def leave_root():
    if backwards:
        enter_phase("backward")
    else:
        # A teacher's forward pass may lie between a model's and its loss.
        with unobserved():
            enter_phase("loss" if torch.is_grad_enabled() or place.before == "loss" else "")


def follow_calls():
    Module = torch.nn.Module
    plain = Module.__call__
    known_paths = paths.by_id

    def __call__(self, *args, **kwargs):
        at = place
        word = at.word
        before = word.value
        if not at.depth:
            try:
                with unobserved():
                    enter_root(self, (args, kwargs))
            except Exception as error:
                failed("modules", error)
        known = known_paths.get(id(self))
        try:
            at.depth += 1
            if known is not None and known[0]() is self:
                word.value = known[1]
            return plain(self, *args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        finally:
            word.value = before
            at.depth -= 1
            if not at.depth:
                leave_root()

    replace(Module, "__call__", __call__)
    # Dynamo holds a class for an ordinary module if it has the call that dynamo met first.
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        dynamo = sys.modules.get(name)
        if dynamo is not None and hasattr(dynamo, "unpatched_nn_module_call"):
            dynamo.unpatched_nn_module_call = __call__


def follow_parameters():
    """Parameters and buffers are told when a module gets them, and when it moves them (to, cuda, half, …)."""
    registration = torch.nn.modules.module

    def parameter_registered(module, name, parameter):
        global generation
        if parameter is not None:
            generation += 1
            with unobserved():
                tag(parameter, WEIGHTS, text(name))

    def buffer_registered(module, name, buffer):
        global generation
        if buffer is not None:
            # Some modules replace a buffer in every call.
            generation += paths.get(module) is None
            with unobserved():
                tag(buffer, WEIGHTS, text(name))

    skip(parameter_registered)
    skip(buffer_registered)
    skip(Watch.__call__)
    registration.register_module_parameter_registration_hook(parameter_registered)
    registration.register_module_buffer_registration_hook(buffer_registered)
    Module = torch.nn.Module
    plain = Module._apply

    def _apply(self, *args, **kwargs):
        global generation
        before = phase
        # Modules inside come here in the phase that is set now.
        outermost = before in BETWEEN
        try:
            if outermost:
                enter_phase("model")
            return plain(self, *args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        finally:
            if outermost:
                generation += 1
                try:
                    with unobserved():
                        tell_tensors(self)
                except Exception as error:
                    failed("moves of parameters", error)
                enter_phase(before)

    replace(Module, "_apply", _apply)


# ---- backward


def follow_backward():
    autograd = torch.autograd
    holders = [module for module in (autograd.graph, autograd) if hasattr(module, "_engine_run_backward")]
    if holders:
        running = in_backward(holders[0]._engine_run_backward)
        for module in holders:
            module._engine_run_backward = running
    else:
        # PyTorch 2.1 and 2.2
        autograd.backward = in_backward(autograd.backward)
        autograd.grad = in_backward(autograd.grad)


def in_backward(plain):
    def run(*args, **kwargs):
        global backwards
        at = place
        before, depth, word = phase, at.depth, at.word.value
        me = threading.get_ident()
        try:
            # Whatever interrupts this, what is undone below was done.
            backward_threads.append(me)
            backwards = len(backward_threads)
            if backwards == 1:
                begin_step()
            at.depth, at.word.value = 0, 0
            enter_phase("backward")
            return plain(*args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        finally:
            backward_threads.remove(me)
            backwards = len(backward_threads)
            at.depth, at.word.value = depth, word
            enter_phase("backward" if backwards else before if depth else "optimizer" if optimizing else "")

    return like(run, plain)


# ---- optimizers

# Whether an optimizer runs; some call forward and backward in its step (closures, as Lightning's).
optimizing = False
# Of an optimizer: (the identity of its states, how many there are, how often they were told).
optimizers = Facts()


def follow_optimizers():
    module = importlib.import_module("torch.optim.optimizer")

    def before(optimizer, args, kwargs):
        global optimizing
        optimizing = True
        try:
            if id(optimizer) in stepped:
                end_step()
            begin_step()
            with unobserved():
                tell_unknown(optimizer)
        except Exception as error:
            failed("optimizers", error)
        enter_phase("optimizer")

    def after(optimizer, args, kwargs):
        global optimizing
        optimizing = False
        try:
            with unobserved():
                tell_states(optimizer)
        except Exception as error:
            failed("states of optimizers", error)
        enter_phase("")
        optimizer_stepped(optimizer)

    skip(before)
    skip(after)
    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)


def tell_unknown(optimizer):
    """Tags parameters that no module has told, and their gradients."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.is_leaf and parameter.requires_grad and watch_of(parameter) is None:
                tag(parameter, WEIGHTS)
                tell_gradient(parameter, "")


def tell_states(optimizer):
    """Tags an optimizer's states if there are others than before."""
    state = optimizer.state
    known = optimizers.get(optimizer)
    same = known is not None and known[:2] == (id(state), len(state))
    if same and known[2] >= 2:
        return
    optimizers.put(optimizer, (id(state), len(state), known[2] + 1 if same else 1))
    for parameter, states in list(state.items()):
        watch = watch_of(parameter) if isinstance(parameter, Tensor) else None
        prefix = f"{watch.name}." if watch else ""
        for key, value in list(states.items()) if isinstance(states, dict) else [("state", states)]:
            for tensor in tensors_in(value):
                tag(tensor, OPTIMIZER, text(f"{prefix}{key}"))


# ---- data

# Phases in which no model and no optimizer runs.
BETWEEN = ("", "data", "loss")


def follow_data():
    Iterator = importlib.import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
    plain = Iterator.__next__

    def __next__(self):
        before = phase
        try:
            enter_phase("data")
            batch = plain(self)
        except BaseException as error:
            enter_phase("" if before in BETWEEN else before)
            untraced(error)
            raise
        # What is done with a batch before the model is called (moving it, augmenting it) makes inputs.
        if before not in BETWEEN:
            enter_phase(before)
        try:
            with unobserved():
                for tensor in tensors_in(batch):
                    tag(tensor, INPUTS)
        except Exception as error:
            failed("batches", error)
        return batch

    replace(Iterator, "__next__", __next__)


# ---- out of memory


def follow_refusals():
    """Tells which line asked for what the device refused. PyTorch calls its observers when it has given up, before it raises."""
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if attach is None:
        # A PyTorch for the CPU.
        return

    def refused(device, requested, total, free):
        try:
            send_refused(device, line_from(sys._getframe().f_back).encode(errors="replace"))
        except Exception as error:
            failed("lines that run out of memory", error)

    def watch():
        try:
            attach(refused)
        except Exception:
            # Allocators other than PyTorch's own have no observers; the module is told all the same.
            pass

    skip(refused)
    skip(watch)
    # Attaching initialises CUDA, which is the program's to do, or not.
    torch.cuda._lazy_call(watch)


def line_from(frame):
    """The innermost line of the program, and, where that is in a library, the line of the program's own that led there."""
    lines = program_lines(frame)
    node = ""
    if not lines and backward_threads:
        # The engine works on a thread of its own, on behalf of this one.
        lines = program_lines(sys._current_frames().get(backward_threads[-1]))
        node = backward_node()
    if not lines:
        return ""
    innermost = lines[0]
    own = next((line for line in lines if not is_library(line[0])), innermost)
    told = describe(innermost) + node
    return told if own is innermost else f"{told}, called from {describe(own)}"


def program_lines(frame):
    """The lines of a stack, innermost first, without those of PyTorch and of this shim."""
    inside = os.path.dirname(torch.__file__) + os.sep
    lines = []
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        made = file.startswith(("<memscope>", "<frozen", "<eval_with_key"))
        if not (made or file.startswith(inside) or "torchinductor_" in file):
            lines.append((file, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return lines


def is_library(file):
    return any(part in file for part in ("site-packages", "dist-packages", os.path.dirname(os.__file__) + os.sep))


def describe(line):
    file, number, function = line
    for folder in ("site-packages" + os.sep, "dist-packages" + os.sep):
        file = file.rpartition(folder)[2]
    here = os.getcwd() + os.sep
    file = file[len(here) :] if file.startswith(here) else file
    return f"{file}:{number}" if function == "<module>" else f"{file}:{number} in {function}"


def backward_node():
    """What autograd computes in this thread."""
    try:
        return f", for {torch._C._current_autograd_node().name()}"
    except Exception:
        return ""


# ---- installing


def untraced(error):
    """Takes the calling frame, the outermost yet, out of an exception's traceback: a bare `raise` does not add it again."""
    trace = error.__traceback__
    if trace is not None:
        error.__traceback__ = trace.tb_next


def like(function, plain):
    """`function` under the name and the words of what it stands for."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(plain, name))
    function.__wrapped__ = plain
    skip(function, plain)
    return function


def replace(owner, name, function):
    setattr(owner, name, like(function, getattr(owner, name)))


def skip(function, compiled=lambda *arguments: None):
    """Where torch.compile meets a call of a function of ours in what it compiles, it takes `compiled` in its place."""
    function._torchdynamo_inline = compiled


def skip_all():
    """Keeps torch.compile out of all functions of ours: they run as they are, and what they call is compiled."""
    from torch._C._dynamo import eval_frame

    if hasattr(eval_frame, "skip_code"):
        skip_code = eval_frame.skip_code
    else:
        strategy = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT)

        def skip_code(code):
            eval_frame.set_code_exec_strategy(code, strategy)

    todo = [ALL]
    while todo:
        code = todo.pop()
        skip_code(code)
        todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def install():
    global torch, Tensor, data_ptr, unobserved
    torch = sys.modules["torch"]
    Tensor = torch.Tensor
    data_ptr = Tensor.data_ptr
    unobserved = torch._C.DisableTorchFunction
    os.register_at_fork(after_in_child=after_fork)
    if lacks_hooks():
        send_notice(
            f"PyTorch {torch.__version__} lacks functions through which memscope sees tensors: what the driver gave is "
            "recorded, tensors are not".encode()
        )
    try:
        skip_all()
    except Exception as error:
        failed("compiled functions", error)
    parts = {
        "calls of modules": follow_calls,
        "parameters": follow_parameters,
        "backward passes": follow_backward,
        "optimizers": follow_optimizers,
        "batches": follow_data,
        "lines that run out of memory": follow_refusals,
    }
    for part, follow in parts.items():
        try:
            follow()
        except Exception as error:
            failed(part, error)


def after_fork():
    """A child has a log of its own, in which nothing was said yet."""
    global phase
    phase = ""
    texts.clear()
    paths.by_id.clear()
    roots.by_id.clear()


def begin():
    """Torch has been loaded, or has failed to: then the program may try again."""
    if getattr(sys.modules.get("torch"), "Tensor", None) is None:
        wait_for_torch()
        return
    try:
        install()
    except Exception as error:
        failed("tensors", error)


def begin_after(spec):
    """For a torch that is being loaded: its spec says when it is ready, or has failed. (A wrapped loader would be in tracebacks.)"""
    plain = type(spec)

    class Loading(plain):
        @property
        def _initializing(self):
            return True

        @_initializing.setter
        def _initializing(self, value):
            self.__class__ = plain
            self._initializing = value
            begin()

    for name in ("__module__", "__name__", "__qualname__"):
        setattr(Loading, name, getattr(plain, name))
    spec.__dict__.pop("_initializing", None)
    spec.__class__ = Loading


spec = getattr(sys.modules.get("torch"), "__spec__", None)
if getattr(spec, "_initializing", False):
    begin_after(spec)
else:
    failed("tensors", ImportError("torch is not loaded by Python's own loader"))
