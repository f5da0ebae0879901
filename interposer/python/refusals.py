"""Out of memory: the line that asked for what was refused."""

# The interposer has its address only.
kept = []


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
            # Allocators other than PyTorch's own have no observers.
            kept.append(later)
            ask_after_refusals(later)

    # A function of the interpreter's own list of work, in the thread that imports torch: see src/python.rs.
    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_size_t)
    def later(device):
        try:
            line = line_of_error()
            if line:
                send_refused(device, line.encode(errors="replace"))
        except Exception as error:
            failed("lines that run out of memory", error)
        return 0

    skip(refused)
    skip(watch)
    # Attaching initialises CUDA, which is the program's to do, or not.
    torch.cuda._lazy_call(watch)


def line_from(frame):
    """The innermost line of the program, and, where that is in a library, the line of the program's own that led there."""
    lines = program_lines(places(frame))
    node = ""
    if not lines and backward_threads:
        # The engine works on a thread of its own, on behalf of this one.
        lines = program_lines(places(sys._current_frames().get(backward_threads[-1])))
        node = backward_node()
    return outermost_too(lines, node)


def line_of_error():
    """The line that raised the out-of-memory that is being handled, or that has ended the program; "" when it was forgotten."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    while error is not None and not issubclass(type(error), torch.OutOfMemoryError):
        error = BaseException.__context__.__get__(error)
    if error is None:
        return ""
    trace, raised = BaseException.__traceback__.__get__(error), []
    while trace is not None:
        raised.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    around = list(places(raised[0][0].f_back)) if raised else []
    return outermost_too(program_lines(raised[::-1] + around))


def places(frame):
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def outermost_too(lines, node=""):
    if not lines:
        return ""
    innermost = lines[0]
    own = next((line for line in lines if not is_library(line[0])), innermost)
    told = describe(innermost) + node
    return told if own is innermost else f"{told}, called from {describe(own)}"


def program_lines(places):
    """The lines of frames, as they come, without those of PyTorch and of this shim."""
    inside = os.path.dirname(torch.__file__) + os.sep
    lines = []
    for frame, number in places:
        code = frame.f_code
        file = code.co_filename
        made = file.startswith(("<memscope>", "<frozen", "<eval_with_key"))
        if not (made or file.startswith(inside) or "torchinductor_" in file):
            lines.append((file, number, getattr(code, "co_qualname", code.co_name)))
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
