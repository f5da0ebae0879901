"""When torch is ready, and what is installed then."""


def install():
    global torch, Tensor, data_ptr, unobserved
    torch = sys.modules["torch"]
    Tensor = torch.Tensor
    data_ptr = Tensor.data_ptr
    unobserved = torch._C.DisableTorchFunction
    send_framework()
    os.register_at_fork(after_in_child=after_fork)
    # Tensors that the interpreter drops at its end end in no phase of the program's.
    atexit.register(enter_phase, "exit")
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
        "buckets of gradients": follow_buckets,
        "batches": follow_data,
        "lines that run out of memory": follow_refusals,
        "ranks on the simulated device": follow_ranks,
        "lines of the program": follow_stacks,
    }
    for part, follow in parts.items():
        try:
            follow()
        except Exception as error:
            failed(part, error)


def after_fork():
    """A child has a log of its own, in which nothing was said yet."""
    global phase
    send_framework()
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
