"""Parameters, buffers and gradients: told when a module gets them, moves them or is called as the outermost one."""

# Grows when parameters are made or moved.
generation = 0

# Of a module with parameters that wrap other tensors (DTensor): the names of these. They get no hook: FSDP would copy gradients
# in another way for it. What they have is told at the end of a backward pass.
shards = Facts()


def tell_tensors(root):
    """Tags what `root` holds; true if there are parameters."""
    told = set()
    for path, module in walk(root, whole_of(root)[1]):
        prefix, wrapping = f"{path}." if path else "", {}
        for name, parameter in held(module, "_parameters"):
            # A weight that several modules share has its first name.
            if id(parameter) not in told:
                told.add(id(parameter))
                whole = clean(prefix + name)
                if not tell_parameter(parameter, whole):
                    wrapping[name] = whole
        if wrapping:
            shards.put(module, wrapping)
        for name, buffer in held(module, "_buffers"):
            tag(buffer, WEIGHTS, text(clean(prefix + name)))
    return bool(told)


def tell_parameter(parameter, name):
    """Tags a parameter and its gradient, and each gradient that it gets from now on; false if it wraps others, and has no hook."""
    places = addresses(parameter)
    for at in places:
        send_tag(at, WEIGHTS, text(name))
    # A tensor that stands for a parameter (functional_call) may be no leaf: asking for its gradient would warn.
    if not places or not parameter.is_leaf or not parameter.requires_grad:
        return True
    if not address(parameter):
        return False
    watch = watch_of(parameter)
    if watch is None:
        watch = Watch()
        parameter.register_post_accumulate_grad_hook(make_hook(watch))
    watch.name, watch.gradient = name, text(f"{name}.grad")
    tell_gradient(parameter, watch.gradient)
    return True


def tell_trained_input(tensor):
    """Tags an input that is to get a gradient, and that gradient, unless it is a weight of the program's that no module has."""
    if address(tensor) and not is_optimized(tensor):
        tag(tensor, INPUTS)
        if watch_of(tensor) is None:
            watch = Watch()
            watch.name, watch.gradient = "", 0
            tensor.register_post_accumulate_grad_hook(make_hook(watch))


def tell_gradient(parameter, name):
    gradient = parameter.grad
    if gradient is not None:
        tag(gradient, GRADIENTS, name)


class Watch:
    """What a parameter is called, and the id of what its gradients are called.

    `told` is the hook where it is not the ordinary one: tensors of other classes, modes of the program's, no memory. The ordinary
    one is a function of the same name (src/callables.rs), which torch.compile takes for this method. PyTorch copies hooks neither
    with deepcopy nor to a file.
    """

    __slots__ = ("name", "gradient")

    def told(self, parameter):
        with unobserved():
            tell_gradient(parameter, self.gradient)


def watch_of(parameter):
    """What the hook of ours that a parameter has was made with, if it has one."""
    hooks = parameter._post_accumulate_grad_hooks
    if hooks:
        for hook in hooks.values():
            if type(hook) in (types.BuiltinFunctionType, types.MethodType) and type(hook.__self__) is Watch:
                return hook.__self__
    return None


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
    skip(Watch.told)
    arrange((Tensor, torch.nn.Parameter, data_ptr, torch._C._len_torch_function_stack, Watch.told))
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
