// First values of tensors. Launched elementwise: any one-dimensional grid.

#include "index.cuh"

// output[i] = value; output (elements)
extern "C" __global__ void fill(float *output, u64 elements, float value) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        output[i] = value;
    }
}

// 64 random bits that depend on nothing but the seed and the counter (the SplitMix64 generator, entered at any place).
__device__ inline u64 random_bits(u64 seed, u64 counter) {
    u64 bits = seed + (counter + 1) * 0x9e3779b97f4a7c15ull;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    return bits ^ (bits >> 31);
}

// output[i] ~ Normal(0, deviation²); output (elements)
//
// Elements 2p and 2p+1 are the two values of one Box-Muller transform of the random bits with counter p, so that a value
// depends on its index alone and not on the grid. 24 bits make each uniform number: exact in fp32, and the first of them
// is never 0.
extern "C" __global__ void init_normal(float *output, u64 elements, float deviation, u64 seed) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 bits = random_bits(seed, i / 2);
        float radius_uniform = (float)((u32)(bits >> 40) + 1) * (1.0f / 16777216.0f);
        float angle_uniform = (float)((u32)(bits >> 8) & 0xffffffu) * (1.0f / 16777216.0f);
        float radius = sqrtf(-2.0f * logf(radius_uniform));
        float direction = i % 2 == 0 ? cospif(2.0f * angle_uniform) : sinpif(2.0f * angle_uniform);
        output[i] = deviation * radius * direction;
    }
}
