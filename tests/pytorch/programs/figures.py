"""What every program of this folder prints: its own figures, and PyTorch's count of device 0.

With a path as its last argument a program also writes, at each `mark()`, what PyTorch's snapshot shows at that moment: one line of
JSON with the time.
"""

import json
import sys
import time

import torch

MARKS = open(sys.argv[-1], "w") if "/" in sys.argv[-1] and len(sys.argv) > 2 else None
# Between events and the clock's reading: more than two clocks can differ.
APART_S = 0.005


def mark():
    if MARKS is None:
        return
    torch.cuda.synchronize()
    time.sleep(APART_S)
    segments = torch.cuda.memory._snapshot()["segments"]
    line = {
        "time": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        "blocks": sorted(
            (block["address"], block["size"])
            for segment in segments
            for block in segment["blocks"]
            if block["state"] == "active_allocated"
        ),
        "segments": sorted((segment["address"], segment["total_size"]) for segment in segments),
        "reserved": torch.cuda.memory_reserved(),
        "allocated": torch.cuda.memory_allocated(),
    }
    print(json.dumps(line), file=MARKS, flush=True)
    time.sleep(APART_S)


def say(**figures):
    if torch.cuda.is_available():
        count = torch.cuda.memory_stats()
        figures |= {
            "reserved": count["reserved_bytes.all.current"],
            "peak_reserved": count["reserved_bytes.all.peak"],
            "segments": count["segment.all.current"],
            "segments_made": count["segment.all.allocated"],
            "segments_freed": count["segment.all.freed"],
            "peak_allocated": count["allocated_bytes.all.peak"],
        }
    # In one write: ranks print at the same time, and what torchrun starts writes a line and its end apart.
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    # PyTorch aborts now and then when the interpreter ends while a thread of autograd still drops what it held.
    time.sleep(0.2)
