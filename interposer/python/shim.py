"""What memscope's interposer runs inside a Python program at its first import of torch.

Owns: what only Python knows of a training program: the module that is running, the phase, the step, and which tensors are
parameters, gradients, optimizer states and inputs. Refuses: to change what the program computes, prints or raises. Each part
is installed on its own, and one that cannot be is a notice in memscope's report; an error of ours never reaches the program.

This is no module: the interposer evaluates it in a namespace of its own. Figures of cost are those of a call: a module's call
writes one word of memory, everything else is done once a root module, a phase or a parameter.
"""

import ctypes
import importlib
import importlib.util
import os
import sys
import threading
import types
import weakref

WEIGHTS, GRADIENTS, OPTIMIZER, INPUTS = 1, 2, 4, 5

torch = None
Tensor = ()


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
    """Where a tensor's memory is; 0 where it has none (meta, fake, sparse tensors)."""
    try:
        return tensor.data_ptr()
    except Exception:
        pass
    try:
        inner, _ = tensor.__tensor_flatten__()
        return address(getattr(tensor, inner[0]))
    except Exception:
        return 0


def tag(tensor, category, name=0):
    send_tag(address(tensor), category, name)


def tensors_in(value, depth=4):
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in list(value.values()):
            yield from tensors_in(item, depth - 1)


class Facts:
    """What is known of objects, by their identity, until they are gone. (Tensors and modules define their own equality.)"""

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
# Of a parameter: (its name, the hook that tells its gradient).
parameters = Facts()
# Grows when parameters are made or moved.
generation = 0

WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


def clean(name):
    """A name without the parts that wrappers add."""
    if "_orig_mod" in name or "_wrapped_module" in name:
        name = ".".join(part for part in name.split(".") if part not in WRAPPERS)
    return name


def name_modules(root):
    """Gives each module in `root` its path: the class of the root, and the names from there."""
    top = type(getattr(root, "_orig_mod", root)).__name__
    for name, module in root.named_modules():
        name = clean(name)
        paths.put(module, text(f"{top}.{name}" if name else top))


def tell_tensors(root):
    """Tags what `root` holds; true if there are parameters."""
    count = 0
    for count, (name, parameter) in enumerate(root.named_parameters(), 1):
        tell_parameter(parameter, clean(name))
    for name, buffer in root.named_buffers():
        tag(buffer, WEIGHTS, text(clean(name)))
    return count > 0


def tell_parameter(parameter, name):
    """Tags a parameter and its gradient, and each gradient that it gets from now on."""
    tag(parameter, WEIGHTS, text(name))
    gradient_name = text(f"{name}.grad")
    if parameter.grad is not None:
        tag(parameter.grad, GRADIENTS, gradient_name)
    known = parameters.get(parameter)
    if known is not None:
        if known[0] == name and (known[1] is not None or not parameter.requires_grad):
            return
        if known[1] is not None:
            known[1].remove()
    parameters.put(parameter, (name, watch_gradient(parameter, gradient_name)))


def watch_gradient(parameter, name):
    if not parameter.requires_grad or not parameter.is_leaf:
        return None

    def accumulated(parameter):
        gradient = parameter.grad
        if gradient is not None:
            send_tag(address(gradient), GRADIENTS, name)

    skip(accumulated)
    return parameter.register_post_accumulate_grad_hook(accumulated)


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
                enter_root(self, (args, kwargs))
            except Exception as error:
                failed("modules", error)
        known = known_paths.get(id(self))
        if known is not None and known[0]() is self:
            word.value = known[1]
        at.depth += 1
        try:
            return plain(self, *args, **kwargs)
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

    def registered(module, name, tensor):
        global generation
        generation += 1
        if tensor is not None:
            tag(tensor, WEIGHTS, text(name))

    skip(registered)
    registration.register_module_parameter_registration_hook(registered)
    registration.register_module_buffer_registration_hook(registered)
    Module = torch.nn.Module
    plain = Module._apply

    def _apply(self, *args, **kwargs):
        global generation
        before = phase
        if before not in BETWEEN:
            return plain(self, *args, **kwargs)
        # Modules inside come here in the phase that is set now.
        enter_phase("model")
        try:
            return plain(self, *args, **kwargs)
        finally:
            generation += 1
            try:
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
        if not backwards:
            begin_step()
        backwards += 1
        backward_threads.append(threading.get_ident())
        at.depth, at.word.value = 0, 0
        enter_phase("backward")
        try:
            return plain(*args, **kwargs)
        finally:
            backwards -= 1
            backward_threads.remove(threading.get_ident())
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
            tell_unknown(optimizer)
        except Exception as error:
            failed("optimizers", error)
        enter_phase("optimizer")

    def after(optimizer, args, kwargs):
        global optimizing
        optimizing = False
        try:
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
            known = parameters.get(parameter)
            if known is None or known[1] is None:
                tag(parameter, WEIGHTS, text(known[0]) if known else 0)
                if parameter.grad is not None:
                    tag(parameter.grad, GRADIENTS, text(f"{known[0]}.grad") if known else 0)


def tell_states(optimizer):
    """Tags an optimizer's states if there are others than before."""
    state = optimizer.state
    known = optimizers.get(optimizer)
    same = known is not None and known[:2] == (id(state), len(state))
    if same and known[2] >= 2:
        return
    optimizers.put(optimizer, (id(state), len(state), known[2] + 1 if same else 1))
    for parameter, states in list(state.items()):
        known = parameters.get(parameter) if isinstance(parameter, Tensor) else None
        prefix = f"{known[0]}." if known else ""
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
        enter_phase("data")
        try:
            batch = plain(self)
        except BaseException:
            enter_phase("" if before in BETWEEN else before)
            raise
        # What is done with a batch before the model is called (moving it, augmenting it) makes inputs.
        if before not in BETWEEN:
            enter_phase(before)
        try:
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


def like(function, plain):
    """`function` under the name and the words of what it stands for."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(plain, name))
    function.__wrapped__ = plain
    skip(function)
    return function


def replace(owner, name, function):
    setattr(owner, name, like(function, getattr(owner, name)))


skip_code = None


def skip(function):
    """Keeps torch.compile out of a function of ours: it is run as it is, and what it calls is compiled."""
    if skip_code is not None:
        todo = [function.__code__]
        while todo:
            code = todo.pop()
            skip_code(code)
            todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def find_skip_code():
    from torch._C._dynamo import eval_frame

    if hasattr(eval_frame, "skip_code"):
        return eval_frame.skip_code
    strategy = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT)
    return lambda code: eval_frame.set_code_exec_strategy(code, strategy)


def install():
    global torch, Tensor, skip_code
    if torch is not None or getattr(sys.modules.get("torch"), "Tensor", None) is None:
        return
    torch = sys.modules["torch"]
    Tensor = torch.Tensor
    if lacks_hooks():
        send_notice(
            f"PyTorch {torch.__version__} lacks functions through which memscope sees tensors: what the driver gave is "
            "recorded, tensors are not".encode()
        )
    try:
        skip_code = find_skip_code()
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
    """A child has a log of its own, in which nothing was named yet."""
    texts.clear()
    paths.by_id.clear()
    roots.by_id.clear()


class Finder:
    """Lets others find torch, and installs the rest when it has been loaded."""

    busy = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.busy:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec("torch")
        finally:
            self.busy = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self.wrap(spec.loader)
        return spec

    def wrap(self, loader):
        plain = loader.exec_module

        def exec_module(module):
            # If this raises, the program may try again: the finder stays.
            plain(module)
            if loader.__dict__.get("exec_module") is exec_module:
                del loader.exec_module
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            begin()

        loader.exec_module = exec_module


def begin():
    try:
        install()
    except Exception as error:
        failed("tensors", error)


def begin_after(spec):
    """For a torch that is being loaded already (importlib.import_module tells nobody): its spec says when it is ready."""
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

    spec.__dict__.pop("_initializing", None)
    spec.__class__ = Loading


loaded = sys.modules.get("torch")
if loaded is None:
    sys.meta_path.insert(0, Finder())
elif getattr(loaded.__spec__, "_initializing", False):
    begin_after(loaded.__spec__)
else:
    begin()
os.register_at_fork(after_in_child=after_fork)
