"""Two ranks on the CPU, started by torchrun: DistributedDataParallel with its buckets beside the gradients and as the gradients,
and FSDP2. What they compute is printed; marks.py writes what their tensors are."""

import os
import sys

import torch
import torch.distributed as distributed
import torch.nn as nn
from marks import gradients, mark, states
from small import Net
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.fsdp import fully_shard

torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()


def say(name, total):
    distributed.all_reduce(total)
    if rank == 0:
        print(name, distributed.get_world_size(), total.item().hex(), flush=True)


def replicated(as_buckets):
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(Net(), Net()), gradient_as_bucket_view=as_buckets, bucket_cap_mb=0.3
    )
    buckets = {}

    def reduce(state, bucket):
        # Of the objects of DDP's that a program can hold, a bucket's tensor is the only one that is the memory itself.
        buckets[bucket.index()] = bucket.buffer()
        return default_hooks.allreduce_hook(state, bucket)

    model.register_comm_hook(None, reduce)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for step in range(4):
        x = torch.ones(7, 300) * (rank + 1)
        model(x).square().sum().backward()
        mark(
            f"replicated {step}", weights=model.parameters(), gradients=[*gradients(model), *buckets.values()],
            optimizer=states(optimizer), inputs=[x],
        )
        buckets.clear()
        optimizer.step()
        if step % 2:
            optimizer.zero_grad()
    mark("replicated, trained", weights=model.parameters(), optimizer=states(optimizer))
    say("both", sum(p.double().sum() for p in model.parameters()).detach())


class Gathered(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(310, 310) / 310)

    def forward(self, x):
        mark("gathered", weights=[self.weight])
        return x @ self.weight


def sharded():
    torch.manual_seed(0)
    model = nn.Sequential(Gathered(), Gathered(), nn.Linear(310, 10))
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for step in range(3):
        x = torch.ones(7, 310) * (rank + 1)
        model(x).square().sum().backward()
        mark(
            f"sharded {step}", weights=model.parameters(), gradients=gradients(model), optimizer=states(optimizer), inputs=[x]
        )
        optimizer.step()
        if step:
            optimizer.zero_grad()
    mark("sharded, trained", weights=model.parameters(), optimizer=states(optimizer))
    say("sharded", sum(p.to_local().double().sum() for p in model.parameters()).detach())


replicated(False)
replicated(True)
sharded()
distributed.destroy_process_group()
sys.stdout.flush()
# On a busy machine PyTorch's threads may still run when its libraries are torn down, and it aborts, with and without memscope.
os._exit(0)
