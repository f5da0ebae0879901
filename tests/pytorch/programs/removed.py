"""Programs that take away what others hooked into PyTorch, each in a child of its own, and train on; the weights are printed.

Each case has layers of a width of its own, by which its tensors are known: matrices of WIDTH * WIDTH * 4 bytes (a weight, three
gradients, two states of Adam), and results of 7 * WIDTH * 4 bytes.
"""

import hashlib
import os
import sys

import torch
import torch.nn as nn

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer, self.head = nn.Linear(width, width, bias=False), nn.Linear(width, 1)
        self.fails = False

    def forward(self, x):
        x = self.layer(x)
        if self.fails:
            raise ValueError("the program's own")
        return self.head(x)


def everything_there(model):
    pass


def hooks_of_modules(model):
    module = torch.nn.modules.module
    for name in sorted(vars(module)):
        if name.startswith("_global_") and isinstance(vars(module)[name], dict):
            vars(module)[name].clear()


def hooks_of_parameters(model):
    model(torch.ones(7, model.head.in_features))
    for parameter in model.parameters():
        if parameter._post_accumulate_grad_hooks:
            parameter._post_accumulate_grad_hooks.clear()


def hooks_of_optimizers(model):
    for hooks in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"):
        getattr(sys.modules["torch.optim.optimizer"], hooks).clear()


def a_call_around_the_call(model):
    inner = nn.Module.__call__
    nn.Module.__call__ = lambda self, *arguments: inner(self, *arguments)


def another_call(model):
    nn.Module.__call__ = lambda self, *arguments: self.forward(*arguments)


def a_failure_in_forward(model):
    model.fails = True
    for _ in range(3):
        try:
            model(torch.ones(7, model.head.in_features))
        except ValueError as error:
            print(error)
    model.fails = False


CASES = [
    everything_there, hooks_of_modules, hooks_of_parameters, hooks_of_optimizers, a_call_around_the_call, another_call,
    a_failure_in_forward,
]

# What a first step imports, the children need not.
torch.optim.Adam([torch.ones(1, requires_grad=True)]).step()
for number, case in enumerate(CASES):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        width = 101 + number
        torch.manual_seed(number)
        model = Net(width)
        case(model)
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(3):
            model(torch.ones(7, width)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        values = hashlib.sha256(str([p.tolist() for p in model.parameters()]).encode()).hexdigest()[:16]
        print(case.__name__, values, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
