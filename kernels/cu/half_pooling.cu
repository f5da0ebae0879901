// pooling.cu for elements of 16 bits, of which a mean is taken in fp32.

#include "half.cuh"
#include "reduce.cuh"

// As maxpool_forward of pooling.cu. Launched elementwise over the output.
extern "C" __global__ void half_maxpool_forward(void *output, i64 *indices, const void *input, u32 planes, u32 height,
                                                u32 width, u32 side, u32 stride, u32 padding, u32 element) {
    u32 out_height = (height + 2 * padding - side) / stride + 1, out_width = (width + 2 * padding - side) / stride + 1;
    u64 elements = (u64)planes * out_height * out_width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 plane = i / out_width / out_height * height * width;
        u32 top = (u32)(i / out_width % out_height) * stride, left = (u32)(i % out_width) * stride;
        u32 first_y = top < padding ? 0 : top - padding, first_x = left < padding ? 0 : left - padding;
        u32 end_y = min(top + side - padding, height), end_x = min(left + side - padding, width);
        u32 at = first_y * width + first_x;
        for (u32 y = first_y; y < end_y; ++y) {
            for (u32 x = first_x; x < end_x; ++x) {
                if (read(input, element, plane + y * width + x) > read(input, element, plane + at)) {
                    at = y * width + x;
                }
            }
        }
        write(output, element, i, read(input, element, plane + at));
        indices[i] = at;
    }
}

// As maxpool_backward of pooling.cu. Launched elementwise over the input.
extern "C" __global__ void half_maxpool_backward(void *grad_input, const void *grad_output, const i64 *indices,
                                                 u32 planes, u32 height, u32 width, u32 side, u32 stride, u32 padding,
                                                 u32 element) {
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
                sum += indices[window] == at ? read(grad_output, element, window) : 0.0f;
            }
        }
        write(grad_input, element, i, sum);
    }
}

// As averagepool_forward of pooling.cu. One block a plane.
extern "C" __global__ void half_averagepool_forward(void *output, const void *input, u32 positions, u32 element) {
    u64 plane = blockIdx.x;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < positions; i += blockDim.x) {
        sum += read(input, element, plane * positions + i);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        write(output, element, plane, sum / positions);
    }
}

// As averagepool_backward of pooling.cu. Launched elementwise over grad_input.
extern "C" __global__ void half_averagepool_backward(void *grad_input, const void *grad_output, u32 planes, u32 positions,
                                                     u32 element) {
    u64 elements = (u64)planes * positions;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        write(grad_input, element, i, read(grad_output, element, i / positions) / positions);
    }
}
