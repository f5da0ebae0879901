// What loss scaling does to gradients (Micikevicius et al. 2018, section 3.2). Launched elementwise.

#include "index.cuh"

// gradient[i] = gradient[i] · factor; found[0] = 1 if any gradient was an infinity or NaN, else it stays
//
// Every thread that finds one writes the same number, so that nothing need be atomic.
extern "C" __global__ void unscale(float *gradient, float *found, u64 elements, float factor) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float value = gradient[i];
        if (!(fabsf(value) <= 3.402823466e38f)) {
            found[0] = 1.0f;
        }
        gradient[i] = value * factor;
    }
}
