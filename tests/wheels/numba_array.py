"""Numba: one array of 64 MiB, which it asks the driver for through Python."""
from numba import cuda
import numpy

kept = cuda.device_array(16 << 20, dtype=numpy.float32)
print(kept.nbytes)
