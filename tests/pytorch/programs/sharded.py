"""Eight layers sharded over the ranks by FSDP2, two steps of AdamW. Each rank prints a line."""

import os

from figures import say
import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
distributed.init_process_group("nccl")
model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda()
whole = torch.cuda.memory_stats()["requested_bytes.all.current"]
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(64, 2048, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
reserved = torch.cuda.memory_stats(rank)["reserved_bytes.all.current"]
say(rank=rank, whole=whole, kept=torch.cuda.memory_allocated(), reserved_here=reserved)
distributed.destroy_process_group()
