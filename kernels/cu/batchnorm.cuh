// Batch normalisation in training (arXiv 1502.03167): each channel to mean 0 and variance 1 over the batch, then a scale and a
// shift a channel.
//
// input, output and their gradients (images, channels, positions); weight, bias and their gradients, mean, rstd and the
// running statistics (channels). A channel has images·positions values, at least 2. One block a channel.
//
// What is read and written is given by functions of an index: of fp32 in batchnorm.cu, of 16 bits in half_batchnorm.cu.
// Statistics are fp32 in both.

#pragma once

#include "index.cuh"
#include "reduce.cuh"

// The sizes of what is normalised.
struct Maps {
    u32 images, channels, positions;

    // Values of a channel.
    __device__ u32 values() const { return images * positions; }
    // Where value i of a channel is.
    __device__ u64 at(u64 channel, u32 i) const {
        return (i / positions * (u64)channels + channel) * positions + i % positions;
    }
};

// store(i, value) for element i of the output, from input(i), weight(channel) and bias(channel).
//
// output = (input - mean) · rstd · weight + bias, with rstd = 1 / √(variance + epsilon)
//
// mean and rstd are kept for backward. The running statistics become (1 - momentum) · before + momentum · the batch's, where
// the variance of the batch is the unbiased one (divided by the number of values less 1), as in PyTorch.
template <class Store, class Input, class Weight, class Bias>
__device__ inline void normalise(Maps of, Store store, float *mean, float *rstd, float *running_mean,
                                 float *running_variance, Input input, Weight weight, Bias bias, float momentum,
                                 float epsilon) {
    u64 channel = blockIdx.x;
    u32 values = of.values();
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        sum += input(of.at(channel, i));
    }
    float average = block_sum(sum) / values;
    float squares = 0.0f;
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        float centred = input(of.at(channel, i)) - average;
        squares += centred * centred;
    }
    squares = block_sum(squares);
    float scale = 1.0f / sqrtf(squares / values + epsilon);
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        u64 at = of.at(channel, i);
        store(at, (input(at) - average) * scale * weight(channel) + bias(channel));
    }
    if (threadIdx.x == 0) {
        mean[channel] = average;
        rstd[channel] = scale;
        running_mean[channel] = (1.0f - momentum) * running_mean[channel] + momentum * average;
        running_variance[channel] = (1.0f - momentum) * running_variance[channel] + momentum * (squares / (values - 1));
    }
}

// store(i, value) for element i of the input's gradient, and store_sums(channel, of_weight, of_bias) for the gradients of weight
// and bias, from grad_output(i), input(i) and weight(channel).
//
// With n = (input - mean) · rstd, and means over the values of a channel:
// grad_input = (grad_output - mean of grad_output - n · mean of grad_output·n) · rstd · weight,
// grad_weight = Σ grad_output · n and grad_bias = Σ grad_output
template <class Store, class StoreSums, class GradOutput, class Input, class Weight>
__device__ inline void normalise_back(Maps of, Store store, StoreSums store_sums, GradOutput grad_output, Input input,
                                      Weight weight, const float *mean, const float *rstd) {
    u64 channel = blockIdx.x;
    u32 values = of.values();
    float average = mean[channel], scale = rstd[channel];
    float sum = 0.0f, sum_with_normal = 0.0f;
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        u64 at = of.at(channel, i);
        sum += grad_output(at);
        sum_with_normal += grad_output(at) * (input(at) - average) * scale;
    }
    sum = block_sum(sum);
    sum_with_normal = block_sum(sum_with_normal);
    for (u32 i = threadIdx.x; i < values; i += blockDim.x) {
        u64 at = of.at(channel, i);
        float normal = (input(at) - average) * scale;
        float centred = grad_output(at) - sum / values - normal * (sum_with_normal / values);
        store(at, centred * scale * weight(channel));
    }
    if (threadIdx.x == 0) {
        store_sums(channel, sum_with_normal, sum);
    }
}
