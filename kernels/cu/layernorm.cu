// Layer normalisation (arXiv 1607.06450): each row to mean 0 and variance 1, then a scale and a shift a column.
//
// input, output and their gradients (rows, width); weight, bias and their gradients (width); mean, rstd (rows).

#include "index.cuh"
#include "reduce.cuh"

// output = (input - mean) · rstd · weight + bias, with rstd = 1 / √(variance + epsilon)
//
// One block a row. mean and rstd are kept for backward.
extern "C" __global__ void layernorm_forward(float *output, float *mean, float *rstd, const float *input,
                                             const float *weight, const float *bias, u32 width, float epsilon) {
    u64 row = blockIdx.x;
    const float *x = input + row * width;
    float sum = 0.0f;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        sum += x[column];
    }
    float average = block_sum(sum) / width;
    float squares = 0.0f;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        float centred = x[column] - average;
        squares += centred * centred;
    }
    float scale = 1.0f / sqrtf(block_sum(squares) / width + epsilon);
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        output[row * width + column] = (x[column] - average) * scale * weight[column] + bias[column];
    }
    if (threadIdx.x == 0) {
        mean[row] = average;
        rstd[row] = scale;
    }
}

// With n = (input - mean) · rstd and g = grad_output · weight:
// grad_input = (g - mean of g - n · mean of g·n) · rstd, the means over the row.
//
// One block a row.
extern "C" __global__ void layernorm_backward_input(float *grad_input, const float *grad_output, const float *input,
                                                    const float *weight, const float *mean, const float *rstd,
                                                    u32 width) {
    u64 row = blockIdx.x;
    const float *x = input + row * width;
    const float *dy = grad_output + row * width;
    float average = mean[row], scale = rstd[row];
    float sum = 0.0f, sum_with_normal = 0.0f;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        float g = dy[column] * weight[column];
        sum += g;
        sum_with_normal += g * (x[column] - average) * scale;
    }
    float mean_g = block_sum(sum) / width;
    float mean_gn = block_sum(sum_with_normal) / width;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        float normal = (x[column] - average) * scale;
        grad_input[row * width + column] = (dy[column] * weight[column] - mean_g - normal * mean_gn) * scale;
    }
}

// grad_weight = Σ over rows of grad_output · (input - mean) · rstd; grad_bias = Σ over rows of grad_output
//
// Both are added to what is there when accumulate is not 0. One block of 32 × 32 threads for 32 columns: threadIdx.x is the
// column, threadIdx.y takes every 32nd row.
extern "C" __global__ void layernorm_backward_parameters(float *grad_weight, float *grad_bias, const float *grad_output,
                                                         const float *input, const float *mean, const float *rstd,
                                                         u32 rows, u32 width, u32 accumulate) {
    __shared__ float weight_part[32][33];
    __shared__ float bias_part[32][33];
    u32 column = blockIdx.x * 32 + threadIdx.x;
    float for_weight = 0.0f, for_bias = 0.0f;
    if (column < width) {
        for (u32 row = threadIdx.y; row < rows; row += 32) {
            u64 i = (u64)row * width + column;
            for_weight += grad_output[i] * (input[i] - mean[row]) * rstd[row];
            for_bias += grad_output[i];
        }
    }
    weight_part[threadIdx.y][threadIdx.x] = for_weight;
    bias_part[threadIdx.y][threadIdx.x] = for_bias;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for_weight = accumulate ? grad_weight[column] : 0.0f;
        for_bias = accumulate ? grad_bias[column] : 0.0f;
        for (u32 part = 0; part < 32; ++part) {
            for_weight += weight_part[part][threadIdx.x];
            for_bias += bias_part[part][threadIdx.x];
        }
        grad_weight[column] = for_weight;
        grad_bias[column] = for_bias;
    }
}
