"""Keeps what a layer gives in each step, with its graph or without, and at last asks the device for more than there is.

Arguments: the device, how many steps. Prints what was kept.
"""

import json
import sys

import torch
from torch import nn

DEVICE, STEPS = sys.argv[1], int(sys.argv[2])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 512), nn.GELU())
        self.head = nn.Linear(512, 8)

    def forward(self, x):
        features = self.body(x)  # LINE body
        return self.head(features), features


model = Net().to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())
history, error = [], None
for step in range(STEPS):
    x, y = torch.ones(512, 64, device=DEVICE), torch.zeros(512, dtype=torch.long, device=DEVICE)
    out, features = model(x)
    loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    history.append(features)
if DEVICE == "cuda":
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device=DEVICE)
    except torch.OutOfMemoryError as refused:
        error = str(refused)
print(json.dumps({"kept": sum(one.nbytes for one in history), "error": error}))
