// Functions of single elements. Launched elementwise: any one-dimensional grid.

#include "index.cuh"

// output[i] = a[i] + b[i]; all (elements), and output may be a: then b is added to it
extern "C" __global__ void add(float *output, const float *a, const float *b, u64 elements) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        output[i] = a[i] + b[i];
    }
}

// sqrt(2 / pi)
#define GELU_SLOPE 0.7978845608028654f
#define GELU_CUBE 0.044715f

// output[i] = x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))), x = input[i]; all (elements)
//
// The tanh form of GELU (Hendrycks and Gimpel 2016), which GPT-2 uses.
extern "C" __global__ void gelu_forward(float *output, const float *input, u64 elements) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float x = input[i];
        output[i] = 0.5f * x * (1.0f + tanhf(GELU_SLOPE * (x + GELU_CUBE * x * x * x)));
    }
}

// grad_input[i] = grad_output[i] · gelu'(input[i]); all (elements)
extern "C" __global__ void gelu_backward(float *grad_input, const float *grad_output, const float *input, u64 elements) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float x = input[i];
        float t = tanhf(GELU_SLOPE * (x + GELU_CUBE * x * x * x));
        float slope_of_inner = GELU_SLOPE * (1.0f + 3.0f * GELU_CUBE * x * x);
        grad_input[i] = grad_output[i] * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope_of_inner);
    }
}
