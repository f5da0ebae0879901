"""The tiny GPT of the GPT sample in plain PyTorch: the half of benches/step that is not ours.

`step_torch.py FOLDER THREADS` reads sizes, weights and batches as samples/examples/steps.rs wrote them, and answers as that
program does: for each line with a number of steps, the nanoseconds that they took and the loss of the last. Nothing is
left to choose that the sample does not do too: fp32, attention with its matrix, one allocation for each result, gradients
dropped after each step, AdamW parameter by parameter, weights decaying only if they are matrices.
"""
import pathlib
import sys
import time

import numpy
import torch
from torch.nn import functional


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.projection = torch.nn.Linear(width, width)
        self.ln_2 = torch.nn.LayerNorm(width)
        self.expand = torch.nn.Linear(width, 4 * width)
        self.contract = torch.nn.Linear(4 * width, width)

    def forward(self, stream, hidden):
        stream = stream + self.attention(self.ln_1(stream), hidden)
        inner = functional.gelu(self.expand(self.ln_2(stream)), approximate="tanh")
        return stream + self.contract(inner)

    def attention(self, stream, hidden):
        batch, sequence, width = stream.shape
        apart = self.qkv(stream).view(batch, sequence, 3, self.heads, width // self.heads)
        q, k, v = apart.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        matrix = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.projection((matrix @ v).transpose(1, 2).reshape(batch, sequence, width))


class Gpt(torch.nn.Module):
    def __init__(self, sequence, layers, width, heads, vocabulary, positions):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Embedding(positions, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        self.register_buffer("places", torch.arange(sequence), persistent=False)
        hidden = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, tokens):
        stream = self.tokens(tokens) + self.positions(self.places)
        for block in self.blocks:
            stream = block(stream, self.hidden)
        return functional.linear(self.norm(stream), self.tokens.weight)


def load_weights(model, folder):
    """Takes the sample's weights; refuses another list of shapes. Both list parameters in the order of the forward pass."""
    theirs = [line.split() for line in (folder / "parameters").read_text().splitlines()]
    ours = list(model.parameters())
    if [[int(size) for size in shape] for _, *shape in theirs] != [list(parameter.shape) for parameter in ours]:
        raise SystemExit(f"the two models differ: {theirs} here {[tuple(parameter.shape) for parameter in ours]}")
    values = torch.from_numpy(numpy.fromfile(folder / "weights", dtype="<f4"))
    with torch.no_grad():
        for parameter, part in zip(ours, values.split([parameter.numel() for parameter in ours])):
            parameter.copy_(part.view_as(parameter))


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(int(sys.argv[2]))
    *sizes, rate = (folder / "sizes").read_text().split()
    batch, sequence, layers, width, heads, vocabulary, positions = map(int, sizes)
    model = Gpt(sequence, layers, width, heads, vocabulary, positions)
    load_weights(model, folder)
    batches = torch.from_numpy(numpy.fromfile(folder / "batches", dtype="<i8")).view(-1, 2, batch, sequence)
    groups = [
        {"params": [parameter for parameter in model.parameters() if parameter.dim() > 1], "weight_decay": 0.01},
        {"params": [parameter for parameter in model.parameters() if parameter.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=float(rate), foreach=False)
    taken = 0

    def step():
        nonlocal taken
        tokens, targets = batches[taken]
        taken += 1
        optimizer.zero_grad()
        logits = model(tokens)
        loss = functional.cross_entropy(logits.view(-1, vocabulary), targets.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.item()

    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"ready: PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {count} parameters", flush=True)
    for line in sys.stdin:
        begun = time.perf_counter_ns()
        for _ in range(int(line)):
            loss = step()
        print(time.perf_counter_ns() - begun, loss, flush=True)


if __name__ == "__main__":
    main()
