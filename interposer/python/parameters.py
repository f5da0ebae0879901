"""Parameters, buffers and gradients: told when a module gets them, moves them or is called as the outermost one."""

# Grows when parameters are made or moved.
generation = 0


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
