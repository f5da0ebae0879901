// Floats in 8 bits: blocks of 256 with one scale each, the largest absolute value in the block.

#include "index.cuh"
#include "reduce.cuh"

#define COMPRESSED_BLOCK 256

// codes (elements) of one byte and absmaxes (elements / 256, rounded up) from input (elements): the code is
// 128 + round(127 · x / absmax), and 128 where the absmax is 0. One block of 256 threads for each block of elements, or
// fewer, which loop.
extern "C" __global__ void compress(unsigned char *codes, float *absmaxes, const float *input, u64 elements) {
    u64 blocks = (elements + COMPRESSED_BLOCK - 1) / COMPRESSED_BLOCK;
    for (u64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        u64 i = block * COMPRESSED_BLOCK + threadIdx.x;
        float x = i < elements ? input[i] : 0.0f;
        float absmax = block_max(fabsf(x));
        if (i < elements) {
            codes[i] = (unsigned char)(128.0f + rintf(absmax > 0.0f ? x / absmax * 127.0f : 0.0f));
        }
        if (threadIdx.x == 0) {
            absmaxes[block] = absmax;
        }
    }
}

// output (elements) = (code - 128) / 127 · absmax. Launched elementwise.
extern "C" __global__ void decompress(float *output, const unsigned char *codes, const float *absmaxes, u64 elements) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        output[i] = ((float)codes[i] - 128.0f) * (1.0f / 127.0f) * absmaxes[i / COMPRESSED_BLOCK];
    }
}
