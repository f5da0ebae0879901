"""The programs of benches/pytorch: a transformer that trains on the CPU as many steps as it is told, and then waits.

`pytorch_steps.py SIZE [profiler]`: SIZE is `large` (about 100 ms a step on one thread of the machine in docs/performance.md) or
`tiny` (about 5 ms, nearly all of it the dispatch of small operators). For each line with a number of steps it prints the
nanoseconds of wall time and of the thread's processor time that they took. With `profiler`, each such turn lies inside
torch.profiler with profile_memory, whose start, first step and end are not counted: what remains is its recording alone.
"""

import contextlib
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {
    "large": dict(width=128, layers=4, batch=16, length=64, vocabulary=2000),
    "tiny": dict(width=32, layers=6, batch=2, length=16, vocabulary=200),
}


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm_1(x)).chunk(3, -1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        matrix = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1)
        x = x + self.proj((matrix @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_2(x))


class Transformer(nn.Module):
    def __init__(self, width, layers, length, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        self.register_buffer("index", torch.arange(length))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(self.index)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = dict(SIZES[sys.argv[1]])
    batch = sizes.pop("batch")
    model = Transformer(**sizes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    shape = (batch, sizes["length"])

    def step():
        tokens = torch.randint(0, sizes["vocabulary"], shape)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    def profiler():
        if "profiler" not in sys.argv:
            return contextlib.nullcontext()
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)

    print(f"ready: PyTorch {torch.__version__}", flush=True)
    for line in sys.stdin:
        with profiler():
            step()
            wall, thread = time.perf_counter_ns(), time.thread_time_ns()
            for _ in range(int(line)):
                step()
            wall, thread = time.perf_counter_ns() - wall, time.thread_time_ns() - thread
        print(wall, thread, flush=True)


if __name__ == "__main__":
    main()
