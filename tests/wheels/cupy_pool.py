"""CuPy: 64 MiB through its own pool, and 8 MiB past it."""
import cupy

kept = cupy.empty(64 << 20, dtype=cupy.uint8)
direct = cupy.cuda.Memory(8 << 20)
print(cupy.cuda.runtime.runtimeGetVersion(), kept.nbytes, direct.size)
