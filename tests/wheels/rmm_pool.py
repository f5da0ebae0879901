"""RMM: 64 MiB of its resource for the driver's allocations, and a pool of 32 MiB."""
import rmm

kept = rmm.DeviceBuffer(size=64 << 20)
pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=32 << 20, maximum_pool_size=32 << 20)
print(kept.size)
