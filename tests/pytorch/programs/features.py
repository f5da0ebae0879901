"""Parts of PyTorch that ask more of the libraries than a training step: each must work; prints what failed."""

import io
from multiprocessing.reduction import ForkingPickler

from figures import say
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, TensorDataset

failed, x = {}, torch.randn(64, 64, device="cuda")


def attention(backend):
    q = torch.randn(2, 8, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with sdpa_kernel(backend):
        F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


def graph():
    captured, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x * 2
    with torch.cuda.graph(captured):
        x * 2
    captured.replay()


def loader():
    data = TensorDataset(torch.randn(256, 32), torch.arange(256))
    rows = sum(part.cuda(non_blocking=True).shape[0] for part, _ in DataLoader(data, 32, num_workers=2, pin_memory=True))
    assert rows == 256


def profiler():
    with torch.profiler.profile(profile_memory=True) as profile:
        (x @ x).sum().item()
    assert len(profile.events()) > 0


def snapshot():
    torch.cuda.memory._record_memory_history()
    torch.randn(1000, device="cuda")
    assert torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)


def events():
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    second.record()
    torch.cuda.synchronize()
    assert first.elapsed_time(second) >= 0


def compiled():
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).cuda()
    torch.compile(model)(torch.randn(32, 256, device="cuda")).square().mean().backward()


def ctc_loss():
    likely = torch.randn(50, 16, 20, device="cuda").log_softmax(2).detach().requires_grad_()
    labels, steps, lengths = torch.randint(1, 20, (160,), dtype=torch.int32), (50,) * 16, (10,) * 16
    on_device = [torch.tensor(some, dtype=torch.int32, device="cuda") for some in (steps, lengths)]
    # By both of cuDNN's functions, and by PyTorch's own kernels.
    for arguments in [(labels, steps, lengths), (labels.cuda(), *on_device), (labels.cuda().long(), steps, lengths)]:
        F.ctc_loss(likely, *arguments).backward()
    assert likely.grad.shape == likely.shape


parts = {
    "a scalar comes back": lambda: torch.tensor([3.5]).cuda().item() == 3.5 or 1 / 0,
    "sizes that depend on data": lambda: (x.nonzero(), x[x > 0], torch.unique(x)),
    "sorting": lambda: (x.sort(), x.topk(5), torch.randperm(100_000, device="cuda")),
    "sampling": lambda: torch.multinomial(torch.ones(10, 10, device="cuda"), 2),
    "half products": lambda: torch.bmm(*torch.randn(2, 3, 4, 4, device="cuda", dtype=torch.half)),
    "fp8 products": lambda: torch._scaled_mm(
        torch.zeros(64, 64, device="cuda", dtype=torch.float8_e4m3fn),
        torch.zeros(64, 64, device="cuda", dtype=torch.float8_e4m3fn).t(),
        scale_a=torch.ones((), device="cuda"),
        scale_b=torch.ones((), device="cuda"),
        out_dtype=torch.bfloat16,
    ),
    "flash attention": lambda: attention(SDPBackend.FLASH_ATTENTION),
    "efficient attention": lambda: attention(SDPBackend.EFFICIENT_ATTENTION),
    "cuDNN attention": lambda: attention(SDPBackend.CUDNN_ATTENTION),
    "transposed convolution": lambda: nn.ConvTranspose2d(3, 4, 3).cuda()(torch.randn(1, 3, 8, 8, device="cuda")).sum().backward(),
    "fused optimizer": lambda: torch.optim.AdamW([nn.Parameter(x.clone())], fused=True).step(),
    "kernels compiled at run time": lambda: torch.special.bessel_j0(x),
    "graphs": graph,
    "workers with pinned memory": loader,
    "profiler": profiler,
    "snapshot": snapshot,
    "events": events,
    "torch.compile": compiled,
    "CTC loss": ctc_loss,
}
for name, part in parts.items():
    try:
        part()
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}"
try:
    torch.linalg.cholesky(x)
    refused = ""
except RuntimeError as error:
    refused = str(error)
shared = []
for share in (lambda: ForkingPickler(io.BytesIO()).dump(x), lambda: torch.cuda.Event(interprocess=True).ipc_handle()):
    try:
        share()
    except Exception as error:
        shared.append(str(error))
say(failed=failed, tried=len(parts), refused=refused, shared=shared)
