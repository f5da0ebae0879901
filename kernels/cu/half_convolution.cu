// convolution.cu for elements of 16 bits, which are multiplied and summed in fp32; an output is rounded once. All tensors of a
// launch are of one kind.

#include "convolution.cuh"
#include "half.cuh"

// As convolution_forward of convolution.cu.
extern "C" __global__ void __launch_bounds__(CONVOLUTION_THREADS)
    half_convolution_forward(void *output, const void *input, const void *weight, u32 images, u32 channels, u32 height,
                             u32 width, u32 filters, u32 side, u32 stride, u32 padding, u32 element) {
    Convolution of = {images, channels, height, width, filters, side, stride, padding};
    auto store = [=](u64 i, float value) { write(output, element, i, value); };
    auto of_input = [=](u64 i) { return read(input, element, i); };
    auto of_weight = [=](u64 i) { return read(weight, element, i); };
    product_for_output(of, store, of_input, of_weight);
}

// As convolution_backward_input of convolution.cu.
extern "C" __global__ void __launch_bounds__(CONVOLUTION_THREADS)
    half_convolution_backward_input(void *grad_input, const void *grad_output, const void *weight, u32 images,
                                    u32 channels, u32 height, u32 width, u32 filters, u32 side, u32 stride, u32 padding,
                                    u32 element) {
    Convolution of = {images, channels, height, width, filters, side, stride, padding};
    auto store = [=](u64 i, float value) { write(grad_input, element, i, value); };
    auto of_grad = [=](u64 i) { return read(grad_output, element, i); };
    auto of_weight = [=](u64 i) { return read(weight, element, i); };
    product_for_input(of, store, of_grad, of_weight);
}

// As convolution_backward_weight of convolution.cu.
extern "C" __global__ void __launch_bounds__(CONVOLUTION_THREADS)
    half_convolution_backward_weight(void *grad_weight, const void *grad_output, const void *input, u32 images,
                                     u32 channels, u32 height, u32 width, u32 filters, u32 side, u32 stride, u32 padding,
                                     u32 accumulate, u32 element) {
    Convolution of = {images, channels, height, width, filters, side, stride, padding};
    auto store = [=](u64 i, float value) {
        write(grad_weight, element, i, accumulate ? read(grad_weight, element, i) + value : value);
    };
    auto of_grad = [=](u64 i) { return read(grad_output, element, i); };
    auto of_input = [=](u64 i) { return read(input, element, i); };
    product_for_weight(of, store, of_grad, of_input);
}
