// Stochastic rounding to bf16 (Gupta et al. 2015): up with the probability that is a number's share of the step.

#pragma once

#include "half.cuh"

// 64 random bits that depend on nothing but the seed and the counter (the SplitMix64 generator, entered at any place).
__device__ inline u64 rounding_bits(u64 seed, u64 counter) {
    u64 bits = seed + (counter + 1) * 0x9e3779b97f4a7c15ull;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    return bits ^ (bits >> 31);
}

// fp32 has 16 bits below bf16's last: adding 16 uniform bits carries into it with exactly the probability that is wanted.
// Infinity and NaN are rounded as always.
__device__ inline u16 stochastically_rounded(float value, u32 uniform) {
    u32 bits = __float_as_uint(value);
    if ((bits & 0x7f800000u) == 0x7f800000u) {
        return rounded_bf16(value);
    }
    return (u16)((bits + (uniform & 0xffffu)) >> 16);
}
