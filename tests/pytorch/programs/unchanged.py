"""Everything that a training program may do to its modules, and what came of it, a line for each case.

What is printed is the same in every run: losses, and a hash of the bytes of parameters, gradients and states. A case that
raises prints its traceback. Nothing here knows of memscope; a run under it must print the same.
"""

import copy
import ctypes
import gc
import hashlib
import importlib
import inspect
import io
import logging
import pickle
import sys
import threading
import traceback
import warnings
import weakref

import given
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def digest(*tensors):
    total = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            total.update(b"none")
        else:
            tensor = tensor.detach().contiguous()
            total.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            total.update(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))
    return total.hexdigest()[:16]


def hash_of(model):
    named = [*model.named_parameters(), *model.named_buffers()]
    return digest(*(tensor for _, tensor in named), *(tensor.grad for _, tensor in named if tensor.is_leaf))


class Net(nn.Module):
    def __init__(self, width=32, keep="all"):
        super().__init__()
        self.keep = keep
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1), nn.BatchNorm1d(width))
        self.tail = nn.Linear(width, width)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        if self.keep == "all":
            return self.head(self.tail(self.body(x)))
        x = checkpoint(self.body, x, use_reentrant=self.keep == "reentrant")
        return self.head(checkpoint(self.tail, x, use_reentrant=self.keep == "reentrant"))


def batch(width=32, rows=16):
    return torch.randn(rows, width, requires_grad=True), torch.randint(4, (rows,))


def train(model, optimizer, steps=3, amp=False, accumulate=1, loss=F.cross_entropy):
    losses = []
    for _ in range(steps):
        for _ in range(accumulate):
            x, y = batch()
            with torch.autocast("cpu", torch.bfloat16, enabled=amp):
                value = loss(model(x), y) / accumulate
            value.backward()
        optimizer.step()
        losses.append(value.item().hex())
        if _ % 2:
            optimizer.zero_grad()
    return losses, hash_of(model)


# ---- training


@case
def training():
    for keep in ("all", "plain", "reentrant"):
        for amp in (False, True):
            for accumulate in (1, 3):
                torch.manual_seed(1)
                model = Net(keep=keep)
                print(*train(model, torch.optim.AdamW(model.parameters(), 0.01), amp=amp, accumulate=accumulate))


@case
def optimizers():
    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
        lambda p: torch.optim.Adam(p, 0.1, fused=True),
        lambda p: torch.optim.Adagrad(p, 0.1),
        lambda p: torch.optim.RMSprop(p, 0.1, centered=True),
    ):
        model = Net()
        optimizer = make(model.parameters())
        print(*train(model, optimizer))
        state = optimizer.state_dict()["state"]
        print(digest(*(t for s in state.values() for t in s.values() if isinstance(t, torch.Tensor))))


@case
def lbfgs():
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
    x, y = batch()

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(2):
        print(optimizer.step(closure).item().hex(), hash_of(model))


@case
def scaled():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        x, y = batch()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(norm.item().hex(), hash_of(model))


@case
def scaled_too_much():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    for _ in range(2):
        x, y = batch()
        scaler.scale(F.cross_entropy(model(x), y) * 2.0**120).backward()
        print(scaler.step(optimizer), scaler.get_scale(), hash_of(model))
        scaler.update()
        optimizer.zero_grad()
    try:
        scaler.step()
    except TypeError as error:
        print(error)
    scaler.scale(F.cross_entropy(model(x), y)).backward()
    scaler.step(optimizer=optimizer)
    # It raises: without an update in between.
    scaler.step(optimizer)


@case
def several_models():
    maker, judge = Net(), Net()
    optimizers = [torch.optim.Adam(model.parameters(), 0.01) for model in (maker, judge)]
    for _ in range(3):
        x, y = batch()
        F.cross_entropy(judge(maker(x).repeat(1, 8)), y).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    print(hash_of(maker), hash_of(judge))


@case
def without_gradients():
    model = Net().eval()
    x, _ = batch()
    with torch.inference_mode():
        y = model(x)
        print(y.is_inference(), digest(y))
    with torch.no_grad():
        print(model(x).requires_grad)
    print([p.grad for p in model.parameters()])


@case
def higher_gradients():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    x = torch.randn(3, 4, requires_grad=True)
    (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    print(digest(g), hash_of(model))
    parameters = dict(model.named_parameters())
    # What stands for the parameters is no leaf here.
    moved = {name: p - 0.1 * p.detach() for name, p in parameters.items()}
    torch.func.functional_call(model, moved, (x,)).sum().backward()
    print(hash_of(model))

    def loss(parameters, row):
        return torch.func.functional_call(model, parameters, (row,)).sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x.detach())
    print(digest(*each.values()))
    print(digest(torch.func.jacrev(model)(x.detach()[0])))


# ---- modules and their parts


@case
def moved():
    model = Net()
    for to in (lambda m: m.double(), lambda m: m.to(torch.bfloat16), lambda m: m.float(), lambda m: m.to("meta")):
        to(model)
        print(next(model.parameters()).dtype, next(model.parameters()).device)
    model.to_empty(device="cpu")
    for tensor in (*model.parameters(), *model.buffers()):
        nn.init.ones_(tensor)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))


@case
def swapped():
    # torch.utils.swap_tensors wants tensors that nobody else refers to, not even weakly.
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), 0.1))
        before = [id(p) for p in model.parameters()]
        model.double()
        model.load_state_dict(Net().double().state_dict())
        print([id(p) for p in model.parameters()] == before, hash_of(model))
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


@case
def loaded():
    source, model = Net(), Net()
    train(source, torch.optim.SGD(source.parameters(), 0.1))
    print(model.load_state_dict(source.state_dict()), hash_of(model))
    copied = {name: tensor.clone() for name, tensor in source.state_dict().items()}
    print(model.load_state_dict(copied, assign=True), model.head.weight.data_ptr() == copied["head.weight"].data_ptr())
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))
    try:
        model.load_state_dict({"nothing": torch.ones(1)})
    except RuntimeError as error:
        print(error)


@case
def copied():
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    twin = copy.deepcopy(model)
    print(hash_of(twin), *train(twin, torch.optim.SGD(twin.parameters(), 0.1)))
    print(sorted(vars(model)), sorted(vars(model.head.weight)), copy.copy(model.head.weight) is model.head.weight)
    file = io.BytesIO()
    torch.save(model, file)
    print(hashlib.sha256(file.getvalue()).hexdigest())
    print(hash_of(torch.load(io.BytesIO(file.getvalue()), weights_only=False)))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    print(hashlib.sha256(file.getvalue()).hexdigest(), list(torch.load(io.BytesIO(file.getvalue()))))
    text = pickle.dumps(model.head.bias)
    print(len(text), digest(pickle.loads(text)), model.head.bias.__reduce_ex__(2)[1][1:])
    print(copy.deepcopy(model.head.weight)._backward_hooks, model.head.weight._backward_hooks)


@case
def lazy():
    model = nn.Sequential(nn.LazyLinear(32), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(4))
    print(model)
    with torch.no_grad():
        model(batch()[0])
    print(model)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))


class Adapter(nn.Module):
    def __init__(self, inner, rank=2):
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.down, self.up = nn.Linear(inner.in_features, rank), nn.Linear(rank, inner.out_features)

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


@case
def replaced():
    model = Net()
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    for name in ("tail", "head"):
        setattr(model, name, Adapter(getattr(model, name)))
    trained = [p for p in model.parameters() if p.requires_grad]
    print(*train(model, torch.optim.AdamW(trained, 0.01)), [name for name, _ in model.named_parameters()])
    model.requires_grad_(True)
    print(*train(model, torch.optim.AdamW(model.parameters(), 0.01)))
    del model.tail
    print(hasattr(model, "tail"), [name for name, _ in model.named_modules()])


@case
def shared():
    model = Net()
    model.tail = model.body[0]
    model.body.again = model.body[0].weight
    print(*train(model, torch.optim.Adam(model.parameters(), 0.01)), len(list(model.parameters())))


@case
def storages():
    model = Net()
    weight = model.tail.weight
    bytes_of = weight.untyped_storage()
    values, size = weight.detach().clone(), bytes_of.nbytes()
    bytes_of.resize_(0)
    print(bytes_of.nbytes())
    model.body(batch()[0])
    bytes_of.resize_(size)
    weight.data.copy_(values)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))
    flat = torch.zeros(sum(p.numel() for p in model.parameters()))
    at = 0
    for p in model.parameters():
        p.grad = flat[at : at + p.numel()].view_as(p)
        at += p.numel()
    F.cross_entropy(model(batch()[0]), batch()[1]).backward()
    print(digest(flat))


@case
def with_other_weights():
    model = Net()
    nn.utils.parametrizations.weight_norm(model.tail)
    nn.utils.parametrizations.spectral_norm(model.head)
    print(*train(model, torch.optim.SGD(model.parameters(), 0.1)))
    nn.utils.parametrize.remove_parametrizations(model.tail, "weight")
    print([name for name, _ in model.named_parameters()])


# ---- hooks and looks at what is hooked


@case
def hooks():
    model, seen = Net(), []
    handles = [
        model.register_forward_pre_hook(lambda m, a: seen.append(("before", len(a)))),
        model.tail.register_forward_hook(lambda m, a, y: y * 2),
        model.tail.register_full_backward_hook(lambda m, i, o: seen.append(("backward", len(i)))),
        model.head.weight.register_hook(lambda g: g * 3),
        model.head.bias.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.shape))),
        nn.modules.module.register_module_forward_hook(lambda m, a, y: seen.append(type(m).__name__)),
    ]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    handles.append(optimizer.register_step_pre_hook(lambda o, a, k: seen.append("step")))
    print(*train(model, optimizer), seen)
    for handle in handles:
        handle.remove()
    seen.clear()
    print(*train(model, optimizer), seen)
    # Hooks that a program takes from all parameters, its own and others'.
    for p in model.parameters():
        if p._post_accumulate_grad_hooks:
            p._post_accumulate_grad_hooks.clear()
    print(*train(model, optimizer))


@case
def optimizers_in_backward():
    model = Net()
    each = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}

    def update(p):
        each[p].step()
        each[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    for _ in range(3):
        F.cross_entropy(model(batch()[0]), batch()[1]).backward()
    print(hash_of(model))


@case
def looks():
    for function in (nn.Module.__call__, nn.Module._apply, torch.autograd.backward, nn.Linear.__call__):
        print(function.__name__, function.__qualname__, function.__module__, inspect.signature(function))
        print(hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16])
    print(inspect.signature(Net()), inspect.signature(Net().__call__), callable(Net()))
    print(torch.__spec__.__class__, torch.__spec__._initializing, type(torch.__loader__), [str(f).split(" at ")[0] for f in sys.meta_path])
    print(sorted(vars(torch.__loader__)), [m for m in sys.modules if "memscope" in m])


class Observed(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, function, kinds, arguments=(), keywords=None):
        cls.seen.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, kinds, arguments, keywords or {})


class Modes(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, kinds, arguments=(), keywords=None):
        self.seen.append(getattr(function, "__name__", str(function)))
        return function(*arguments, **(keywords or {}))


class Curious(nn.Module):
    """Tells of everything that is asked of it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(1))

    def __getattr__(self, name):
        print("asked for", name)
        return super().__getattr__(name)

    def named_modules(self, *arguments, **keywords):
        print("asked for modules")
        return super().named_modules(*arguments, **keywords)

    def named_parameters(self, *arguments, **keywords):
        print("asked for parameters")
        return super().named_parameters(*arguments, **keywords)

    def __eq__(self, other):
        raise TypeError("not to be compared")

    __hash__ = nn.Module.__hash__

    def forward(self, x, options=None, *more):
        self.count = self.count + 1
        return self.layer(x["x"] if isinstance(x, dict) else x)


class Shy(list):
    def __iter__(self):
        print("iterated")
        return super().__iter__()


class Proxy:
    @property
    def __class__(self):
        print("asked for its class")
        return dict


@case
def observed():
    model = Curious()
    x = torch.randn(2, 4).as_subclass(Observed)
    with Modes() as modes:
        model(x, Shy([x, x]), Proxy()).sum().backward()
        model.layer.bias = nn.Parameter(torch.ones(4).as_subclass(Observed))
        model(x).sum().backward()
        model.double()
        torch.optim.SGD(model.layer.parameters(), 0.1).step()
    print(Observed.seen, modes.seen)


@case
def dispatched():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function, kinds, arguments=(), keywords=None):
            print(function, end=" ")
            return function(*arguments, **(keywords or {}))

    model = nn.Linear(4, 4)
    with Log():
        model(torch.ones(2, 4)).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
    print()


@case
def warned():
    class Warns(nn.Module):
        def forward(self, x):
            for level in range(1, 9):
                warnings.warn(f"level {level}", stacklevel=level)
            return x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nn.Sequential(Warns())(torch.ones(1))
        x = torch.ones(1, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: warnings.warn("in backward", stacklevel=4))
        y.backward()
        next(iter(DataLoader([1, 2])))
    print(*((str(w.message), w.filename.rpartition("/")[2], w.lineno) for w in caught), sep="\n")


# ---- what goes wrong


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("forward fails")


class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        raise ValueError("backward fails")


@case
def failures():
    def in_forward():
        nn.Sequential(nn.Sequential(Fails()))(torch.ones(1))

    def in_backward():
        FailsBackward.apply(nn.Linear(1, 1)(torch.ones(1))).backward()

    def twice():
        loss = Net()(batch()[0]).sum()
        loss.backward()
        loss.backward()

    def in_checkpoint():
        checkpoint(nn.Sequential(Fails()), torch.ones(1), use_reentrant=False)

    def in_move():
        Net()._apply(lambda t: 1 / 0)

    def in_data():
        class Bad(Dataset):
            __len__ = lambda self: 1
            __getitem__ = lambda self, index: 1 / 0

        next(iter(DataLoader(Bad())))

    def in_step():
        torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1).step(lambda: 1 / 0)

    def without_init():
        class Half(nn.Module):
            def __init__(self):
                pass

        Half()(1)

    def wrong_arguments():
        nn.Linear(1, 1)(1, 2, 3, nothing=4)

    def endless():
        class Endless(nn.Module):
            def forward(self, x):
                return self(x)

        try:
            Endless()(1)
        except RecursionError:
            # How deep that is, and in what it ends, is another matter.
            error = ValueError("endless")
        raise error

    for failure in (
        in_forward, in_backward, twice, in_checkpoint, in_move, in_data, in_step, without_init, wrong_arguments, endless
    ):
        try:
            failure()
        except Exception:
            traceback.print_exc()
        try:
            failure()
        except Exception as error:
            print(type(error), error, error.__context__, error.__cause__, len(traceback.extract_tb(error.__traceback__)))
    try:
        raise StopIteration(3)
    except StopIteration as kept:
        class Stops(nn.Module):
            def forward(self, x):
                raise kept
        try:
            Stops()(1)
        except StopIteration as error:
            print(error is kept, error.value)
    print(*train((model := Net()), torch.optim.SGD(model.parameters(), 0.1)))


# ---- many, threads, lifetimes


@case
def threads():
    torch.manual_seed(5)
    model, results = Net().eval(), {}
    inputs = [batch() for _ in range(8)]

    def work(index):
        total = []
        for _ in range(5):
            x, y = inputs[index]
            g = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
            total.append(digest(*g))
        results[index] = total

    workers = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(sorted(results.items()))


@case
def lifetimes():
    alive = []
    for _ in range(3):
        model = Net()
        train(model, torch.optim.Adam(model.parameters(), 0.01))
        alive += [weakref.ref(model), weakref.ref(model.head)]
        del model
    # Without a collection: nothing of it is in a cycle, nor kept.
    print([reference() for reference in alive])
    model = Net()
    model.myself = [model]
    parameter = model.head.weight
    del model
    gc.collect()
    print(sys.getrefcount(parameter), weakref.getweakrefcount(parameter))


@case
def many():
    tensors = [torch.ones(1) for _ in range(100_000)]
    print(len(tensors), sum(t.item() for t in tensors[::1000]))
    model = nn.Identity()
    print(len(model(list(range(1_000_000)))), len(model(tensors)))
    for _ in range(200):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        y = model(torch.ones(1, 2)).sum()
    print(y.dtype)


@case
def scripted():
    model = nn.Sequential(nn.Linear(32, 32), nn.Sequential(nn.ReLU(), nn.Linear(32, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for made in (torch.jit.script(model), torch.jit.trace(model.eval(), batch()[0])):
            print(hashlib.sha256(made.code.encode()).hexdigest()[:16], digest(made(batch()[0])))
            F.cross_entropy(made(batch()[0]), batch()[1]).backward()
    traced = torch.fx.symbolic_trace(Net())
    print(traced.code, digest(traced(batch()[0])))


@case
def compiled():
    torch._logging.set_logs(dynamo=logging.ERROR)
    counters = importlib.import_module("torch._dynamo.utils").counters
    for backend in ("eager", "aot_eager"):
        for change in ("nothing", "hook", "compiled_step"):
            torch._dynamo.reset()
            counters.clear()
            torch.manual_seed(3)
            model = Net()
            if change == "hook":
                model.tail.register_forward_hook(lambda m, a, y: y * 2)
            fast = torch.compile(model, backend=backend, fullgraph=True)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            if change == "compiled_step":
                optimizer.step = torch.compile(optimizer.step, backend=backend)
            print(backend, change, *train(fast, optimizer), dict(counters["graph_break"]), dict(counters["frames"]))
    torch._dynamo.reset()
    counters.clear()
    model = Net()
    model.compile(backend="eager")

    @torch.compile(backend="eager")
    def step(x, y):
        print("a break")
        F.cross_entropy(model(x), y).backward()
        inner = nn.Linear(2, 2)
        return inner(torch.ones(1, 2)).shape

    print(step(*batch()), hash_of(model), dict(counters["graph_break"]), dict(counters["frames"]))
    # A backward pass that is compiled, with the hooks of parameters in it.
    compiled_autograd = importlib.import_module("torch._dynamo.compiled_autograd")
    with (getattr(compiled_autograd, "_enable", None) or compiled_autograd.enable)(
        torch.compile(backend="eager", fullgraph=True)
    ):
        print(*train(Net(), torch.optim.SGD(model.parameters(), 0.1)), dict(counters["compiled_autograd"]))
    exported = torch.export.export(Net().eval(), (torch.ones(2, 32),))
    print(hashlib.sha256(str(exported.graph).encode()).hexdigest(), exported.module()(torch.ones(2, 32)).shape)


# First, while nothing was called that no backward pass follows: what is made after that is held to be of it.
CASES = {**given.CASES, **CASES}
wanted = sys.argv[1:] or list(CASES)
for name in wanted:
    print(f"== {name}", flush=True)
    print(f"== {name}", file=sys.stderr, flush=True)
    torch.manual_seed(0)
    try:
        CASES[name]()
    except Exception:
        traceback.print_exc()
