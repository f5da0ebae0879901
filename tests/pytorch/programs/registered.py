"""CPU tensors whose memory CUDA pins in place, and one that it pins by a copy: bytes that are the host's once."""

import torch
from figures import say

MIB = 1 << 20
cudart = torch.cuda.cudart()
torch.zeros(1, device="cuda")
tensor = torch.zeros(64 * MIB, dtype=torch.uint8)
results = [int(cudart.cudaHostRegister(tensor.data_ptr(), tensor.nbytes, 0))]
in_place = tensor.is_pinned()
copy = torch.zeros(16 * MIB, dtype=torch.uint8).pin_memory()
# Memory that no tensor's allocator made.
foreign = torch.frombuffer(bytearray(32 * MIB), dtype=torch.uint8)
results.append(int(cudart.cudaHostRegister(foreign.data_ptr(), foreign.nbytes, 0)))
results += [int(cudart.cudaHostUnregister(one.data_ptr())) for one in (foreign, tensor)]
del tensor
say(results=results, in_place=in_place)
