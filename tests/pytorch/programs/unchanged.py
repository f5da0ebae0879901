"""Everything that a training program may do to its modules, and what came of it, a line for each case.

What is printed is the same in every run: losses, and a hash of the bytes of parameters, gradients and states. A case that
raises prints its traceback. Nothing here knows of memscope; a run under it must print the same.
"""

import sys
import traceback

import given
import torch
from cases.net import CASES

# In the order in which they run.
from cases import training, modules, hooks, failures, lifetimes, compiled

torch.set_num_threads(1)

# First, while nothing was called that no backward pass follows: what is made after that is held to be of it.
CASES = {**given.CASES, **CASES}
wanted = sys.argv[1:] or list(CASES)
for name in wanted:
    print(f"== {name}", flush=True)
    print(f"== {name}", file=sys.stderr, flush=True)
    torch.manual_seed(0)
    try:
        CASES[name]()
    except Exception:
        traceback.print_exc()
