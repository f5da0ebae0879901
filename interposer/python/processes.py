"""What multiprocessing calls this process. Run once in a program that has loaded multiprocessing, with `say_name` of the interposer's.

Refuses: to import anything, and to keep anything of the program's alive.
"""

import sys

process = sys.modules["multiprocessing.process"]
# A loader's workers are only numbered by it.
WORKERS, NUMBER = "torch.utils.data._utils.worker", 10


def words(here):
    name = str(here.name)
    target = getattr(here, "_target", None)
    if getattr(target, "__module__", None) == WORKERS:
        arguments = getattr(here, "_args", ())
        number = arguments[NUMBER] if len(arguments) > NUMBER else None
        return f"{name}, DataLoader worker {number}" if type(number) is int else f"{name}, DataLoader worker"
    return name


def tell(_):
    try:
        here = process.current_process()
        if process.parent_process() is not None:
            say_name(words(here))
    except Exception:
        pass


def follow():
    # Called in each child that is forked with the object, which lives as long as the module that it is.
    sys.modules["multiprocessing.util"].register_after_fork(process, tell)
    # A process that is started anew is still being told what it is; what was registered is not called in it, but this is.
    spawned = getattr(sys.modules.get("multiprocessing.context"), "SpawnProcess", None)
    plain = getattr(spawned, "_after_fork", None)
    if getattr(process.current_process(), "_inheriting", False) and plain is not None:

        def after_start():
            plain()
            tell(process)

        spawned._after_fork = staticmethod(after_start)


follow()
