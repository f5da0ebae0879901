"""Ranks of a program on the simulated device: objects go over the CPU."""


def follow_ranks():
    """
    PyTorch computes on the device where the pickles of a group's objects begin and end; on the simulated device nothing is computed.
    So a group that has NCCL alone gets Gloo for the CPU beside it, as `backend="cpu:gloo,cuda:nccl"` asks for: then PyTorch itself
    sends objects by Gloo.
    """
    if os.environ.get("MEMSCOPE_SIMULATED") != "1" or not torch.distributed.is_available():
        return
    distributed = importlib.import_module("torch.distributed.distributed_c10d")
    Configuration, Backend = distributed.BackendConfig, distributed.Backend
    plain = Configuration.__init__

    def __init__(self, backend):
        try:
            plain(self, backend)
        except BaseException as error:
            untraced(error)
            raise
        try:
            backends = self.device_backend_map
            if backends.get("cuda") == "nccl" and "cpu" not in backends and distributed.is_gloo_available():
                backends["cpu"] = Backend("gloo")
        except Exception as error:
            failed("ranks on the simulated device", error)

    replace(Configuration, "__init__", __init__)
