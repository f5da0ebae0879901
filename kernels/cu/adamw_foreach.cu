// The AdamW update of adamw.cu in three kernels with a temporary between them, as an optimizer without a fused kernel takes
// it. The operations are those of the fused one, in its order. Launched elementwise: any one-dimensional grid. All arrays
// (elements).

#include "index.cuh"

// m ← beta1·m + (1 - beta1)·g          v ← beta2·v + (1 - beta2)·g²
extern "C" __global__ void adamw_moments(float *first_moment, float *second_moment, const float *gradient, u64 elements,
                                         float beta1, float beta2) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float g = gradient[i];
        first_moment[i] = beta1 * first_moment[i] + (1.0f - beta1) * g;
        second_moment[i] = beta2 * second_moment[i] + (1.0f - beta2) * g * g;
    }
}

// denominator = √(v / correction2) + epsilon
extern "C" __global__ void adamw_denominator(float *denominator, const float *second_moment, u64 elements, float epsilon,
                                             float correction2) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        denominator[i] = sqrtf(second_moment[i] / correction2) + epsilon;
    }
}

// w ← w - rate · decay · w - rate · (m / correction1) / denominator
extern "C" __global__ void adamw_apply(float *weight, const float *first_moment, const float *denominator, u64 elements,
                                       float rate, float decay, float correction1) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float w = weight[i];
        w -= rate * decay * w;
        w -= rate * (first_moment[i] / correction1) / denominator[i];
        weight[i] = w;
    }
}
