"""A GPT of 124 million parameters, three steps: `gpt.py fp32|bf16|fp16|checkpoint|expandable [MARKS]`.

fp16 scales its gradients; checkpoint and expandable (segments that grow) are bf16.
"""

import os
import resource
import sys

if sys.argv[1] == "expandable":
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
from figures import mark, say
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 50304, 1024, 768, 12, 12, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, tokens, _ = x.shape
        heads = (part.view(batch, tokens, HEADS, -1).transpose(1, 2) for part in self.attention(self.first(x)).split(WIDTH, 2))
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(batch, tokens, WIDTH)
        x = x + F.dropout(self.projection(mixed), 0.1, self.training)
        return x + self.mlp(self.second(x))


class Gpt(nn.Module):
    def __init__(self, checkpointed):
        super().__init__()
        self.checkpointed = checkpointed
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.last = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        logits = self.head(self.last(x))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


case = sys.argv[1]
dtype = {"fp32": None, "fp16": torch.float16}.get(case, torch.bfloat16)
with torch.device("cuda"):
    model = Gpt(case == "checkpoint")
parameters = torch.cuda.memory_stats()["requested_bytes.all.current"]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda", enabled=case == "fp16")
for _ in range(3):
    tokens, targets = (torch.randint(0, VOCABULARY, (BATCH, CONTEXT), device="cuda") for _ in range(2))
    with torch.autocast("cuda", dtype=dtype or torch.float32, enabled=dtype is not None):
        loss = model(tokens, targets)
    mark()
    scaler.scale(loss).backward()
    mark()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    del loss, tokens, targets
    mark()
say(
    parameters=parameters,
    counted=sum(parameter.numel() for parameter in model.parameters()),
    host_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
)
