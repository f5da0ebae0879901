"""What goes wrong, in each pass, and what is left of it."""

import traceback

from cases.net import Net, batch, case, train
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("forward fails")


class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        raise ValueError("backward fails")


@case
def failures():
    def in_forward():
        nn.Sequential(nn.Sequential(Fails()))(torch.ones(1))

    def in_backward():
        FailsBackward.apply(nn.Linear(1, 1)(torch.ones(1))).backward()

    def twice():
        loss = Net()(batch()[0]).sum()
        loss.backward()
        loss.backward()

    def in_checkpoint():
        checkpoint(nn.Sequential(Fails()), torch.ones(1), use_reentrant=False)

    def in_move():
        Net()._apply(lambda t: 1 / 0)

    def in_data():
        class Bad(Dataset):
            __len__ = lambda self: 1
            __getitem__ = lambda self, index: 1 / 0

        next(iter(DataLoader(Bad())))

    def in_step():
        torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1).step(lambda: 1 / 0)

    def without_init():
        class Half(nn.Module):
            def __init__(self):
                pass

        Half()(1)

    def wrong_arguments():
        nn.Linear(1, 1)(1, 2, 3, nothing=4)

    def endless():
        class Endless(nn.Module):
            def forward(self, x):
                return self(x)

        try:
            Endless()(1)
        except RecursionError:
            # How deep that is, and in what it ends, is another matter.
            error = ValueError("endless")
        raise error

    for failure in (
        in_forward, in_backward, twice, in_checkpoint, in_move, in_data, in_step, without_init, wrong_arguments, endless
    ):
        try:
            failure()
        except Exception:
            traceback.print_exc()
        try:
            failure()
        except Exception as error:
            print(type(error), error, error.__context__, error.__cause__, len(traceback.extract_tb(error.__traceback__)))
    try:
        raise StopIteration(3)
    except StopIteration as kept:
        class Stops(nn.Module):
            def forward(self, x):
                raise kept
        try:
            Stops()(1)
        except StopIteration as error:
            print(error is kept, error.value)
    print(*train((model := Net()), torch.optim.SGD(model.parameters(), 0.1)))
