// compress.cu for elements of 16 bits: a block's scale is in fp32 as always.

#include "half.cuh"
#include "reduce.cuh"

#define HALF_COMPRESSED_BLOCK 256

// As compress of compress.cu, with its blocks.
extern "C" __global__ void half_compress(unsigned char *codes, float *absmaxes, const void *input, u64 elements,
                                         u32 element) {
    u64 blocks = (elements + HALF_COMPRESSED_BLOCK - 1) / HALF_COMPRESSED_BLOCK;
    for (u64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        u64 i = block * HALF_COMPRESSED_BLOCK + threadIdx.x;
        float x = i < elements ? read(input, element, i) : 0.0f;
        float absmax = block_max(fabsf(x));
        if (i < elements) {
            codes[i] = (unsigned char)(128.0f + rintf(absmax > 0.0f ? x / absmax * 127.0f : 0.0f));
        }
        if (threadIdx.x == 0) {
            absmaxes[block] = absmax;
        }
    }
}

// As decompress of compress.cu. Launched elementwise.
extern "C" __global__ void half_decompress(void *output, const unsigned char *codes, const float *absmaxes, u64 elements,
                                           u32 element) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float share = ((float)codes[i] - 128.0f) * (1.0f / 127.0f);
        write(output, element, i, share * absmaxes[i / HALF_COMPRESSED_BLOCK]);
    }
}
