"""What the cases of unchanged.py share: a module, a training of it, and hashes of what came of that."""

import ctypes
import hashlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def digest(*tensors):
    total = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            total.update(b"none")
        else:
            tensor = tensor.detach().contiguous()
            total.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            total.update(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))
    return total.hexdigest()[:16]


def hash_of(model):
    named = [*model.named_parameters(), *model.named_buffers()]
    return digest(*(tensor for _, tensor in named), *(tensor.grad for _, tensor in named if tensor.is_leaf))


class Net(nn.Module):
    def __init__(self, width=32, keep="all"):
        super().__init__()
        self.keep = keep
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1), nn.BatchNorm1d(width))
        self.tail = nn.Linear(width, width)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        if self.keep == "all":
            return self.head(self.tail(self.body(x)))
        x = checkpoint(self.body, x, use_reentrant=self.keep == "reentrant")
        return self.head(checkpoint(self.tail, x, use_reentrant=self.keep == "reentrant"))


def batch(width=32, rows=16):
    return torch.randn(rows, width, requires_grad=True), torch.randint(4, (rows,))


def train(model, optimizer, steps=3, amp=False, accumulate=1, loss=F.cross_entropy):
    losses = []
    for _ in range(steps):
        for _ in range(accumulate):
            x, y = batch()
            with torch.autocast("cpu", torch.bfloat16, enabled=amp):
                value = loss(model(x), y) / accumulate
            value.backward()
        optimizer.step()
        losses.append(value.item().hex())
        if _ % 2:
            optimizer.zero_grad()
    return losses, hash_of(model)
