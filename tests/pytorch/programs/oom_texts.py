"""All that PyTorch says when it is out of memory: messages and tracebacks of errors that are caught, and of one that is not.

`oom_texts.py [SETTINGS OF THE ALLOCATOR]`
"""

import os
import sys
import traceback

os.environ["PYTORCH_ALLOC_CONF"] = "".join(sys.argv[1:])
import torch
from torch import nn

MIB = 1 << 20


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 65_536)
        self.weight = nn.Parameter(torch.zeros(200 * MIB // 4))

    def forward(self, x):
        return self.layer(x)


def take(mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


def in_forward():
    filler = take(2300)
    net(torch.zeros(4096, 64, device="cuda"))


def in_backward():
    product = (net.weight * 2).sum()
    torch.cuda.empty_cache()
    filler = take(torch.cuda.mem_get_info()[0] // MIB - 100)
    product.backward()


def in_a_loop():
    pieces = [take(10) for _ in range(100)]
    del pieces[::2]
    while True:
        pieces.append(take(300))


net = Net().cuda()
for case in (in_forward, in_backward, in_a_loop):
    try:
        case()
    except torch.OutOfMemoryError:
        print(case.__name__, traceback.format_exc())
print(torch.cuda.memory_stats()["num_ooms"], flush=True)
in_forward()
