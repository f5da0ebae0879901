"""Runs out of memory in a layer's forward, in backward, and with a fragmented cache; catches each and goes on.

Waits after the first for a line of its standard input: whoever runs this has been told by then.
"""

import sys

import torch
from figures import say
from torch import nn

MIB = 1 << 20


class Block(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))  # LINE forward


class GPT(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        # Of the third block, the first matrix has 1 GiB of output.
        self.blocks = nn.ModuleList(Block(width, hidden) for hidden in (256, 256, 65_536, 256))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return x


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(300 * MIB // 4, device="cuda"))

    def forward(self):
        return (self.weight * 2).sum()


def fill(left):
    """Takes all memory but so much."""
    free, _ = torch.cuda.mem_get_info()
    return torch.empty(free - left, dtype=torch.uint8, device="cuda")


def in_forward():
    model = GPT().cuda()
    tokens = torch.zeros(4, 1024, dtype=torch.long, device="cuda")
    filler = fill(600 * MIB)
    model(tokens)


def in_backward():
    model = Scale()
    filler = fill(500 * MIB)
    loss = model()
    torch.cuda.empty_cache()
    filler = filler, fill(100 * MIB)
    loss.backward()  # LINE backward


def in_pieces():
    large = torch.empty(1000 * MIB, dtype=torch.uint8, device="cuda")
    del large
    pieces = [torch.empty(10 * MIB, dtype=torch.uint8, device="cuda") for _ in range(100)]
    del pieces[::2]
    filler = fill(50 * MIB)
    return torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")  # LINE pieces


messages = []
for case in (in_forward, in_backward, in_pieces):
    try:
        case()
    except torch.OutOfMemoryError as error:
        messages.append(str(error))
    torch.cuda.empty_cache()
    if case is in_forward:
        sys.stdin.readline()
say(messages=messages, left=torch.cuda.memory_allocated())
