"""Calls of modules: the module that a thread is in, and what the outermost call is for."""


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

# Of a root module: [the generation in which its tensors were told, how often since, whether it has parameters].
roots = Facts()


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
