"""Makes tensors in code of every kind, and says where: the frames that Python itself gives at the same call.

    python stacks.py DEVICE

Each case calls `make` twice at the same place: first it is `told`, which takes the frames of its caller from Python, then it is
torch.empty. PyTorch's own record of frames is printed too, where it has one. Printed is, for each tensor, its address, and those frames from the inside outwards: [file, line, function].
"""

import asyncio
import contextlib
import functools
import importlib
import os
import sys
import tempfile
import threading

from figures import say
import torch

DEVICE = sys.argv[1]
frames, kept = [], []


def told(size, **options):
    """What stands where torch.empty will be called."""
    frames.clear()
    frame = sys._getframe(1)
    while frame is not None:
        frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname])
        frame = frame.f_back
    return torch.ones(1)


def nested(make):
    def inner(size):
        def innermost():
            return make(size, device=DEVICE)

        return innermost()

    return inner(1001)


def anonymous(make):
    return (lambda: (lambda size: make(size, device=DEVICE))(1002))()


def comprehension(make):
    return [made for _ in range(3) for made in [make(1003, device=DEVICE)]][-1]


def generator(make):
    def numbers():
        yield 1
        yield make(1004, device=DEVICE)

    found = numbers()
    next(found)
    return list(made for made in (next(found) for _ in range(1)))[0]


def decorated(make):
    def twice(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            function(*arguments)
            return function(*arguments)

        return wrapper

    @twice
    @contextlib.contextmanager
    def around(size):
        yield make(size, device=DEVICE)

    with around(1005) as made:
        return made


def several_lines(make):
    made = [
        None,
        make(
            sum(
                [
                    1000,
                    6,
                ]
            ),
            device=(
                DEVICE
            ),
        ),
    ]  # fmt: skip
    return (
        made
        [1]
    )  # fmt: skip


class Thing:
    size = 1007

    def __init__(self, make):
        self.make = make

    @property
    def made(self):
        return self + 1

    def __add__(self, other):
        try:
            raise ValueError
        except ValueError:
            try:
                pass
            finally:
                made = self.make(self.size, device=DEVICE)
        return made

    @classmethod
    def of(cls, make):
        return cls(make).made


def asynchronous(make):
    async def inner():
        await asyncio.sleep(0)
        return make(1008, device=DEVICE)

    async def outer():
        return await inner()

    return asyncio.run(outer())


def executed(make):
    # The code of each turn is gone before the next one, which may lie at the same address and has the same names.
    for turn in range(5):
        names = {"make": make, "DEVICE": DEVICE}
        exec("\n" * turn + "made = make(1009, device=DEVICE)\n" + "\n" * 3, names)
    return names["made"]


def far_down(make):
    names = {"make": make, "DEVICE": DEVICE}
    exec(compile("def far(\n):\n" + " \n" * 40000 + "  return make(1010, device=DEVICE)\n" + " \n" * 300, "far.py", "exec"), names)
    return names["far"]()


def foreign(make):
    names = {"make": make, "DEVICE": DEVICE}
    text = "class Größe:\n def 中文(self):\n  def 𠀀(): return make(1011, device=DEVICE)\n  return 𠀀()\nmade = Größe().中文()"
    exec(compile(text, "/tmp/é.py", "exec"), names)
    exec(compile(text, "/tmp/中.py", "exec"), names)
    exec(compile(text, "/tmp/🦀.py", "exec"), names)
    return names["made"]


def imported(make):
    sys.modules.pop("módulo", None)
    importlib.invalidate_caches()
    return importlib.import_module("módulo").f(make, DEVICE)


def deep(make):
    def down(depth):
        return down(depth - 1) if depth else make(1013, device=DEVICE)

    return down(300)


def in_a_thread(make):
    made = []

    def work():
        made.append(make(1014, device=DEVICE))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return made[0]


class Layer(torch.nn.Module):
    def forward(self, make):
        return make(1015, device=DEVICE)


class Double(torch.autograd.Function):
    make = None

    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        Double.made = Double.make(1016, device=DEVICE)
        return gradient * 2


def backward(make):
    Double.make = make
    Double.apply(torch.ones(1, requires_grad=True)).sum().backward()
    return Double.made


CASES = [nested, anonymous, comprehension, generator, decorated, several_lines, Thing.of, asynchronous, executed, far_down]
CASES += [foreign, imported, deep, in_a_thread, Layer(), backward]


def main():
    made = []
    for case in CASES:
        for make in (told, torch.empty):
            tensor = case(make)
        kept.append(tensor)
        name = getattr(case, "__name__", type(case).__name__)
        made.append({"case": name, "address": tensor.data_ptr(), "bytes": 4 * tensor.numel(), "frames": list(frames)})
    return made


def of_a_thread_of_autograd():
    """Address and bytes of a gradient that is made on the device's own thread, and the line that asked for it."""
    x = torch.ones(1017, requires_grad=True, device=DEVICE)
    kept.append(x)
    y = (x * x).sum()
    line = sys._getframe().f_lineno + 1
    y.backward()
    return {"address": x.grad.data_ptr(), "line": line}


def of_pytorch():
    """What PyTorch's own history of its allocator says: [address, [[file, line], …]] of each block."""
    if DEVICE != "cuda":
        return []
    blocks = [block for segment in torch.cuda.memory._snapshot()["segments"] for block in segment["blocks"]]
    active = [block for block in blocks if block["state"] == "active_allocated"]
    return [[block["address"], [[frame["filename"], frame["line"]] for frame in block["frames"]]] for block in active]


if DEVICE == "cuda":
    torch.cuda.memory._record_memory_history(context="alloc", stacks="python")
with tempfile.TemporaryDirectory(prefix="ünï-") as folder:
    with open(os.path.join(folder, "módulo.py"), "w") as file:
        file.write("\n\ndef f(make, device):\n    return make(1012, device=device)\n")
    sys.path.insert(0, folder)
    say(made=main(), backward=of_a_thread_of_autograd(), pytorch=of_pytorch())
