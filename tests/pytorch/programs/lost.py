"""Ranks that do not come any more: rank 1 is killed, rank 2 stands still. `lost.py PATH`, whose folder is for the ranks' store.

Started by itself, it starts three ranks, and asks how rank 1 ended only once rank 0 has; started by torchrun it is a rank.
"""

import os
import signal
import subprocess
import sys
import time

RANKS = 3


def start():
    ranks = [
        subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS)})
        for rank in range(RANKS)
    ]
    status = ranks[0].wait()
    for rank in ranks:
        rank.kill()
        rank.wait()
    sys.exit(status)


if "RANK" not in os.environ:
    start()

from figures import say
import torch
from torch import distributed

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
alone = {} if "TORCHELASTIC_RUN_ID" in os.environ else {"init_method": f"file://{sys.argv[1]}.store"}
distributed.init_process_group("nccl", rank=rank, world_size=world, **alone)
groups = [distributed.new_group([0, other]) for other in range(1, world)]
together = torch.tensor([rank + 1.0]).cuda()
distributed.all_reduce(together)
together = together.item()
distributed.barrier()
if rank > 0:
    # With something that nobody has read.
    distributed.all_reduce(torch.tensor([7.0]).cuda(), group=groups[rank - 1])
    os.kill(os.getpid(), signal.SIGKILL if rank == 1 else signal.SIGSTOP)
waited = []
for group in groups:
    distributed.all_reduce(torch.tensor([1.0]).cuda(), group=group)
    began = time.monotonic()
    distributed.barrier(group)
    waited.append(time.monotonic() - began)
say(together=together, waited=waited)
# Not to destroy what others have left.
os._exit(0)
