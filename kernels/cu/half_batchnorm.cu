// batchnorm.cu for elements of 16 bits; mean, rstd and running statistics stay in fp32, and so do all sums. `element` is the kind
// of the input, the output and their gradients; `weight_element` that of weight, bias and their gradients, which may be fp32.

#include "batchnorm.cuh"
#include "half.cuh"

// As batchnorm_forward of batchnorm.cu. One block a channel.
extern "C" __global__ void half_batchnorm_forward(void *output, float *mean, float *rstd, float *running_mean,
                                                  float *running_variance, const void *input, const void *weight,
                                                  const void *bias, u32 images, u32 channels, u32 positions,
                                                  float momentum, float epsilon, u32 element, u32 weight_element) {
    auto store = [=](u64 i, float value) { write(output, element, i, value); };
    auto of_input = [=](u64 i) { return read(input, element, i); };
    auto of_weight = [=](u64 i) { return read(weight, weight_element, i); };
    auto of_bias = [=](u64 i) { return read(bias, weight_element, i); };
    normalise(Maps{images, channels, positions}, store, mean, rstd, running_mean, running_variance, of_input, of_weight,
              of_bias, momentum, epsilon);
}

// As batchnorm_backward of batchnorm.cu. One block a channel.
extern "C" __global__ void half_batchnorm_backward(void *grad_input, void *grad_weight, void *grad_bias,
                                                   const void *grad_output, const void *input, const void *weight,
                                                   const float *mean, const float *rstd, u32 images, u32 channels,
                                                   u32 positions, u32 accumulate, u32 element, u32 weight_element) {
    auto store = [=](u64 i, float value) { write(grad_input, element, i, value); };
    auto store_sums = [=](u64 channel, float for_weight, float for_bias) {
        if (accumulate) {
            for_weight += read(grad_weight, weight_element, channel);
            for_bias += read(grad_bias, weight_element, channel);
        }
        write(grad_weight, weight_element, channel, for_weight);
        write(grad_bias, weight_element, channel, for_bias);
    };
    auto of_grad = [=](u64 i) { return read(grad_output, element, i); };
    auto of_input = [=](u64 i) { return read(input, element, i); };
    auto of_weight = [=](u64 i) { return read(weight, weight_element, i); };
    normalise_back(Maps{images, channels, positions}, store, store_sums, of_grad, of_input, of_weight, mean, rstd);
}
