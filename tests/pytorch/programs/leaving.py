"""Ways in which a program ends in the middle of training: each in a child, whose status and words are printed."""

import ctypes
import os
import resource
import signal
import sys
import tempfile

import torch
import torch.nn as nn

torch.set_num_threads(1)


class Ends(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.layer, self.way = nn.Linear(4, 4), way

    def forward(self, x):
        x = self.layer(x)
        self.way()
        return x


class EndsBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, x, way):
        context.way = way
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        context.way()
        return gradient, None


def fail():
    raise ValueError("the program's own")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass


def out_of_time():
    signal.signal(signal.SIGALRM, lambda number, frame: fail())
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        pass


def execute():
    program = "import torch.nn as nn, torch; print('another', nn.Linear(2, 2)(torch.ones(1, 2)).shape); raise SystemExit(7)"
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-c", program])


WAYS = {
    "fails": fail,
    "interrupted": interrupt,
    "alarm": out_of_time,
    "exit": lambda: sys.exit(3),
    "hard exit": lambda: os._exit(5),
    "a fault of memory": lambda: ctypes.string_at(0),
    "killed": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "another program": execute,
}

for name, way in WAYS.items():
    for where in ("forward", "backward"):
        if name == "another program" and where == "backward":
            continue
        with tempfile.TemporaryFile() as words:
            sys.stdout.flush()
            child = os.fork()
            if not child:
                # It ends as a program of its own would.
                os.dup2(words.fileno(), 1)
                os.dup2(words.fileno(), 2)
                break
            status = os.waitpid(child, 0)[1]
            words.seek(0)
            print(f"== {name} in {where}: {status}\n{words.read().decode()}")
    if not child:
        break
if child:
    sys.exit(0)

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
model = nn.Sequential(nn.Linear(4, 4), Ends(way if where == "forward" else lambda: None))
loss = EndsBackward.apply(model(torch.ones(2, 4)), way).sum()
print("forward is over", flush=True)
loss.backward()
print("not reached")
