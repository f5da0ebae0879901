"""Takes 700 MiB again and again until PyTorch refuses: `fill.py [SETTINGS OF THE ALLOCATOR]`."""

import os
import sys

os.environ["PYTORCH_ALLOC_CONF"] = "".join(sys.argv[1:])
from figures import say
import torch

taken, message = [], ""
try:
    while True:
        taken.append(torch.empty(700 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError as error:
    message = str(error)
say(taken=len(taken), message=message, refused=torch.cuda.memory_stats()["num_ooms"])
