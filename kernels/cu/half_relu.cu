// relu.cu for elements of 16 bits. Launched elementwise: any one-dimensional grid.

#include "half.cuh"

// As relu_forward of relu.cu
extern "C" __global__ void half_relu_forward(void *output, const void *input, u64 elements, u32 element) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float value = read(input, element, i);
        write(output, element, i, value > 0.0f ? value : 0.0f);
    }
}

// As relu_backward of relu.cu
extern "C" __global__ void half_relu_backward(void *grad_input, const void *grad_output, const void *output, u64 elements,
                                              u32 element) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        write(grad_input, element, i, read(output, element, i) > 0.0f ? read(grad_output, element, i) : 0.0f);
    }
}
