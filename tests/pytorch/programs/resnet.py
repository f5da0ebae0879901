"""ResNet-18, a batch of 128, three steps of SGD: `resnet.py fp32|channels_last|fp16|checkpoint|expandable|no_cudnn [MARKS]`.

channels_last is bf16 too; fp16 scales its gradients; checkpoint and expandable (segments that grow) are fp32.
"""

import os
import sys

if sys.argv[1] == "expandable":
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
from figures import mark, say
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def convolution(inputs, outputs, size, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = convolution(inputs, outputs, 3, stride), convolution(outputs, outputs, 3, 1)
        self.past = convolution(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return checkpoint(self.compute, x, use_reentrant=False) if case == "checkpoint" else self.compute(x)

    def compute(self, x):
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
scaler = torch.amp.GradScaler("cuda", enabled=case == "fp16")
dtype = {"channels_last": torch.bfloat16, "fp16": torch.float16}.get(case)
for _ in range(3):
    images = torch.randn(128, 3, 224, 224).cuda(non_blocking=True).to(memory_format=layout)
    labels = torch.zeros(128, dtype=torch.long, device="cuda")
    with torch.autocast("cuda", dtype=dtype or torch.float32, enabled=dtype is not None):
        loss = F.cross_entropy(model(images), labels)
    mark()
    scaler.scale(loss).backward()
    mark()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    mark()
tensors = list(model.parameters()) + list(model.buffers())
say(requested=requested, arithmetic=sum(tensor.numel() * tensor.element_size() for tensor in tensors))
