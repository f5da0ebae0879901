"""Two ranks on the CPU, started by torchrun."""

import os
import sys

import torch
import torch.distributed as distributed
import torch.nn as nn
from small import Net

torch.set_num_threads(1)
distributed.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    model(torch.ones(7, 300) * (distributed.get_rank() + 1)).sum().backward()
    optimizer.step()
total = sum(p.double().sum() for p in model.parameters())
distributed.all_reduce(total)
if distributed.get_rank() == 0:
    print("both", distributed.get_world_size(), total.item().hex())
distributed.destroy_process_group()
sys.stdout.flush()
# On a busy machine PyTorch's threads may still run when its libraries are torn down, and it aborts, with and without memscope.
os._exit(0)
