"""Finds the devices, takes ten floats, reads back what was copied and what a kernel would have computed."""

from figures import say
import torch

zeros = torch.zeros(10, device="cuda")
allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
written = torch.arange(4.0).cuda()
say(
    available=torch.cuda.is_available(),
    count=torch.cuda.device_count(),
    name=torch.cuda.get_device_name(1),
    allocated=allocated,
    written=written.tolist(),
    computed=(written + 1).tolist(),
)
