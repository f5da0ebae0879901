"""The lines of the program at each allocation, when they are wanted: whether the interposer can read them in this Python."""

# src/stack/proof.rs
wants_stacks = native("memscope_shim_stacks", [ctypes.c_uint32], ctypes.c_int)
read_stack = native("memscope_shim_stack", [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_size_t)
begin_stacks = native("memscope_shim_stacks_begin", [])
begin_backward_stack = native("memscope_shim_backward_begin", [], ctypes.c_uint64)
end_backward_stack = native("memscope_shim_backward_end", [ctypes.c_uint64])

# Functions of every kind, in a file and with names of one, two and four bytes a character.
PROOF = f"""
def straight(check):
    return check()

def naïve(check):
    return [
        straight(check)
        for _ in range(1)
    ]

class 中:
    def 𠀀(self, check):
        yield (lambda: naïve(
            check))()

{chr(10) * 300}
def outermost(check):
    return next(
        中().𠀀(
            check))
"""
# As deep as the interposer looks, and longer than that many frames take.
DEEPEST, ROOM = 128, 1 << 17


def follow_stacks():
    """Lines are read without the interpreter's help, and so only where they are what the interpreter says."""
    answer = wants_stacks(sys.hexversion)
    if not answer:
        return
    if sys.implementation.name != "cpython" or "t" in sys.abiflags or hasattr(sys, "getobjects"):
        reason = "it is not the ordinary build of CPython"
    elif answer == 2:
        reason = "this version is not known here"
    elif answer == 3:
        reason = "there is no memory for them that a child of this process does not inherit"
    elif not is_proved():
        reason = "what is read is not what Python says"
    else:
        begin_stacks()
        return
    version = sys.version.partition(" ")[0]
    send_notice(f"Python stacks are not available in this Python ({version}): {reason}; modules are recorded".encode())


def is_proved():
    """Whether the interposer finds the frames that Python has, from functions of every kind down to the program."""
    names, right = {}, []
    buffer = ctypes.create_string_buffer(ROOM)

    def check():
        # Both on one line, which is that of this frame.
        used, frames = read_stack(buffer, ROOM), frames_from(sys._getframe())
        found = buffer.raw[:used].split(b"\0")[:-1]
        right.append([(file, int(line), function) for file, line, function in zip(*[iter(found)] * 3)] == frames)

    exec(compile(PROOF, "memscope/proof-é中🦀.py", "exec"), names)
    names["outermost"](check)
    return right == [True]


def frames_from(frame):
    """File, line and function of a frame and of those around it, in the interposer's words."""
    frames = []
    while frame is not None and len(frames) < DEEPEST:
        code = frame.f_code
        frames.append((utf8(code.co_filename), frame.f_lineno or 0, utf8(code.co_qualname)))
        frame = frame.f_back
    return frames


def utf8(text):
    """At most 1024 bytes, with U+FFFD for the halves of pairs that a name of a file may have."""
    whole = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text).encode()
    return whole[:1024].decode(errors="ignore").encode()
