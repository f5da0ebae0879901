"""Models whose modules have names that are easily mistaken. Each layer's result has a size of its own: WIDTH * 4 * 3 bytes."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)
x = torch.ones(3, 4)


class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide = nn.Linear(4, width)

    def forward(self, x):
        return self.wide(x)


class Outer(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.parts = nn.ModuleList([Inner(first), nn.Sequential(Inner(second))])

    def forward(self, x):
        return self.parts[0](x).sum() + checkpoint(self.parts[1], x, use_reentrant=False).sum()


def run(model):
    model(x.clone().requires_grad_()).sum().backward()


run(Outer(1001, 1002))
# A wrapper is not in the names; nor what torch.compile makes of a part.
run(torch.compile(Outer(1011, 1012), backend="eager"))
part = Outer(1021, 1022)
part.parts[0] = torch.compile(part.parts[0], backend="eager", fullgraph=True)
run(part)
# A part that is called by itself, before and after the whole.
alone = Outer(1031, 1032)
alone.parts[1](x)
alone(x)
# A part that was put in the place of another.
replaced = Outer(1041, 1042)
run(replaced)
replaced.parts[0] = Inner(1043)
run(replaced)
# Parts that are called alone between the steps of the whole; one of them has been taken out of it.
whole = Outer(1061, 1062)
for _ in range(2):
    run(whole)
    # What is new makes memscope look at all names again.
    Inner(1)
    for part in whole.parts:
        part(x)
torch.compile(whole.parts[0], backend="eager")(x)
taken = Outer(1071, 1072)
run(taken)
part, taken.parts[0] = taken.parts[0], nn.Identity()
part(x)
# A list that is never called, and averaged weights, as a whole and what is inside.
for part in nn.ModuleList([Inner(1081), Inner(1082)]):
    run(part)
averaged = torch.optim.swa_utils.AveragedModel(Inner(1091))
averaged.update_parameters(Inner(1091))
averaged(x)
averaged.module(x)
run(torch.jit.script(nn.Sequential(nn.Linear(4, 1051))))


def kind(number):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2000 + number)

        def forward(self, x):
            return self.layer(x)

    Model.__name__ = f"Kind{number}"
    return Model


# Models that are gone: the next ones live at their addresses.
kinds = [kind(number) for number in range(7)]
identities = set()
for turn in range(300):
    model = kinds[turn % 7]()
    identities.add(id(model.layer))
    run(model)
    del model
print("reused" if len(identities) < 300 else "not reused")
