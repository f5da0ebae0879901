"""Training in all ways: precisions, accumulation, optimizers of all kinds, gradients of gradients."""

from cases.net import Net, batch, case, digest, hash_of, train
import torch
import torch.nn as nn
import torch.nn.functional as F


@case
def training():
    for keep in ("all", "plain", "reentrant"):
        for amp in (False, True):
            for accumulate in (1, 3):
                torch.manual_seed(1)
                model = Net(keep=keep)
                print(*train(model, torch.optim.AdamW(model.parameters(), 0.01), amp=amp, accumulate=accumulate))


@case
def optimizers():
    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
        lambda p: torch.optim.Adam(p, 0.1, fused=True),
        lambda p: torch.optim.Adagrad(p, 0.1),
        lambda p: torch.optim.RMSprop(p, 0.1, centered=True),
    ):
        model = Net()
        optimizer = make(model.parameters())
        print(*train(model, optimizer))
        state = optimizer.state_dict()["state"]
        print(digest(*(t for s in state.values() for t in s.values() if isinstance(t, torch.Tensor))))


@case
def lbfgs():
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
    x, y = batch()

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(2):
        print(optimizer.step(closure).item().hex(), hash_of(model))


@case
def scaled():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        x, y = batch()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(norm.item().hex(), hash_of(model))


@case
def scaled_too_much():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    for _ in range(2):
        x, y = batch()
        scaler.scale(F.cross_entropy(model(x), y) * 2.0**120).backward()
        print(scaler.step(optimizer), scaler.get_scale(), hash_of(model))
        scaler.update()
        optimizer.zero_grad()
    try:
        scaler.step()
    except TypeError as error:
        print(error)
    scaler.scale(F.cross_entropy(model(x), y)).backward()
    scaler.step(optimizer=optimizer)
    # It raises: without an update in between.
    scaler.step(optimizer)


@case
def several_models():
    maker, judge = Net(), Net()
    optimizers = [torch.optim.Adam(model.parameters(), 0.01) for model in (maker, judge)]
    for _ in range(3):
        x, y = batch()
        F.cross_entropy(judge(maker(x).repeat(1, 8)), y).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    print(hash_of(maker), hash_of(judge))


@case
def without_gradients():
    model = Net().eval()
    x, _ = batch()
    with torch.inference_mode():
        y = model(x)
        print(y.is_inference(), digest(y))
    with torch.no_grad():
        print(model(x).requires_grad)
    print([p.grad for p in model.parameters()])


@case
def higher_gradients():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    x = torch.randn(3, 4, requires_grad=True)
    (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    print(digest(g), hash_of(model))
    parameters = dict(model.named_parameters())
    # What stands for the parameters is no leaf here.
    moved = {name: p - 0.1 * p.detach() for name, p in parameters.items()}
    torch.func.functional_call(model, moved, (x,)).sum().backward()
    print(hash_of(model))

    def loss(parameters, row):
        return torch.func.functional_call(model, parameters, (row,)).sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x.detach())
    print(digest(*each.values()))
    print(digest(torch.func.jacrev(model)(x.detach()[0])))
