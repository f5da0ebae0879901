// AdamW where weights, moments and gradients are bf16, with stochastic rounding (Gupta et al. 2015). Launched elementwise.
//
// bf16 has steps of 2⁻⁷ of a number, and an update is far less than half of one: rounded to the nearest it would be lost
// every time. Rounded up with the probability that is its share of the step, it arrives in the mean.

#include "stochastic.cuh"

// The update of adamw.cu in fp32, on weight, first_moment and second_moment (updated in place) and gradient, all (elements)
// of bf16. Element i takes the 64 bits of counter i: 16 for each of the three.
extern "C" __global__ void adamw_bf16(void *weight, void *first_moment, void *second_moment, const void *gradient,
                                      u64 elements, float rate, float beta1, float beta2, float epsilon, float decay,
                                      float correction1, float correction2, u64 seed) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float g = read(gradient, ELEMENT_BF16, i);
        float m = beta1 * read(first_moment, ELEMENT_BF16, i) + (1.0f - beta1) * g;
        float v = beta2 * read(second_moment, ELEMENT_BF16, i) + (1.0f - beta2) * g * g;
        float w = read(weight, ELEMENT_BF16, i);
        w -= rate * decay * w;
        w -= rate * (m / correction1) / (sqrtf(v / correction2) + epsilon);
        u64 bits = rounding_bits(seed, i);
        ((u16 *)weight)[i] = stochastically_rounded(w, (u32)bits);
        ((u16 *)first_moment)[i] = stochastically_rounded(m, (u32)(bits >> 16));
        ((u16 *)second_moment)[i] = stochastically_rounded(v, (u32)(bits >> 32));
    }
}
