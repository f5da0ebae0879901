// Batch normalisation in training, in fp32: see batchnorm.cuh for shapes and formulas. One block a channel.

#include "batchnorm.cuh"

// The output, and mean and rstd for backward; the running statistics move.
extern "C" __global__ void batchnorm_forward(float *output, float *mean, float *rstd, float *running_mean,
                                             float *running_variance, const float *input, const float *weight,
                                             const float *bias, u32 images, u32 channels, u32 positions, float momentum,
                                             float epsilon) {
    auto store = [=](u64 i, float value) { output[i] = value; };
    auto of_input = [=](u64 i) { return input[i]; };
    auto of_weight = [=](u64 i) { return weight[i]; };
    auto of_bias = [=](u64 i) { return bias[i]; };
    normalise(Maps{images, channels, positions}, store, mean, rstd, running_mean, running_variance, of_input, of_weight,
              of_bias, momentum, epsilon);
}

// The gradients, those of weight and bias added to what is there when accumulate is not 0.
extern "C" __global__ void batchnorm_backward(float *grad_input, float *grad_weight, float *grad_bias,
                                              const float *grad_output, const float *input, const float *weight,
                                              const float *mean, const float *rstd, u32 images, u32 channels,
                                              u32 positions, u32 accumulate) {
    auto store = [=](u64 i, float value) { grad_input[i] = value; };
    auto store_sums = [=](u64 channel, float for_weight, float for_bias) {
        grad_weight[channel] = (accumulate ? grad_weight[channel] : 0.0f) + for_weight;
        grad_bias[channel] = (accumulate ? grad_bias[channel] : 0.0f) + for_bias;
    };
    auto of_grad = [=](u64 i) { return grad_output[i]; };
    auto of_input = [=](u64 i) { return input[i]; };
    auto of_weight = [=](u64 i) { return weight[i]; };
    normalise_back(Maps{images, channels, positions}, store, store_sums, of_grad, of_input, of_weight, mean, rstd);
}
