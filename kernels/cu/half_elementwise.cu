// elementwise.cu and fill.cu for elements of 16 bits, and conversions between all kinds. Launched elementwise: any
// one-dimensional grid. `element` is 1 for fp16 or 2 for bf16; where a kernel takes several, each may also be 0 for fp32.

#include "half.cuh"

// output[i] = input[i], rounded; added to what is there when accumulate is not 0
extern "C" __global__ void cast(void *output, const void *input, u64 elements, u32 output_element, u32 input_element,
                                u32 accumulate) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float value = read(input, input_element, i);
        write(output, output_element, i, accumulate ? read(output, output_element, i) + value : value);
    }
}

// output[i] = value; output (elements)
extern "C" __global__ void half_fill(void *output, u64 elements, float value, u32 element) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        write(output, element, i, value);
    }
}

// output[i] = a[i] + b[i]; all (elements), output and a of one kind, and output may be a: then b is added to it
extern "C" __global__ void half_add(void *output, const void *a, const void *b, u64 elements, u32 element,
                                    u32 b_element) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        write(output, element, i, read(a, element, i) + read(b, b_element, i));
    }
}

// sqrt(2 / pi)
#define HALF_GELU_SLOPE 0.7978845608028654f
#define HALF_GELU_CUBE 0.044715f

// As gelu_forward of elementwise.cu
extern "C" __global__ void half_gelu_forward(void *output, const void *input, u64 elements, u32 element) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float x = read(input, element, i);
        float t = tanhf(HALF_GELU_SLOPE * (x + HALF_GELU_CUBE * x * x * x));
        write(output, element, i, 0.5f * x * (1.0f + t));
    }
}

// As gelu_backward of elementwise.cu
extern "C" __global__ void half_gelu_backward(void *grad_input, const void *grad_output, const void *input, u64 elements,
                                              u32 element) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float x = read(input, element, i);
        float t = tanhf(HALF_GELU_SLOPE * (x + HALF_GELU_CUBE * x * x * x));
        float slope_of_inner = HALF_GELU_SLOPE * (1.0f + 3.0f * HALF_GELU_CUBE * x * x);
        float slope = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope_of_inner;
        write(grad_input, element, i, read(grad_output, element, i) * slope);
    }
}
