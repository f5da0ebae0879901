"""Trains, evaluates in a function of its own, and trains again.

Arguments: the device; `grad` or `no_grad` for the evaluation; how many of its batches; and how many times larger these are. Catches an
error for want of memory in the evaluation. Prints what one forward pass on the CPU keeps for backward, and the error.
"""

import json
import sys

import torch
from torch import nn

DEVICE, GRAD, BATCHES, TIMES = sys.argv[1], sys.argv[2] == "grad", int(sys.argv[3]), int(sys.argv[4])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.Tanh()) for _ in range(6)))
        self.head = nn.Linear(512, 512)

    def forward(self, x):
        x = self.body(x)
        return self.head(x)


def train(steps):
    for _ in range(steps):
        out = model(torch.ones(256, 512, device=DEVICE))
        out.mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def evaluate():
    kept = []
    for _ in range(BATCHES):
        out = model(torch.ones(256 * TIMES, 512, device=DEVICE))  # LINE evaluate
        kept = [*kept, out] if TIMES > 1 else [out]


model = Net().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(4)
error = None
try:
    with torch.set_grad_enabled(GRAD):
        evaluate()
except torch.OutOfMemoryError as refused:
    error = str(refused)
torch.cuda.empty_cache() if DEVICE == "cuda" else None
train(2)
# What each Tanh gives, and the result; each is 256 rows of 512 floats.
print(json.dumps({"kept": 7 * 256 * 512 * 4, "error": error}))
