// layernorm.cu for elements of 16 bits; mean and rstd stay in fp32.

#include "half.cuh"
#include "reduce.cuh"

// As layernorm_forward of layernorm.cu. One block a row.
extern "C" __global__ void half_layernorm_forward(void *output, float *mean, float *rstd, const void *input,
                                                  const void *weight, const void *bias, u32 width, float epsilon,
                                                  u32 element) {
    u64 row = blockIdx.x, first = row * width;
    float sum = 0.0f;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        sum += read(input, element, first + column);
    }
    float average = block_sum(sum) / width;
    float squares = 0.0f;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        float centred = read(input, element, first + column) - average;
        squares += centred * centred;
    }
    float scale = 1.0f / sqrtf(block_sum(squares) / width + epsilon);
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        float normal = (read(input, element, first + column) - average) * scale;
        write(output, element, first + column, normal * read(weight, element, column) + read(bias, element, column));
    }
    if (threadIdx.x == 0) {
        mean[row] = average;
        rstd[row] = scale;
    }
}

// As layernorm_backward_input of layernorm.cu. One block a row.
extern "C" __global__ void half_layernorm_backward_input(void *grad_input, const void *grad_output, const void *input,
                                                         const void *weight, const float *mean, const float *rstd,
                                                         u32 width, u32 element) {
    u64 row = blockIdx.x, first = row * width;
    float average = mean[row], scale = rstd[row];
    float sum = 0.0f, sum_with_normal = 0.0f;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        float g = read(grad_output, element, first + column) * read(weight, element, column);
        sum += g;
        sum_with_normal += g * (read(input, element, first + column) - average) * scale;
    }
    float mean_g = block_sum(sum) / width;
    float mean_gn = block_sum(sum_with_normal) / width;
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        float normal = (read(input, element, first + column) - average) * scale;
        float g = read(grad_output, element, first + column) * read(weight, element, column);
        write(grad_input, element, first + column, (g - mean_g - normal * mean_gn) * scale);
    }
}

// As layernorm_backward_parameters of layernorm.cu, with its blocks.
extern "C" __global__ void half_layernorm_backward_parameters(void *grad_weight, void *grad_bias, const void *grad_output,
                                                              const void *input, const float *mean, const float *rstd,
                                                              u32 rows, u32 width, u32 accumulate, u32 element) {
    __shared__ float weight_part[32][33];
    __shared__ float bias_part[32][33];
    u32 column = blockIdx.x * 32 + threadIdx.x;
    float for_weight = 0.0f, for_bias = 0.0f;
    if (column < width) {
        for (u32 row = threadIdx.y; row < rows; row += 32) {
            u64 i = (u64)row * width + column;
            float grad = read(grad_output, element, i);
            for_weight += grad * (read(input, element, i) - mean[row]) * rstd[row];
            for_bias += grad;
        }
    }
    weight_part[threadIdx.y][threadIdx.x] = for_weight;
    bias_part[threadIdx.y][threadIdx.x] = for_bias;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for_weight = accumulate ? read(grad_weight, element, column) : 0.0f;
        for_bias = accumulate ? read(grad_bias, element, column) : 0.0f;
        for (u32 part = 0; part < 32; ++part) {
            for_weight += weight_part[part][threadIdx.x];
            for_bias += bias_part[part][threadIdx.x];
        }
        write(grad_weight, element, column, for_weight);
        write(grad_bias, element, column, for_bias);
    }
}
