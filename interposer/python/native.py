"""What memscope's interposer runs inside a Python program at its first import of torch.

Owns: what only Python knows of a training program: the module that is running, the phase, the step, and which tensors are
parameters, gradients, optimizer states and inputs. Refuses: to change what the program computes, prints or raises. Each part
is installed on its own, and one that cannot be is a notice in memscope's report; an error of ours never reaches the program.

A module's call writes one word of memory; everything else is done once a root module, a phase or a parameter. What is done in
every call of a module and for every gradient is in src/callables.rs: `place`, `leave`, `make_enter`, `make_hook`, `arrange`.

No code of the program's is run from here, but `__tensor_flatten__` of tensors that wrap others: its objects are read through the
methods of PyTorch's and Python's own classes, while no mode of the program's sees that (`unobserved`). No weak reference to a tensor
is made: torch.utils.swap_tensors refuses such tensors. An exception that passes leaves no trace of it (`untraced`).

These files are no modules: the interposer evaluates them as one text, in this order, in a namespace of their own.

| file | what it owns |
| --- | --- |
| `native.py` | the interposer's functions |
| `unlocked.py` | what callables.rs does, in Python |
| `tensors.py` | where a tensor's memory is; tensors in batches; facts about objects |
| `phases.py` | the phase of the process |
| `steps.py` | the step of the process |
| `names.py` | paths of modules, names of parameters |
| `parameters.py` | weights, buffers and gradients |
| `modules.py` | calls of modules: scopes, forward passes, inputs |
| `backward.py` | backward passes |
| `optimizers.py` | optimizers' steps and states |
| `distributed.py` | what DistributedDataParallel and FSDP make |
| `data.py` | batches |
| `refusals.py` | the line that ran out of memory |
| `ranks.py` | what the ranks of a group exchange, on the simulated device |
| `stacks.py` | whether the lines of the program can be read |
| `wrapping.py` | how a function of ours takes the place of one of PyTorch's |
| `install.py` | when and what is installed |
"""

import atexit
import ctypes
import importlib
import itertools
import os
import sys
import threading
import types
import weakref

# The code of this text, with all that is in it.
ALL = sys._getframe().f_code
WEIGHTS, GRADIENTS, OPTIMIZER, INPUTS, WORKSPACE = 1, 2, 4, 5, 6

torch = None
# PyTorch's own class of tensors, and how to read one without being seen by the program's modes and classes of tensors.
Tensor = data_ptr = unobserved = None


def native(name, arguments, result=None):
    function = getattr(library, name)
    function.argtypes, function.restype = arguments, result
    return function


library = ctypes.PyDLL(None)
send_text = native("memscope_shim_text", [ctypes.c_char_p], ctypes.c_uint64)
send_tag = native("memscope_shim_tag", [ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64])
send_making = native("memscope_shim_making", [ctypes.c_int, ctypes.c_uint64])
send_notice = native("memscope_shim_notice", [ctypes.c_char_p])
send_phase = native("memscope_phase", [ctypes.c_char_p])
send_step = native("memscope_step", [ctypes.c_uint64])
send_refused = native("memscope_shim_refused", [ctypes.c_uint32, ctypes.c_char_p])
ask_after_refusals = native("memscope_shim_ask_later", [ctypes.c_void_p])
send_framework = native("memscope_shim_framework", [])
scope_word = native("memscope_shim_scope", [], ctypes.c_void_p)
lacks_hooks = native("memscope_shim_lacks_hooks", [], ctypes.c_int)
wait_for_torch = native("memscope_shim_wait", [])

failures = set()


def failed(part, error):
    """Says once that a part does not work here."""
    if part not in failures:
        failures.add(part)
        send_notice(f"PyTorch: {part} are not followed: {type(error).__name__}: {error}".encode(errors="replace"))


texts = {}


def text(name):
    """The id of a text, which is sent once; 0 for none."""
    known = texts.get(name)
    if known is None:
        known = texts[name] = send_text(name.encode(errors="replace")) if name else 0
    return known
