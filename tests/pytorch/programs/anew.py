"""Models and optimizers that are deleted and made anew, over and over: what Python holds does not grow with them."""

import gc
import sys

import torch
import torch.nn as nn

torch.set_num_threads(1)
STEPS, MODELS = 3, 200


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(50, 50), nn.Linear(50, 1)

    def forward(self, x):
        return self.head(self.layer(x))


def train():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(STEPS):
        model(torch.ones(7, 50)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return id(model)


def objects():
    gc.collect()
    return sys.getallocatedblocks()


identities = {train() for _ in range(MODELS // 2)}
print("models at the addresses of others:", len(identities) < MODELS // 2)
before = objects()
for _ in range(MODELS // 2):
    train()
# PyTorch itself keeps about one.
print("fewer than five objects of Python for each model:", objects() - before < 5 * (MODELS // 2))
