"""Threads, objects that come and go, and very many of them."""

import gc
import sys
import threading
import weakref

from cases.net import Net, batch, case, digest, train
import torch
import torch.nn as nn
import torch.nn.functional as F


@case
def threads():
    torch.manual_seed(5)
    model, results = Net().eval(), {}
    inputs = [batch() for _ in range(8)]

    def work(index):
        total = []
        for _ in range(5):
            x, y = inputs[index]
            g = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
            total.append(digest(*g))
        results[index] = total

    workers = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(sorted(results.items()))


@case
def lifetimes():
    alive = []
    for _ in range(3):
        model = Net()
        train(model, torch.optim.Adam(model.parameters(), 0.01))
        alive += [weakref.ref(model), weakref.ref(model.head)]
        del model
    # Without a collection: nothing of it is in a cycle, nor kept.
    print([reference() for reference in alive])
    model = Net()
    model.myself = [model]
    parameter = model.head.weight
    del model
    gc.collect()
    print(sys.getrefcount(parameter), weakref.getweakrefcount(parameter))


@case
def many():
    tensors = [torch.ones(1) for _ in range(100_000)]
    print(len(tensors), sum(t.item() for t in tensors[::1000]))
    model = nn.Identity()
    print(len(model(list(range(1_000_000)))), len(model(tensors)))
    for _ in range(200):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        y = model(torch.ones(1, 2)).sum()
    print(y.dtype)
