"""Fourier transforms of all kinds on the device, with their backward passes: the bytes of each result, and of what is kept."""

from figures import say
import torch


def current():
    return torch.cuda.memory_stats()["requested_bytes.all.current"]


def taken(transform, *shape, dtype=torch.float32, strided=False):
    """Bytes that a result takes, and that lives after the backward pass: the gradient."""
    x = torch.zeros(shape, device="cuda", dtype=dtype)
    x = (x.transpose(-1, -2) if strided else x).requires_grad_()
    before = current()
    y = transform(x)
    result = current() - before
    y.abs().sum().backward()
    del y
    return [result, current() - before, list(x.grad.shape)]


kinds = {
    "real": taken(torch.fft.rfft, 6, 1000),
    "back to real": taken(lambda x: torch.fft.irfft(x, n=1000), 6, 501, dtype=torch.complex64),
    "complex": taken(torch.fft.fft, 6, 97, dtype=torch.complex128),
    "of two dimensions": taken(torch.fft.rfft2, 3, 40, 50),
    "of three dimensions": taken(torch.fft.fftn, 16, 10, 12, dtype=torch.complex64),
    "of halves": taken(torch.fft.rfft, 6, 1024, dtype=torch.float16),
    "of columns": taken(torch.fft.rfft, 200, 30, strided=True),
}
short = torch.stft(torch.zeros(2, 16000, device="cuda"), 400, 160, window=torch.ones(400, device="cuda"), return_complex=True)
say(kinds=kinds, short=list(short.shape))
