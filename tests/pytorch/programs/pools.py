"""Runs out of memory with the cudaMallocAsync backend, whose allocator reports nothing: in a layer's forward, which is caught, and in
a function of a loop. Waits after the first for a line of its standard input: whoever runs this has been told by then.
"""

import os
import sys

os.environ["PYTORCH_ALLOC_CONF"] = "backend:cudaMallocAsync"
import torch
from figures import say
from torch import nn

MIB = 1 << 20


class Block(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        return x + self.mlp(x)  # LINE layer


def tensor(mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")  # LINE tensor


messages = []
model = Block(64, 65_536).cuda()
x = torch.zeros(4096, 64, device="cuda")
filler = tensor(2400)
try:
    model(x)
except torch.OutOfMemoryError as error:
    messages.append(str(error))
    sys.stdin.readline()
for _ in range(2):
    try:
        tensor(700)
    except torch.OutOfMemoryError as error:
        messages.append(str(error))
say(messages=messages)
