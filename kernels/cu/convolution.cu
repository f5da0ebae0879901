// Two-dimensional convolution, in fp32: see convolution.cuh for shapes, formulas and grids.

#include "convolution.cuh"

// The output of input and weight.
extern "C" __global__ void __launch_bounds__(CONVOLUTION_THREADS)
    convolution_forward(float *output, const float *input, const float *weight, u32 images, u32 channels, u32 height,
                        u32 width, u32 filters, u32 side, u32 stride, u32 padding) {
    Convolution of = {images, channels, height, width, filters, side, stride, padding};
    auto store = [=](u64 i, float value) { output[i] = value; };
    product_for_output(of, store, [=](u64 i) { return input[i]; }, [=](u64 i) { return weight[i]; });
}

// The gradient of the input.
extern "C" __global__ void __launch_bounds__(CONVOLUTION_THREADS)
    convolution_backward_input(float *grad_input, const float *grad_output, const float *weight, u32 images, u32 channels,
                               u32 height, u32 width, u32 filters, u32 side, u32 stride, u32 padding) {
    Convolution of = {images, channels, height, width, filters, side, stride, padding};
    auto store = [=](u64 i, float value) { grad_input[i] = value; };
    product_for_input(of, store, [=](u64 i) { return grad_output[i]; }, [=](u64 i) { return weight[i]; });
}

// The gradient of the weight, added to what is there when accumulate is not 0.
extern "C" __global__ void __launch_bounds__(CONVOLUTION_THREADS)
    convolution_backward_weight(float *grad_weight, const float *grad_output, const float *input, u32 images,
                                u32 channels, u32 height, u32 width, u32 filters, u32 side, u32 stride, u32 padding,
                                u32 accumulate) {
    Convolution of = {images, channels, height, width, filters, side, stride, padding};
    auto store = [=](u64 i, float value) { grad_weight[i] = accumulate ? grad_weight[i] + value : value; };
    product_for_weight(of, store, [=](u64 i) { return grad_output[i]; }, [=](u64 i) { return input[i]; });
}
