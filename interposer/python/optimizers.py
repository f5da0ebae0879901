"""Optimizers: their steps, and their states."""

# Whether an optimizer runs; some call forward and backward in its step (closures, as Lightning's).
optimizing = False
# Of an optimizer: (the identity of its states, how many there are, how often they were told).
optimizers = Facts()
# Of an optimizer whose parameters all have a hook of ours: (the generation, how many they are).
told_parameters = Facts()


def follow_optimizers():
    module = importlib.import_module("torch.optim.optimizer")

    def before(optimizer, args, kwargs):
        global optimizing
        optimizing = True
        try:
            optimizer_begins(optimizer)
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
        try:
            optimizer_ends(optimizer)
        except Exception as error:
            failed("steps", error)

    plain = module.Optimizer.__init__

    def __init__(self, *args, **kwargs):
        try:
            plain(self, *args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        try:
            optimizer_made(self)
        except Exception as error:
            failed("steps", error)

    replace(module.Optimizer, "__init__", __init__)
    skip(before)
    skip(after)
    load = module.Optimizer.load_state_dict

    def load_state_dict(self, *args, **kwargs):
        try:
            loaded = load(self, *args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        try:
            with unobserved():
                tell_states(self)
        except Exception as error:
            failed("states of optimizers", error)
        return loaded

    replace(module.Optimizer, "load_state_dict", load_state_dict)
    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)
    follow_skipped_steps(module.Optimizer)


def follow_skipped_steps(Optimizer):
    """GradScaler leaves an optimizer's step out when gradients overflowed; it is the optimizer's turn all the same."""
    Scaler = importlib.import_module("torch.amp.grad_scaler").GradScaler
    plain = Scaler.step

    def step(*args, **kwargs):
        before = turns_taken
        try:
            result = plain(*args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        try:
            optimizer = args[1] if len(args) > 1 else kwargs["optimizer"]
            if turns_taken == before and isinstance(optimizer, Optimizer):
                optimizer_begins(optimizer)
                optimizer_ends(optimizer)
        except Exception as error:
            failed("steps", error)
        return result

    replace(Scaler, "step", step)


def is_optimized(tensor):
    """Whether an optimizer that has stepped changes this tensor, which is a weight then."""
    known = [reference() for reference, _ in list(optimizers.by_id.values())]
    groups = [group for optimizer in known if optimizer is not None for group in optimizer.param_groups]
    return any(parameter is tensor for group in groups for parameter in group["params"])


def tell_unknown(optimizer):
    """Tags parameters that no module has told, and their gradients."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    # Where modules have told all of them, a few stand for all in later steps: a program may take its hooks away.
    state = (generation, len(parameters))
    all_told = told_parameters.get(optimizer) == state
    some = parameters[:1] + parameters[-1:] if all_told else parameters
    unknown = [parameter for parameter in some if not getattr(watch_of(parameter), "name", "")]
    for parameter in unknown:
        if parameter.is_leaf and parameter.requires_grad:
            tag(parameter, WEIGHTS)
            tell_gradient(parameter, 0)
    if not unknown and not all_told:
        told_parameters.put(optimizer, state)
    elif unknown and all_told:
        told_parameters.put(optimizer, None)


def tell_states(optimizer):
    """Tags an optimizer's states if there are others than before."""
    state = optimizer.state
    known = optimizers.get(optimizer)
    same = known is not None and known[:2] == (id(state), len(state))
    if same and known[2] >= 2:
        return
    optimizers.put(optimizer, (id(state), len(state), known[2] + 1 if same else 1))
    of_shards = {id(parameter): name for parameter, name in shards_with_names()}
    for parameter, states in list(state.items()):
        watch = watch_of(parameter) if isinstance(parameter, Tensor) else None
        name = watch.name if watch else of_shards.get(id(parameter))
        prefix = f"{name}." if name else ""
        for key, value in list(states.items()) if isinstance(states, dict) else [("state", states)]:
            for tensor in tensors_in(value):
                tag(tensor, OPTIMIZER, text(f"{prefix}{key}"))
