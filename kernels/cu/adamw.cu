// The AdamW update (Loshchilov and Hutter 2019). Launched elementwise: any one-dimensional grid.

#include "index.cuh"

// weight, first_moment, second_moment (updated in place) and gradient (elements)
//
//   m ← beta1·m + (1 - beta1)·g          v ← beta2·v + (1 - beta2)·g²
//   w ← w - rate · decay · w - rate · (m / correction1) / (√(v / correction2) + epsilon)
//
// correction1 = 1 - beta1^step and correction2 = 1 - beta2^step, with step counted from 1.
extern "C" __global__ void adamw(float *weight, float *first_moment, float *second_moment, const float *gradient,
                                 u64 elements, float rate, float beta1, float beta2, float epsilon, float decay,
                                 float correction1, float correction2) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float g = gradient[i];
        float m = beta1 * first_moment[i] + (1.0f - beta1) * g;
        float v = beta2 * second_moment[i] + (1.0f - beta2) * g * g;
        float w = weight[i];
        w -= rate * decay * w;
        w -= rate * (m / correction1) / (sqrtf(v / correction2) + epsilon);
        first_moment[i] = m;
        second_moment[i] = v;
        weight[i] = w;
    }
}
