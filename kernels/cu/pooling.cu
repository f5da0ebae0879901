// Pooling: the largest of each window, and the mean of a whole plane.
//
// A plane is one channel of one image. input and grad_input (planes, height, width).

#include "index.cuh"
#include "reduce.cuh"

// output (planes, out_height, out_width) = the largest input of each window; indices (the same shape) 64-bit = where in its
// plane it is, y·width + x, the first if there are several
//
// Windows of side × side, stride apart, the first padding above and left of the plane; what lies outside never wins, so
// padding is less than side. out_height = (height + 2·padding - side) / stride + 1, rounded down.
// Launched elementwise over the output.
extern "C" __global__ void maxpool_forward(float *output, i64 *indices, const float *input, u32 planes, u32 height,
                                           u32 width, u32 side, u32 stride, u32 padding) {
    u32 out_height = (height + 2 * padding - side) / stride + 1, out_width = (width + 2 * padding - side) / stride + 1;
    u64 elements = (u64)planes * out_height * out_width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        const float *plane = input + i / out_width / out_height * height * width;
        u32 top = (u32)(i / out_width % out_height) * stride, left = (u32)(i % out_width) * stride;
        u32 first_y = top < padding ? 0 : top - padding, first_x = left < padding ? 0 : left - padding;
        u32 end_y = min(top + side - padding, height), end_x = min(left + side - padding, width);
        u32 at = first_y * width + first_x;
        for (u32 y = first_y; y < end_y; ++y) {
            for (u32 x = first_x; x < end_x; ++x) {
                if (plane[y * width + x] > plane[at]) {
                    at = y * width + x;
                }
            }
        }
        output[i] = plane[at];
        indices[i] = at;
    }
}

// grad_input = the sum of grad_output over the windows whose largest input it is
//
// grad_output and indices (planes, out_height, out_width); the windows as in forward. Each element looks at the windows that
// cover it, so that nothing is atomic. Launched elementwise over the input.
extern "C" __global__ void maxpool_backward(float *grad_input, const float *grad_output, const i64 *indices, u32 planes,
                                            u32 height, u32 width, u32 side, u32 stride, u32 padding) {
    u32 out_height = (height + 2 * padding - side) / stride + 1, out_width = (width + 2 * padding - side) / stride + 1;
    u64 elements = (u64)planes * height * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 plane = i / width / height;
        u32 y = (u32)(i / width % height) + padding, x = (u32)(i % width) + padding;
        u32 first_row = y < side ? 0 : (y - side) / stride + 1, end_row = min(y / stride + 1, out_height);
        u32 first_column = x < side ? 0 : (x - side) / stride + 1, end_column = min(x / stride + 1, out_width);
        i64 at = (i64)(i - plane * height * width);
        float sum = 0.0f;
        for (u32 row = first_row; row < end_row; ++row) {
            for (u32 column = first_column; column < end_column; ++column) {
                u64 window = (plane * out_height + row) * out_width + column;
                sum += indices[window] == at ? grad_output[window] : 0.0f;
            }
        }
        grad_input[i] = sum;
    }
}

// output (planes) = the mean of each plane of input (planes, positions). One block a plane.
extern "C" __global__ void averagepool_forward(float *output, const float *input, u32 positions) {
    u64 plane = blockIdx.x;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < positions; i += blockDim.x) {
        sum += input[plane * positions + i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        output[plane] = sum / positions;
    }
}

// grad_input (planes, positions) = grad_output (planes) / positions. Launched elementwise over grad_input.
extern "C" __global__ void averagepool_backward(float *grad_input, const float *grad_output, u32 planes, u32 positions) {
    u64 elements = (u64)planes * positions;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        grad_input[i] = grad_output[i / positions] / positions;
    }
}
