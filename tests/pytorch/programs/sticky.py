"""Tensors that are made where a phase seems to go on: `sticky.py DEVICE` prints what each of a size of its own is for.

{name: [bytes, how many there are at least, category]}, in float32 and of unusual sizes, which stay unusual
where an allocator rounds them up to 512 bytes.
"""

import sys

from figures import say
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

device = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(0)
told = {}


def made(name, tensor, category="unknown", count=1):
    told[name] = [tensor.numel() * tensor.element_size(), count, category]
    return tensor


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body, self.head = nn.Linear(width, 201), nn.Linear(201, 211)

    def forward(self, x):
        return self.head(self.body(x).relu())


def a_look_at_a_shape():
    """A forward pass without a backward pass; then all that the program needs is made."""
    model = Net(301).to(device)
    model(torch.zeros(1, 301, device=device))
    data = made("data set", torch.randn(2003, 301, device=device))
    labels = torch.zeros(2003, dtype=torch.long, device=device)
    average = made("average", torch.cat([one.detach().flatten() for one in model.parameters()]))
    table = made("table", torch.zeros(30011, device=device))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for number in range(4):
        some = torch.randperm(2003, device=device)[:71]
        batch = made("batch", data[some], "inputs", 4)
        # The program keeps it until the next one is there.
        likely = made("probabilities", F.softmax(model(batch) * torch.ones(71, 211, device=device), 1), "activations", 4)
        loss = F.nll_loss(likely.log(), labels[some]) + table[0]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return data, average, table


def a_look_at_a_batch():
    loader = DataLoader(TensorDataset(torch.randn(40, 302), torch.zeros(40, 307)), 8)
    next(iter(loader))
    bank = made("bank", torch.zeros(50021, device=device))
    model = Net(302).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for batch, targets in loader:
        # One more, since a batch may be on the device already.
        batch, targets = batch.to(device) + 0, made("targets", targets.to(device) + 0, "inputs", 5)
        loss = model(batch).square().mean() + targets.mean() + bank[0]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return bank, targets


def inference_with_gradients():
    model = Net(303).to(device)
    results = [made("result", model(torch.randn(1009, 303, device=device)).detach(), "workspace", 3) for _ in range(3)]
    late = made("late", torch.zeros(60013, device=device))
    del results
    return late


kept = [a_look_at_a_shape(), a_look_at_a_batch(), inference_with_gradients()]
say(**told)
