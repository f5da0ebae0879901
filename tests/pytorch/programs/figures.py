"""What every program of this folder prints: its own figures, and PyTorch's count of device 0."""

import json

import torch


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
    print(json.dumps(figures), flush=True)
