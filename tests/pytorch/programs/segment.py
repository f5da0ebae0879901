"""Leaves 16 MiB of the device, and asks for a tensor of 8 MiB: PyTorch takes segments of 20 MiB for such."""

import torch
from figures import say

MIB = 1 << 20

torch.empty(1, device="cuda")
free, _ = torch.cuda.mem_get_info()
filler = torch.empty(free - 16 * MIB, dtype=torch.uint8, device="cuda")
try:
    torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    say(message=str(error))
