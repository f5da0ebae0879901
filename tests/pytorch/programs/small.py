"""The smallest training, for tests of how PyTorch gets into a program."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(300, 300)

    def forward(self, x):
        return self.layer(x)


def train():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(2):
        model(torch.ones(7, 300)).sum().backward()
        optimizer.step()
    print("trained", sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    train()
