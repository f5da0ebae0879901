"""JAX: one array of 64 MiB on the device; XLA takes most of the device at its first use of it."""
import jax
import numpy

print(jax.devices())
kept = jax.device_put(numpy.zeros(16 << 20, "float32"))
print(kept.nbytes)
