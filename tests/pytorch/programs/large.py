"""A model of 6.7 billion parameters in bf16 with checkpointed blocks and AdamW: two steps on a device that it just fits."""

import resource
import time

from figures import say
import torch

imported = time.process_time()
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, LAYERS, BATCH, TOKENS = 32000, 4096, 32, 4, 2048


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        heads = (part.view(BATCH, TOKENS, 32, -1).transpose(1, 2) for part in self.attention(self.first(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.projection(mixed)
        return x + self.down(F.gelu(self.up(self.second(x))))


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    embedding, head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
    blocks = nn.ModuleList(Block() for _ in range(LAYERS))
parameters = list(nn.ModuleList([embedding, blocks, head]).parameters())
optimizer = torch.optim.AdamW(parameters)
for _ in range(2):
    tokens = torch.randint(0, VOCABULARY, (BATCH, TOKENS), device="cuda")
    x = embedding(tokens)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    F.cross_entropy(head(x).view(-1, VOCABULARY).float(), tokens.view(-1)).backward()
    optimizer.step()
    optimizer.zero_grad()
say(
    counted=sum(parameter.numel() for parameter in parameters),
    import_s=imported,
    train_s=time.process_time() - imported,
    host_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
)
