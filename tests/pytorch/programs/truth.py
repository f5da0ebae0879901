"""Trains a small model and writes down, from the objects of the program itself, what each tensor's memory is for.

    python truth.py MODEL TECHNIQUES DEVICE FILE

MODEL is transformer, resnet, gan or lora; TECHNIQUES any of amp, checkpoint, reentrant, accumulate, fused, foreach, sgd, joined
by commas, or none; several such sets, joined by slashes, are trained one after another, each with a model of its own.

At the end of each forward and backward pass and of each step, and at many moments within the backward passes of the last step,
a line of FILE says when that was (CLOCK_MONOTONIC, ns) and which storages there are: [address, bytes, category]. Parameters and
buffers are weights, `.grad` is gradients, what is in `optimizer.state` is the optimizer's, batches are inputs, and what autograd
saved (torch.autograd.graph.saved_tensors_hooks) or a checkpoint computed again is activations. Nothing here knows of memscope.
"""

import gc
import itertools
import json
import sys
import time
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

model_name, sets, device, file = sys.argv[1:]
techniques = set()
out = open(file, "w")
torch.manual_seed(0)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = (
            part.view(batch, time, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.norm_2(x))


def run(block, x):
    if "reentrant" in techniques and torch.is_grad_enabled():
        return checkpoint(lambda x: saving(block, x), x, use_reentrant=True)
    if "checkpoint" in techniques and torch.is_grad_enabled():
        return checkpoint(block, x, use_reentrant=False)
    return block(x)


def saving(block, x):
    """A reentrant checkpoint computes again where the hooks of the first time are not set."""
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        return block(x)


class Transformer(nn.Module):
    def __init__(self, vocabulary=500, width=128, layers=4, heads=4, length=64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        self.register_buffer("index", torch.arange(length))

    def forward(self, x):
        x = self.tokens(x) + self.positions(self.index)
        for layer in self.layers:
            x = run(layer, x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        out = channels * stride
        self.conv_1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.conv_2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn_1, self.bn_2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.skip = nn.Conv2d(channels, out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = self.bn_2(self.conv_2(F.relu(self.bn_1(self.conv_1(x)))))
        return F.relu(y + self.skip(x))


class Resnet(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        self.blocks = nn.ModuleList([Residual(width, 1), Residual(width, 2), Residual(2 * width, 2)])
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = run(block, x)
        return self.fc(x.mean((2, 3)))


class Adapted(nn.Module):
    """A frozen linear layer with a low-rank adapter."""

    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def with_adapters(model):
    model.requires_grad_(False)
    for layer in model.layers:
        layer.qkv, layer.proj = Adapted(layer.qkv), Adapted(layer.proj)
    return model


kept, frames = weakref.WeakSet(), weakref.WeakSet()


class Holder:
    """What autograd saved, as long as it keeps it."""

    def __init__(self, tensor):
        self.tensor = tensor
        kept.add(self)


def pack(tensor):
    # Without its graph, which would keep the holder.
    return Holder(tensor.detach())


def unpack(holder):
    look()
    return holder.tensor


class Frame(torch.utils.checkpoint._CheckpointFrame):
    """A checkpoint, in whose `recomputed` is what it saved when it computed again."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        frames.add(self)


torch.utils.checkpoint._CheckpointFrame = Frame


def nothing(*_):
    pass


# Called within backward passes: when autograd takes out what it saved, and when a parameter has got its gradient.
look = nothing


def note(instant, modules, optimizers, batch, pause=0.002):
    storages = {}

    def add(tensor, category):
        storage = tensor.untyped_storage()
        if tensor.device.type == device and storage.nbytes():
            storages.setdefault(storage.data_ptr(), (storage.nbytes(), category))

    for module in modules:
        for tensor in [*module.parameters(), *module.buffers()]:
            add(tensor, "weights")
    for module in modules:
        for parameter in module.parameters():
            if parameter.grad is not None:
                add(parameter.grad, "gradients")
    for optimizer in optimizers:
        for state in optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    add(value, "optimizer")
    for tensor in batch:
        add(tensor, "inputs")
    for holder in list(kept):
        add(holder.tensor, "activations")
    for frame in list(frames):
        for again in frame.recomputed.values():
            for tensor in list(again.values()):
                add(tensor, "activations")
    # Clocks that are read one after another are this far apart at most.
    time.sleep(pause)
    now = time.monotonic_ns()
    time.sleep(pause)
    rows = [[address, *facts] for address, facts in storages.items()]
    names = ", ".join(sorted(techniques)) or "plain"
    print(json.dumps({"set": names, "instant": instant, "time": now, "storages": rows}), file=out)


def optimizer_of(model):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if "sgd" in techniques:
        return torch.optim.SGD(trained, lr=0.01, momentum=0.9)
    how = {name: True for name in ("fused", "foreach") if name in techniques}
    return torch.optim.AdamW(trained, lr=1e-3, **how)


def autocast():
    return torch.autocast(device, torch.bfloat16, enabled="amp" in techniques)


def micro_batches():
    return 2 if "accumulate" in techniques else 1


STEPS = 4


def watch(modules):
    for module in modules:
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(lambda _: look())


def backward(loss, last, *objects):
    """A backward pass, looked into in the last step."""
    global look
    calls = itertools.count()
    # What is computed again is there for a short time; the rest a few looks find.
    every = 1 if {"checkpoint", "reentrant"} & techniques else 8

    def look_now():
        if next(calls) % every == 0:
            note("within backward", *objects, pause=0.0003)

    look = look_now if last else nothing
    loss.backward()
    look = nothing


def train(model, batches, loss_of):
    optimizer = optimizer_of(model)
    watch([model])
    for number, batch in enumerate(batches):
        batch = [tensor.to(device) for tensor in batch]
        objects = [model], [optimizer], batch
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            with autocast():
                loss = loss_of(model(batch[0]), batch[1]) / micro_batches()
        note("end of forward", *objects)
        backward(loss, number // micro_batches() == STEPS - 1, *objects)
        note("end of backward", *objects)
        if (number + 1) % micro_batches() == 0:
            optimizer.step()
            note("end of step", *objects)
            optimizer.zero_grad()


class Half(nn.Module):
    """The generator or the critic of a GAN."""

    def __init__(self, inner, end, activation):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inner, 256), activation, nn.Linear(256, 256), activation)
        self.head = nn.Linear(256, end)

    def forward(self, x):
        return self.head(run(self.body, x))


def train_gan():
    width, rows = 64, 64
    generator, critic = Half(16, width, nn.ReLU()).to(device), Half(width, 1, nn.LeakyReLU(0.2)).to(device)
    optimizers = [optimizer_of(critic), optimizer_of(generator)]
    modules = [generator, critic]
    watch(modules)
    batches = iter(DataLoader(TensorDataset(torch.randn(rows * STEPS * micro_batches(), width)), batch_size=rows))
    for number in range(STEPS):
        last = number == STEPS - 1
        # What this step is given: the graph of a `fake` that was detached keeps its noise until there is another.
        given = []
        objects = modules, optimizers, given
        optimizers[0].zero_grad()
        for _ in range(micro_batches()):
            real = next(batches)[0].to(device)
            noise = torch.randn(rows, 16, device=device)
            given += [real, noise]
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack), autocast():
                fake = generator(noise)
                loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean()
            note("end of forward", *objects)
            backward(loss / micro_batches(), last, *objects)
        optimizers[0].step()
        note("end of step", *objects)
        optimizers[1].zero_grad()
        for _ in range(micro_batches()):
            noise = torch.randn(rows, 16, device=device)
            given.append(noise)
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack), autocast():
                fake = generator(noise)
                loss = F.softplus(-critic(fake)).mean()
            note("end of forward", *objects)
            backward(loss / micro_batches(), last, *objects)
            note("end of backward", *objects)
        optimizers[1].step()
        note("end of step", *objects)


def tokens():
    rows = 16 * STEPS * micro_batches()
    data = TensorDataset(torch.randint(0, 500, (rows, 64)), torch.randint(0, 500, (rows, 64)))
    return DataLoader(data, batch_size=16)


def of_tokens(logits, targets):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def train_model():
    if model_name == "transformer":
        train(Transformer().to(device), tokens(), of_tokens)
    elif model_name == "lora":
        train(with_adapters(Transformer()).to(device), tokens(), of_tokens)
    elif model_name == "resnet":
        rows = 16 * STEPS * micro_batches()
        images = TensorDataset(torch.randn(rows, 3, 32, 32), torch.randint(0, 10, (rows,)))
        train(Resnet().to(device), DataLoader(images, batch_size=16), nn.CrossEntropyLoss())
    else:
        train_gan()


for names in sets.split("/"):
    techniques = set(names.split(",")) - {"none"}
    train_model()
    # What is left of this one is no truth of the next.
    gc.collect()
    kept.clear()
out.close()
print("{}")
