"""What TorchScript, dynamo and export make of modules."""

import hashlib
import importlib
import logging
import warnings

from cases.net import Net, batch, case, digest, hash_of, train
import torch
import torch.nn as nn
import torch.nn.functional as F


@case
def scripted():
    model = nn.Sequential(nn.Linear(32, 32), nn.Sequential(nn.ReLU(), nn.Linear(32, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for made in (torch.jit.script(model), torch.jit.trace(model.eval(), batch()[0])):
            print(hashlib.sha256(made.code.encode()).hexdigest()[:16], digest(made(batch()[0])))
            F.cross_entropy(made(batch()[0]), batch()[1]).backward()
    traced = torch.fx.symbolic_trace(Net())
    print(traced.code, digest(traced(batch()[0])))


@case
def compiled():
    torch._logging.set_logs(dynamo=logging.ERROR)
    counters = importlib.import_module("torch._dynamo.utils").counters
    for backend in ("eager", "aot_eager"):
        for change in ("nothing", "hook", "compiled_step"):
            torch._dynamo.reset()
            counters.clear()
            torch.manual_seed(3)
            model = Net()
            if change == "hook":
                model.tail.register_forward_hook(lambda m, a, y: y * 2)
            fast = torch.compile(model, backend=backend, fullgraph=True)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            if change == "compiled_step":
                optimizer.step = torch.compile(optimizer.step, backend=backend)
            print(backend, change, *train(fast, optimizer), dict(counters["graph_break"]), dict(counters["frames"]))
    torch._dynamo.reset()
    counters.clear()
    model = Net()
    model.compile(backend="eager")

    @torch.compile(backend="eager")
    def step(x, y):
        print("a break")
        F.cross_entropy(model(x), y).backward()
        inner = nn.Linear(2, 2)
        return inner(torch.ones(1, 2)).shape

    print(step(*batch()), hash_of(model), dict(counters["graph_break"]), dict(counters["frames"]))
    # A backward pass that is compiled, with the hooks of parameters in it.
    compiled_autograd = importlib.import_module("torch._dynamo.compiled_autograd")
    with (getattr(compiled_autograd, "_enable", None) or compiled_autograd.enable)(
        torch.compile(backend="eager", fullgraph=True)
    ):
        print(*train(Net(), torch.optim.SGD(model.parameters(), 0.1)), dict(counters["compiled_autograd"]))
    exported = torch.export.export(Net().eval(), (torch.ones(2, 32),))
    print(hashlib.sha256(str(exported.graph).encode()).hexdigest(), exported.module()(torch.ones(2, 32)).shape)
