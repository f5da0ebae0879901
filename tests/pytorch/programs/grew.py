"""Trains with batches of one size, and one that is so many times as large; memory may run out in it.

Arguments: how many times. Prints what the batches were, and whether memory ran out. After an error a tensor of a size of its own is
made, outside of everything.
"""

import json
import sys

import torch
from torch import nn

TIMES, DEVICE, LAST = int(sys.argv[1]), "cuda", 7
MARK = 777 << 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))

    def forward(self, x):
        return self.body(x)  # LINE forward


def train():
    for step in range(1, LAST + 1):
        rows = 512 * (TIMES if step == LAST else 1)
        x = torch.ones(rows, 1024, device=DEVICE)
        sizes.append(x.nbytes)
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


model = Net().to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())
sizes, error, mark = [], None, None
try:
    train()
except torch.OutOfMemoryError as refused:
    error = str(refused)
    mark = torch.empty(MARK, dtype=torch.uint8, device=DEVICE)
print(json.dumps({"sizes": sizes, "error": error}))
