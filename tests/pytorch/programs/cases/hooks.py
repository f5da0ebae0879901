"""Hooks of the program's own, and looks at what is hooked: modes, dispatch, proxies, signatures, warnings."""

import hashlib
import inspect
import sys
import warnings

from cases.net import Net, batch, case, hash_of, train
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


@case
def hooks():
    model, seen = Net(), []
    handles = [
        model.register_forward_pre_hook(lambda m, a: seen.append(("before", len(a)))),
        model.tail.register_forward_hook(lambda m, a, y: y * 2),
        model.tail.register_full_backward_hook(lambda m, i, o: seen.append(("backward", len(i)))),
        model.head.weight.register_hook(lambda g: g * 3),
        model.head.bias.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.shape))),
        nn.modules.module.register_module_forward_hook(lambda m, a, y: seen.append(type(m).__name__)),
    ]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    handles.append(optimizer.register_step_pre_hook(lambda o, a, k: seen.append("step")))
    print(*train(model, optimizer), seen)
    for handle in handles:
        handle.remove()
    seen.clear()
    print(*train(model, optimizer), seen)
    # Hooks that a program takes from all parameters, its own and others'.
    for p in model.parameters():
        if p._post_accumulate_grad_hooks:
            p._post_accumulate_grad_hooks.clear()
    print(*train(model, optimizer))


@case
def optimizers_in_backward():
    model = Net()
    each = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}

    def update(p):
        each[p].step()
        each[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    for _ in range(3):
        F.cross_entropy(model(batch()[0]), batch()[1]).backward()
    print(hash_of(model))


@case
def looks():
    for function in (nn.Module.__call__, nn.Module._apply, torch.autograd.backward, nn.Linear.__call__):
        print(function.__name__, function.__qualname__, function.__module__, inspect.signature(function))
        print(hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16])
    print(inspect.signature(Net()), inspect.signature(Net().__call__), callable(Net()))
    print(torch.__spec__.__class__, torch.__spec__._initializing, type(torch.__loader__), [str(f).split(" at ")[0] for f in sys.meta_path])
    print(sorted(vars(torch.__loader__)), [m for m in sys.modules if "memscope" in m])


class Observed(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), keywords=None):
        cls.seen.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, kinds, arguments, keywords or {})


class Modes(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, kinds, arguments=(), keywords=None):
        self.seen.append(getattr(function, "__name__", str(function)))
        return function(*arguments, **(keywords or {}))


class Curious(nn.Module):
    """Tells of everything that is asked of it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(1))

    def __getattr__(self, name):
        print("asked for", name)
        return super().__getattr__(name)

    def named_modules(self, *arguments, **keywords):
        print("asked for modules")
        return super().named_modules(*arguments, **keywords)

    def named_parameters(self, *arguments, **keywords):
        print("asked for parameters")
        return super().named_parameters(*arguments, **keywords)

    def __eq__(self, other):
        raise TypeError("not to be compared")

    __hash__ = nn.Module.__hash__

    def forward(self, x, options=None, *more):
        self.count = self.count + 1
        return self.layer(x["x"] if isinstance(x, dict) else x)


class Shy(list):
    def __iter__(self):
        print("iterated")
        return super().__iter__()


class Proxy:
    @property
    def __class__(self):
        print("asked for its class")
        return dict


@case
def observed():
    model = Curious()
    x = torch.randn(2, 4).as_subclass(Observed)
    with Modes() as modes:
        model(x, Shy([x, x]), Proxy()).sum().backward()
        model.layer.bias = nn.Parameter(torch.ones(4).as_subclass(Observed))
        model(x).sum().backward()
        model.double()
        torch.optim.SGD(model.layer.parameters(), 0.1).step()
    print(Observed.seen, modes.seen)


@case
def dispatched():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function, kinds, arguments=(), keywords=None):
            print(function, end=" ")
            return function(*arguments, **(keywords or {}))

    model = nn.Linear(4, 4)
    with Log():
        model(torch.ones(2, 4)).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
    print()


@case
def warned():
    class Warns(nn.Module):
        def forward(self, x):
            for level in range(1, 9):
                warnings.warn(f"level {level}", stacklevel=level)
            return x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nn.Sequential(Warns())(torch.ones(1))
        x = torch.ones(1, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: warnings.warn("in backward", stacklevel=4))
        y.backward()
        next(iter(DataLoader([1, 2])))
    print(*((str(w.message), w.filename.rpartition("/")[2], w.lineno) for w in caught), sep="\n")
