"""Ranks of NCCL that wait for each other: `barrier.py PATH`; their files lie beside it.

The last rank comes late to each case, which is a way to wait; the others look then whether it has come. Each rank prints what it
saw, by case.
"""

import os
import sys
import time
from pathlib import Path

from figures import say
import torch
from torch import distributed

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LATE_S = 0.3
LONGEST_S = 10
torch.cuda.set_device(rank)
distributed.init_process_group("nccl")
# By the processor, so that ranks begin each case together, whatever NCCL's barriers do.
beside = distributed.new_group(backend="gloo")
folder = Path(sys.argv[1]).parent


def plain():
    distributed.barrier()


def on_its_device():
    distributed.barrier(device_ids=[rank])


def waited_for():
    distributed.barrier(device_ids=[rank], async_op=True).wait()


def asked_for():
    work = distributed.all_reduce(torch.zeros(1, device="cuda"), async_op=True)
    if rank < world - 1:
        saw["asked_for, before"] = work.is_completed()
        write("asked_for, free")
    while not work.is_completed():
        time.sleep(0.001)


def by_stream():
    distributed.all_reduce(torch.zeros(1, device="cuda"))
    torch.cuda.current_stream().synchronize()


def by_event():
    distributed.broadcast(torch.zeros(1 << 20, device="cuda"), 0)
    event = torch.cuda.Event()
    event.record()
    event.synchronize()


def by_device():
    distributed.all_reduce(torch.zeros(1 << 20, device="cuda"), async_op=True)
    torch.cuda.synchronize()


def by_message():
    buffer = torch.zeros(1 << 20, device="cuda")
    if rank == world - 1:
        for other in range(world - 1):
            distributed.send(buffer, other)
    else:
        distributed.recv(buffer, world - 1)
    torch.cuda.synchronize()


def elsewhere():
    """What is on another stream does not wait."""
    work = distributed.all_reduce(torch.zeros(1, device="cuda"), async_op=True)
    event = torch.cuda.Event()
    event.record()
    torch.cuda.current_stream().synchronize()
    if rank < world - 1:
        saw["elsewhere, done"] = event.query() and torch.cuda.current_stream().query()
        write("elsewhere, free")
    work.wait()
    torch.cuda.synchronize()


def destroyed():
    """With work that nobody waited for."""
    distributed.all_reduce(torch.zeros(1 << 20, device="cuda"), async_op=True)
    distributed.destroy_process_group()


def write(name):
    (folder / f"{name}.{rank}").touch()


def there(name, ranks):
    return all((folder / f"{name}.{rank}").exists() for rank in range(ranks))


saw = {}
cases = [plain, on_its_device, waited_for, asked_for, by_stream, by_event, by_device, by_message, elsewhere, destroyed]
for case in cases:
    name = case.__name__
    distributed.barrier(group=beside)
    if rank == world - 1:
        time.sleep(LATE_S)
        if case in (asked_for, elsewhere):
            end = time.monotonic() + LONGEST_S
            while not there(f"{name}, free", world - 1) and time.monotonic() < end:
                time.sleep(0.01)
            saw[f"{name}, free"] = there(f"{name}, free", world - 1)
    write(name)
    case()
    saw[name] = there(name, world)
say(rank=rank, saw=saw)
