// Batch normalisation in training (arXiv 1502.03167): each channel to mean 0 and variance 1 over the batch, then a scale and a
// shift a channel.
//
// input, output and their gradients (images, channels, positions); weight, bias and their gradients, mean, rstd and the
// running statistics (channels). A channel has images·positions values, at least 2. One block a channel.

#include "index.cuh"
#include "reduce.cuh"

// output = (input - mean) · rstd · weight + bias, with rstd = 1 / √(variance + epsilon)
//
// mean and rstd are kept for backward. The running statistics become (1 - momentum) · before + momentum · the batch's, where
// the variance of the batch is the unbiased one (divided by the number of values less 1), as in PyTorch.
extern "C" __global__ void batchnorm_forward(float *output, float *mean, float *rstd, float *running_mean,
                                             float *running_variance, const float *input, const float *weight,
                                             const float *bias, u32 images, u32 channels, u32 positions, float momentum,
                                             float epsilon) {
    u64 channel = blockIdx.x;
    u32 values = images * positions;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        sum += input[(i / positions * (u64)channels + channel) * positions + i % positions];
    }
    float average = block_sum(sum) / values;
    float squares = 0.0f;
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        float centred = input[(i / positions * (u64)channels + channel) * positions + i % positions] - average;
        squares += centred * centred;
    }
    squares = block_sum(squares);
    float scale = 1.0f / sqrtf(squares / values + epsilon);
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        u64 at = (i / positions * (u64)channels + channel) * positions + i % positions;
        output[at] = (input[at] - average) * scale * weight[channel] + bias[channel];
    }
    if (threadIdx.x == 0) {
        mean[channel] = average;
        rstd[channel] = scale;
        running_mean[channel] = (1.0f - momentum) * running_mean[channel] + momentum * average;
        running_variance[channel] = (1.0f - momentum) * running_variance[channel] + momentum * (squares / (values - 1));
    }
}

// With n = (input - mean) · rstd, and means over the values of a channel:
// grad_input = (grad_output - mean of grad_output - n · mean of grad_output·n) · rstd · weight,
// grad_weight = Σ grad_output · n and grad_bias = Σ grad_output, both added to what is there when accumulate is not 0
extern "C" __global__ void batchnorm_backward(float *grad_input, float *grad_weight, float *grad_bias,
                                              const float *grad_output, const float *input, const float *weight,
                                              const float *mean, const float *rstd, u32 images, u32 channels,
                                              u32 positions, u32 accumulate) {
    u64 channel = blockIdx.x;
    u32 values = images * positions;
    float average = mean[channel], scale = rstd[channel];
    float sum = 0.0f, sum_with_normal = 0.0f;
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        u64 at = (i / positions * (u64)channels + channel) * positions + i % positions;
        sum += grad_output[at];
        sum_with_normal += grad_output[at] * (input[at] - average) * scale;
    }
    sum = block_sum(sum);
    sum_with_normal = block_sum(sum_with_normal);
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        u64 at = (i / positions * (u64)channels + channel) * positions + i % positions;
        float normal = (input[at] - average) * scale;
        float centred = grad_output[at] - sum / values - normal * (sum_with_normal / values);
        grad_input[at] = centred * scale * weight[channel];
    }
    if (threadIdx.x == 0) {
        grad_weight[channel] = (accumulate ? grad_weight[channel] : 0.0f) + sum_with_normal;
        grad_bias[channel] = (accumulate ? grad_bias[channel] : 0.0f) + sum;
    }
}
