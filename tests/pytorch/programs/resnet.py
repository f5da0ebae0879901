"""ResNet-18, a batch of 128, three steps of SGD: `resnet.py fp32|channels_last|no_cudnn [MARKS]`; channels_last is bf16 too."""

import sys

from figures import mark, say
import torch
from torch import nn
from torch.nn import functional as F


def convolution(inputs, outputs, size, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = convolution(inputs, outputs, 3, stride), convolution(outputs, outputs, 3, 1)
        self.past = convolution(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.past(x))


def resnet():
    layers, inputs = [convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


case = sys.argv[1]
torch.backends.cudnn.enabled = case != "no_cudnn"
layout = torch.channels_last if case == "channels_last" else torch.contiguous_format
model = resnet().cuda().to(memory_format=layout)
requested = torch.cuda.memory_stats()["requested_bytes.all.current"]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    images = torch.randn(128, 3, 224, 224).cuda(non_blocking=True).to(memory_format=layout)
    labels = torch.zeros(128, dtype=torch.long, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=case == "channels_last"):
        loss = F.cross_entropy(model(images), labels)
    mark()
    loss.backward()
    mark()
    optimizer.step()
    optimizer.zero_grad()
    mark()
tensors = list(model.parameters()) + list(model.buffers())
say(requested=requested, arithmetic=sum(tensor.numel() * tensor.element_size() for tensor in tensors))
