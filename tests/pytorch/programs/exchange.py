"""What ranks of NCCL exchange: a model in DistributedDataParallel, objects, values that the program put on the device, barriers."""

import os

from figures import say
import torch
from torch import distributed, nn

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
torch.cuda.set_device(rank)
alone = {"store": distributed.HashStore(), "rank": 0, "world_size": 1} if world == 1 else {}
distributed.init_process_group("nccl", **alone)


def of_host(*values):
    """Values of the host on the device."""
    return torch.tensor(values).cuda()


def reduced(operation):
    tensor = of_host(rank + 2.0, -rank)
    distributed.all_reduce(tensor, operation)
    return tensor.tolist()


def gathered():
    every = [torch.empty(2, dtype=torch.long, device="cuda") for _ in range(world)]
    distributed.all_gather(every, of_host(rank, 7))
    return [one.tolist() for one in every]


def sent_on():
    """Round the ring, in one group."""
    place = torch.empty(1, dtype=torch.long, device="cuda")
    message = of_host(100 + rank)
    operations = [
        distributed.P2POp(distributed.isend, message, (rank + 1) % world),
        distributed.P2POp(distributed.irecv, place, (rank - 1) % world),
    ]
    for work in distributed.batch_isend_irecv(operations):
        work.wait()
    return place.item()


def objects():
    every, listed = [None] * world, [{"rate": 0.1, "from": rank}, "x"]
    distributed.all_gather_object(every, {"rank": rank})
    distributed.broadcast_object_list(listed, src=0)
    return [every, listed]


def scattered():
    place = torch.empty(1, dtype=torch.long, device="cuda")
    distributed.reduce_scatter_tensor(place, of_host(*range(10, 10 + world)))
    return place.item()


said = {
    "sum": reduced(distributed.ReduceOp.SUM),
    "greatest": reduced(distributed.ReduceOp.MAX),
    "average": reduced(distributed.ReduceOp.AVG),
    "gathered": gathered(),
    "sent": sent_on() if world > 1 else 100,
    "objects": objects(),
    "scattered": scattered(),
}
distributed.barrier()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_stats()["requested_bytes.all.current"]
model = nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 256)).cuda()
parameters = sum(parameter.numel() for parameter in model.parameters())
kept = torch.cuda.memory_stats()["requested_bytes.all.current"] - before
parallel = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
buckets = torch.cuda.memory_stats()["requested_bytes.all.current"] - before - kept
optimizer = torch.optim.SGD(parallel.parameters(), 0.1)
for _ in range(3):
    parallel(torch.randn(16, 512, device="cuda")).sum().backward()
    optimizer.step()
gradients = sum(parameter.grad.numel() for parameter in model.parameters())
say(rank=rank, parameters=parameters, gradients=gradients, kept=kept, buckets=buckets, **said)
distributed.destroy_process_group()
