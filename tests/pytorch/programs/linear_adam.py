"""One layer, three steps of Adam: bytes of the parameters and of the optimizer's states, as PyTorch's allocator counts them.

`linear_adam.py [SETTINGS OF THE ALLOCATOR]`
"""

import os
import sys

os.environ["PYTORCH_ALLOC_CONF"] = "".join(sys.argv[1:])
from figures import say
import torch

allocated = torch.cuda.memory_allocated
model = torch.nn.Linear(1024, 4096).cuda()
parameters = allocated()
optimizer = torch.optim.Adam(model.parameters())
states = 0
for _ in range(3):
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    before = allocated()
    optimizer.step()
    states += allocated() - before
    optimizer.zero_grad()
say(parameters=parameters, states=states)
