"""Calls of modules: the module that a thread is in, and what the outermost call is for."""

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
        follow_gathering()
    if told[1] < 2:
        # The second time for what a lazy module made in its first call.
        told[1] += 1
        told[2] = tell_tensors(module)
    if not torch.is_grad_enabled():
        enter_phase("inference")
    else:
        begin_pass()
        if phase != "loss" or told[2]:
            enter_phase("forward")
    for tensor in tensors_in(arguments):
        if not tensor.requires_grad:
            tag(tensor, INPUTS)
        elif type(tensor) is Tensor and tensor.is_leaf:
            tell_trained_input(tensor)


def leave_root(before, raised):
    """`before` is the phase before the call."""
    if backwards:
        enter_phase("backward")
    elif raised:
        # What was not computed has no loss.
        enter_phase("loss" if before == "loss" else "")
    else:
        # A teacher's forward pass may lie between a model's and its loss.
        with unobserved():
            enter_phase("loss" if torch.is_grad_enabled() or before == "loss" else "")


def follow_calls():
    Module = torch.nn.Module
    plain = Module.__call__
    enter = make_enter(paths.by_id)

    def __call__(self, *args, **kwargs):
        before = place()
        outermost, raised = before is None, False
        if outermost:
            phase_before = phase
            try:
                with unobserved():
                    enter_root(self, (args, kwargs))
            except Exception as error:
                failed("modules", error)
        try:
            enter(self)
            return plain(self, *args, **kwargs)
        except BaseException as error:
            raised = True
            untraced(error)
            raise
        finally:
            leave(before)
            if outermost:
                leave_root(phase_before, raised)

    replace(Module, "__call__", __call__)
    # Dynamo holds a class for an ordinary module if it has the call that dynamo met first.
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        dynamo = sys.modules.get(name)
        if dynamo is not None and hasattr(dynamo, "unpatched_nn_module_call"):
            dynamo.unpatched_nn_module_call = __call__
