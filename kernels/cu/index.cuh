// Short names for indices. Offsets into tensors are 64-bit: logits of (4, 1024, 1'000'000) do not fit in 32.

#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// First element of this thread, and the step to its next one, in a loop over all elements by a one-dimensional grid.
__device__ inline u64 first_element() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline u64 element_step() { return (u64)gridDim.x * blockDim.x; }
