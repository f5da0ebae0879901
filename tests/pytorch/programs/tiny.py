"""Tiny tensors: COUNT of 12 bytes made and dropped, COUNT of 20 bytes made and held. `tiny.py COUNT`; prints what they took."""

import json
import resource
import sys
import time

import torch

torch.set_num_threads(1)
count = int(sys.argv[1])


def timed(work):
    begin = time.perf_counter()
    kept = work()
    return kept, (time.perf_counter() - begin) / count * 1e6


def dropped():
    for _ in range(count):
        torch.empty(3)


def held():
    return [torch.empty(5) for _ in range(count)]


torch.empty(1)
_, microseconds_dropped = timed(dropped)
tensors, microseconds_held = timed(held)
assert len(tensors) == count
mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(dict(dropped=microseconds_dropped, held=microseconds_held, mebibytes=mebibytes)))
