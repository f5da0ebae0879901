// fp32 in bf16, rounded stochastically: for weights that are updated in fp32 and kept in bf16 (adamw_bf16.cu says why).

#include "stochastic.cuh"

// output (elements) of bf16 = input (elements). Element i takes the bits of counter i. Launched elementwise.
extern "C" __global__ void round_bf16(void *output, const float *input, u64 elements, u64 seed) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        ((u16 *)output)[i] = stochastically_rounded(input[i], (u32)rounding_bits(seed, i));
    }
}
