"""Out of memory: the line that asked for what was refused."""


def follow_refusals():
    """Tells which line asked for what the device refused. PyTorch calls its observers when it has given up, before it raises."""
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if attach is None:
        # A PyTorch for the CPU.
        return

    def refused(device, requested, total, free):
        try:
            send_refused(device, line_from(sys._getframe().f_back).encode(errors="replace"))
        except Exception as error:
            failed("lines that run out of memory", error)

    def watch():
        try:
            attach(refused)
        except Exception:
            # Allocators other than PyTorch's own have no observers; the module is told all the same.
            pass

    skip(refused)
    skip(watch)
    # Attaching initialises CUDA, which is the program's to do, or not.
    torch.cuda._lazy_call(watch)


def line_from(frame):
    """The innermost line of the program, and, where that is in a library, the line of the program's own that led there."""
    lines = program_lines(frame)
    node = ""
    if not lines and backward_threads:
        # The engine works on a thread of its own, on behalf of this one.
        lines = program_lines(sys._current_frames().get(backward_threads[-1]))
        node = backward_node()
    if not lines:
        return ""
    innermost = lines[0]
    own = next((line for line in lines if not is_library(line[0])), innermost)
    told = describe(innermost) + node
    return told if own is innermost else f"{told}, called from {describe(own)}"


def program_lines(frame):
    """The lines of a stack, innermost first, without those of PyTorch and of this shim."""
    inside = os.path.dirname(torch.__file__) + os.sep
    lines = []
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        made = file.startswith(("<memscope>", "<frozen", "<eval_with_key"))
        if not (made or file.startswith(inside) or "torchinductor_" in file):
            lines.append((file, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return lines


def is_library(file):
    return any(part in file for part in ("site-packages", "dist-packages", os.path.dirname(os.__file__) + os.sep))


def describe(line):
    file, number, function = line
    for folder in ("site-packages" + os.sep, "dist-packages" + os.sep):
        file = file.rpartition(folder)[2]
    here = os.getcwd() + os.sep
    file = file[len(here) :] if file.startswith(here) else file
    return f"{file}:{number}" if function == "<module>" else f"{file}:{number} in {function}"


def backward_node():
    """What autograd computes in this thread."""
    try:
        return f", for {torch._C._current_autograd_node().name()}"
    except Exception:
        return ""
