"""Modules that are moved, swapped, loaded, copied, replaced and shared, and their storages."""

import copy
import hashlib
import io
import pickle

from cases.net import Net, batch, case, digest, hash_of, train
import torch
import torch.nn as nn
import torch.nn.functional as F


@case
def moved():
    model = Net()
    for to in (lambda m: m.double(), lambda m: m.to(torch.bfloat16), lambda m: m.float(), lambda m: m.to("meta")):
        to(model)
        print(next(model.parameters()).dtype, next(model.parameters()).device)
    model.to_empty(device="cpu")
    for tensor in (*model.parameters(), *model.buffers()):
        nn.init.ones_(tensor)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))


@case
def swapped():
    # torch.utils.swap_tensors wants tensors that nobody else refers to, not even weakly.
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), 0.1))
        before = [id(p) for p in model.parameters()]
        model.double()
        model.load_state_dict(Net().double().state_dict())
        print([id(p) for p in model.parameters()] == before, hash_of(model))
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


@case
def loaded():
    source, model = Net(), Net()
    train(source, torch.optim.SGD(source.parameters(), 0.1))
    print(model.load_state_dict(source.state_dict()), hash_of(model))
    copied = {name: tensor.clone() for name, tensor in source.state_dict().items()}
    print(model.load_state_dict(copied, assign=True), model.head.weight.data_ptr() == copied["head.weight"].data_ptr())
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))
    try:
        model.load_state_dict({"nothing": torch.ones(1)})
    except RuntimeError as error:
        print(error)


@case
def copied():
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    twin = copy.deepcopy(model)
    print(hash_of(twin), *train(twin, torch.optim.SGD(twin.parameters(), 0.1)))
    print(sorted(vars(model)), sorted(vars(model.head.weight)), copy.copy(model.head.weight) is model.head.weight)
    file = io.BytesIO()
    torch.save(model, file)
    print(hashlib.sha256(file.getvalue()).hexdigest())
    print(hash_of(torch.load(io.BytesIO(file.getvalue()), weights_only=False)))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    print(hashlib.sha256(file.getvalue()).hexdigest(), list(torch.load(io.BytesIO(file.getvalue()))))
    text = pickle.dumps(model.head.bias)
    print(len(text), digest(pickle.loads(text)), model.head.bias.__reduce_ex__(2)[1][1:])
    print(copy.deepcopy(model.head.weight)._backward_hooks, model.head.weight._backward_hooks)


@case
def lazy():
    model = nn.Sequential(nn.LazyLinear(32), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(4))
    print(model)
    with torch.no_grad():
        model(batch()[0])
    print(model)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))


class Adapter(nn.Module):
    def __init__(self, inner, rank=2):
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.down, self.up = nn.Linear(inner.in_features, rank), nn.Linear(rank, inner.out_features)

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


@case
def replaced():
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    for name in ("tail", "head"):
        setattr(model, name, Adapter(getattr(model, name)))
    trained = [p for p in model.parameters() if p.requires_grad]
    print(*train(model, torch.optim.AdamW(trained, 0.01)), [name for name, _ in model.named_parameters()])
    model.requires_grad_(True)
    print(*train(model, torch.optim.AdamW(model.parameters(), 0.01)))
    del model.tail
    print(hasattr(model, "tail"), [name for name, _ in model.named_modules()])


@case
def shared():
    model = Net()
    model.tail = model.body[0]
    model.body.again = model.body[0].weight
    print(*train(model, torch.optim.Adam(model.parameters(), 0.01)), len(list(model.parameters())))


@case
def storages():
    model = Net()
    weight = model.tail.weight
    bytes_of = weight.untyped_storage()
    values, size = weight.detach().clone(), bytes_of.nbytes()
    bytes_of.resize_(0)
    print(bytes_of.nbytes())
    model.body(batch()[0])
    bytes_of.resize_(size)
    weight.data.copy_(values)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))
    flat = torch.zeros(sum(p.numel() for p in model.parameters()))
    at = 0
    for p in model.parameters():
        p.grad = flat[at : at + p.numel()].view_as(p)
        at += p.numel()
    F.cross_entropy(model(batch()[0]), batch()[1]).backward()
    print(digest(flat))


@case
def with_other_weights():
    model = Net()
    nn.utils.parametrizations.weight_norm(model.tail)
    nn.utils.parametrizations.spectral_norm(model.head)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))
    nn.utils.parametrize.remove_parametrizations(model.tail, "weight")
    print([name for name, _ in model.named_parameters()])
