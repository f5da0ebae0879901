"""Processes of multiprocessing that take device memory, by ctypes. Argument: how they are started.

1 MiB in a process without a name of the program's, 2 MiB in one that the program calls `loader`, 3 MiB in a worker of a pool. The
first process takes 5 MiB.
"""

import ctypes
import multiprocessing
import sys

MIB = 1 << 20


def hold(mib):
    driver = ctypes.CDLL("libcuda.so.1")
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    for result in (
        driver.cuInit(0),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        driver.cuCtxSetCurrent(context),
        driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib * MIB)),
        driver.cuMemFree_v2(address),
    ):
        if result != 0:
            raise RuntimeError(f"the driver says {result}")


def main():
    context = multiprocessing.get_context(sys.argv[1])
    for process in (
        context.Process(target=hold, args=(1,)),
        context.Process(target=hold, args=(2,), name="loader"),
    ):
        process.start()
        process.join()
        assert process.exitcode == 0
    with context.Pool(1) as pool:
        pool.map(hold, [3])
    # Not before: no child of a process that has a context can have one.
    hold(5)


if __name__ == "__main__":
    main()
