"""What a program gives to its modules and optimizers, beside the ordinary: batches in objects, inputs that get gradients, states
that are loaded. A part of unchanged.py."""

import collections
import copy
import dataclasses

import torch
import torch.nn as nn
from marks import mark, states

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    more: object = None


class Plain:
    def __init__(self, x):
        self.x = x


class Seen(Plain):
    """Says when it is looked at."""

    def __getattribute__(self, name):
        print("looked at", name)
        return super().__getattribute__(name)

    @property
    def __dict__(self):
        print("looked at its attributes")
        return {}


class Computed(Plain):
    @property
    def other(self):
        print("computed")

    def __getattr__(self, name):
        raise RuntimeError(name)


class Reads(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, given, x):
        return self.layer(x)


WAYS = [
    lambda x: [{"a": ({"b": [x]},)}],
    Batch,
    lambda x: Batch(None, [Batch(x)]),
    Plain,
    Computed,
    lambda x: {"a": Plain([x])},
    lambda x: collections.UserDict(a=x),
]


@case
def batches_in_objects():
    for number, wrap in enumerate(WAYS):
        model, x = Reads(40 + number), torch.ones(50, 40 + number)
        given = wrap(x)
        model(given, x.clone()).sum().backward()
        mark(f"given in way {number}", inputs=[x], weights=model.parameters())
    circle = Plain(torch.ones(3))
    circle.circle = [circle] * 2000
    with torch.no_grad():
        print(Reads(5)([circle, Seen(torch.ones(4)), list(range(100000))], torch.ones(1, 5)).shape)


@case
def inputs_with_gradients():
    for backend in (None, "aot_eager"):
        torch.manual_seed(1)
        model = nn.Linear(60, 60)
        fast = torch.compile(model, backend=backend) if backend else model
        for _ in range(3):
            x = torch.randn(31, 60, requires_grad=True)
            fast(x).square().sum().backward()
            mark("with a gradient", inputs=[x], gradients=[x.grad, model.weight.grad])
        # Weights that no module has, and that an optimizer trains.
        free = torch.randn(61, 60, requires_grad=True)
        optimizer = torch.optim.Adam([free])
        for _ in range(2):
            fast(free).square().sum().backward()
            optimizer.step()
            mark("trained", weights=[free], gradients=[free.grad], optimizer=states(optimizer))
        frozen = copy.deepcopy(x)
        print(backend, x.grad.sum().item().hex(), free.sum().item().hex(), frozen.requires_grad)


@case
def states_that_are_loaded():
    model = nn.Linear(70, 70)
    first = torch.optim.Adam(model.parameters())
    model(torch.ones(3, 70)).sum().backward()
    first.step()
    saved = copy.deepcopy(first.state_dict())
    second = torch.optim.Adam(model.parameters())
    second.load_state_dict(saved)
    mark("loaded", optimizer=[*states(first), *states(second)], weights=model.parameters())
    second.step()
    try:
        second.load_state_dict({"state": {}, "param_groups": []})
    except ValueError as error:
        print(error)
    print(model.weight.sum().item().hex(), len(states(second)))
