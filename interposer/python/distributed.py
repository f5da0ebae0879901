"""What parallel training makes beside the program's own tensors: buckets of gradients, gathered weights, gradients of shards."""


def follow_buckets():
    """The buckets of DistributedDataParallel are its reducer's, in C++, which makes them at its beginning and once more."""
    Reducer = getattr(torch.distributed, "Reducer", None)
    if Reducer is not None:
        for name in ("__init__", "_rebuild_buckets"):
            replace(Reducer, name, making(getattr(Reducer, name), GRADIENTS, lambda reducer: "ddp.bucket"))


def making(plain, category, name_of):
    """`plain`, with all that the thread allocates in it told to be of this category."""

    def make(self, *args, **kwargs):
        try:
            send_making(category, text(name_of(self)))
        except Exception as error:
            failed("buckets of gradients", error)
        try:
            return plain(self, *args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise
        finally:
            send_making(0, 0)

    return make


# Where FSDP2 keeps a parameter: of 2.6 and later, and before.
GATHERING = ("torch.distributed.fsdp._fully_shard._fsdp_param", "torch.distributed._composable.fsdp._fsdp_param")
gathering = set()


def follow_gathering():
    """FSDP2 makes room for a parameter as a whole before each use. It is imported by the programs that use it only."""
    for name in GATHERING:
        Parameter = getattr(sys.modules.get(name), "FSDPParam", None)
        if Parameter is not None and Parameter not in gathering:
            gathering.add(Parameter)
            for method in ("init_all_gather_outputs", "alloc_all_gather_outputs", "init_unsharded_param"):
                if hasattr(Parameter, method):
                    replace(Parameter, method, making(getattr(Parameter, method), WEIGHTS, gathered_name))
    module = sys.modules.get(COMMUNICATING)
    if module is not None and module not in gathering:
        gathering.add(module)
        for base, tell in communications.items():
            for kind in list(vars(module).values()):
                own = isinstance(kind, type) and kind.__module__ == COMMUNICATING and "__call__" in vars(kind)
                if own and issubclass(kind, getattr(module, base)):
                    replace(kind, "__call__", communicating(kind.__call__, tell))


# FSDP2's own ways to gather parameters and to reduce gradients, of versions that have them.
COMMUNICATING = "torch.distributed.fsdp._fully_shard._fsdp_collectives"
communications = {
    # The input is a part of the output; parameters are copied out of it.
    "AllGather": lambda output, input: tag(output, WORKSPACE, text("fsdp.all_gather")),
    # The output is what the gradients of shards are parts of.
    "ReduceScatter": lambda output, input: tag(input, WORKSPACE, text("fsdp.reduce_scatter")),
}


def communicating(plain, tell):
    """`plain`, whose two buffers are told before."""

    def __call__(self, *args, **kwargs):
        try:
            buffers = dict(zip(("output_tensor", "input_tensor"), args), **kwargs)
            with unobserved():
                tell(buffers["output_tensor"], buffers["input_tensor"])
        except Exception as error:
            failed("buffers of FSDP2", error)
        try:
            return plain(self, *args, **kwargs)
        except BaseException as error:
            untraced(error)
            raise

    return __call__


def gathered_name(parameter):
    return f"{vars(parameter).get('_param_fqn') or 'parameter'} (gathered)"


def shards_with_names():
    """Parameters that wrap other tensors, as the modules have them now."""
    for reference, names in list(shards.by_id.values()):
        module = reference()
        for key, parameter in held(module, "_parameters") if module is not None else []:
            if key in names:
                yield parameter, names[key]


def tell_shards():
    """Tags their gradients, at the end of a backward pass."""
    try:
        with unobserved():
            for parameter, name in shards_with_names():
                if parameter.is_leaf:
                    tell_gradient(parameter, text(f"{name}.grad"))
    except Exception as error:
        failed("gradients of shards", error)
