"""A model in other processes: workers of a DataLoader, children by fork and by spawn, another Python."""

import hashlib
import subprocess
import sys

import torch
import torch.multiprocessing as multiprocessing
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.layer(x))


def train(seed):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(3):
        model(torch.randn(4, 8)).pow(2).sum().backward()
        optimizer.step()
    return hashlib.sha256(str([p.tolist() for p in model.parameters()]).encode()).hexdigest()[:16]


class Trained(Dataset):
    """Each worker trains a model of its own."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((3,), float(index)), int(train(index), 16) % 1000


def send(queue, model):
    queue.put((train(9), model(torch.ones(1, 8)).tolist()))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Net()
    print(model(torch.ones(1, 8)).tolist())
    for method, workers in (("fork", 2), ("spawn", 1)):
        for x, y in DataLoader(Trained(), batch_size=2, num_workers=workers, multiprocessing_context=method):
            print(method, x.tolist(), y.tolist())
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=send, args=(queue, model))
    child.start()
    print(queue.get())
    child.join()
    print(child.exitcode, train(9))
    text = "import importlib; torch = importlib.import_module('torch'); print(torch.nn.Linear(2, 2))"
    print(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True))
