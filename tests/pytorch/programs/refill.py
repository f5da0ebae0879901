"""Fills the device with tensors of 700 MiB; catches the error, gives half of them back and goes on; then fails 20 times more."""

import json

import torch

MIB = 1 << 20


def tensor(mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")  # LINE fill


tensors, message = [], None
while message is None:
    try:
        tensors.append(tensor(700))
    except torch.OutOfMemoryError as error:
        message = str(error)
count = len(tensors)
del tensors[::2]
tensors.append(tensor(1000))
for _ in range(20):
    try:
        tensor(23 * 1024)
    except torch.OutOfMemoryError:
        pass
print(json.dumps({"count": count, "message": message}))
