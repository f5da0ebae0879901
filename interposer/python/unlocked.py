"""What src/callables.rs does, in Python: for an interpreter without a lock, where dictionaries change while C reads them."""


class Words(threading.local):
    """A thread's word in the interposer, and whether the thread is in a module."""

    def __init__(self):
        self.scope = ctypes.c_uint64.from_address(scope_word())
        self.inside = False


def work_unlocked():
    global place, leave, make_enter, make_hook
    words = Words()

    def place():
        return words.scope.value if words.inside else None

    def leave(before):
        words.scope.value = before or 0
        words.inside = before is not None

    def make_enter(known_paths):
        def enter(module):
            words.inside = True
            known = known_paths.get(id(module))
            if known is not None and known[0]() is module:
                words.scope.value = known[1]

        return enter

    def make_hook(watch):
        return watch.told


if not getattr(sys, "_is_gil_enabled", lambda: True)():
    work_unlocked()
