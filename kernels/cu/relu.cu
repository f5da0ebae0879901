// The rectifier. Launched elementwise: any one-dimensional grid.

#include "index.cuh"

// output[i] = max(input[i], 0); both (elements), and output may be input
extern "C" __global__ void relu_forward(float *output, const float *input, u64 elements) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        output[i] = input[i] > 0.0f ? input[i] : 0.0f;
    }
}

// grad_input[i] = grad_output[i] where output[i] > 0, else 0; all (elements)
//
// By the output, not the input: it says the same, and is what was kept when the input was overwritten.
extern "C" __global__ void relu_backward(float *grad_input, const float *grad_output, const float *output, u64 elements) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        grad_input[i] = output[i] > 0.0f ? grad_output[i] : 0.0f;
    }
}
