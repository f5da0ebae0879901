// Sums and maxima over all threads of a one-dimensional block.
//
// The order of the additions depends only on the block's size, so that a result is the same in every run: nothing here is
// atomic. blockDim.x must be a multiple of 32, at most 1024. Every thread of the block must call, and every thread gets the
// result.

#pragma once

__device__ inline float block_sum(float value) {
    __shared__ float of_warp[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float total = 0.0f;
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) {
        total += of_warp[warp];
    }
    // The next call writes of_warp again: not before everyone has read it.
    __syncthreads();
    return total;
}

__device__ inline float block_max(float value) {
    __shared__ float of_warp[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float largest = of_warp[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) {
        largest = fmaxf(largest, of_warp[warp]);
    }
    __syncthreads();
    return largest;
}
