// Two-dimensional convolution as implicit matrix products (cuDNN's name for it: implicit GEMM).
//
// A convolution is a product of the weight (filters, channels·side·side) with columns (channels·side·side, positions), where
// the column of an output position holds the part of the input under the filter. Here the columns are never in memory: a
// block computes the addresses of those that it needs. So no workspace is taken, and an element of the input is read once
// for every place of the filter.
//
// input and grad_input (images, channels, height, width); output and grad_output (images, filters, out_height, out_width);
// weight and grad_weight (filters, channels, side, side). Square filters; the same stride and padding in both directions, and
// out_height = (height + 2·padding - side) / stride + 1, rounded down. Rows and depths of the products stay below 2³¹.

//
// What is read and written is given by functions of an index: of fp32 in convolution.cu, of 16 bits in half_convolution.cu.

#pragma once

#include "index.cuh"

#define CONVOLUTION_TILE 64    // rows and columns of the product that a block computes
#define CONVOLUTION_DEPTH 16   // terms of the sums that it holds at a time
#define CONVOLUTION_SIDE 16    // threads lie 16 × 16 over the tile, each with 4 rows and 4 columns
#define CONVOLUTION_THREADS 256

__device__ inline u32 convolved(u32 size, u32 side, u32 stride, u32 padding) {
    return (size + 2 * padding - side) / stride + 1;
}

// store(row, column, Σ over depth of left(row, depth) · right(depth, column)) for rows × columns, a tile a block.
//
// Neighbouring threads store neighbouring rows and load neighbouring depths of right; of left they load neighbouring rows,
// or depths if `left_along_depth`.
template <bool left_along_depth, class Left, class Right, class Store>
__device__ inline void convolution_product(u32 rows, u32 columns, u32 depths, Left left, Right right, Store store) {
    __shared__ float left_tile[CONVOLUTION_DEPTH][CONVOLUTION_TILE + 1];
    __shared__ float right_tile[CONVOLUTION_DEPTH][CONVOLUTION_TILE + 1];
    u32 first_row = blockIdx.x * CONVOLUTION_TILE, first_column = blockIdx.y * CONVOLUTION_TILE;
    u32 my_row = threadIdx.x % CONVOLUTION_SIDE, my_column = threadIdx.x / CONVOLUTION_SIDE;
    float sum[4][4] = {};
    for (u32 first_depth = 0; first_depth < depths; first_depth += CONVOLUTION_DEPTH) {
        for (u32 i = threadIdx.x; i < CONVOLUTION_TILE * CONVOLUTION_DEPTH; i += CONVOLUTION_THREADS) {
            u32 row = left_along_depth ? i / CONVOLUTION_DEPTH : i % CONVOLUTION_TILE;
            u32 depth = left_along_depth ? i % CONVOLUTION_DEPTH : i / CONVOLUTION_TILE;
            bool inside = first_row + row < rows && first_depth + depth < depths;
            left_tile[depth][row] = inside ? left(first_row + row, first_depth + depth) : 0.0f;
        }
        for (u32 i = threadIdx.x; i < CONVOLUTION_TILE * CONVOLUTION_DEPTH; i += CONVOLUTION_THREADS) {
            u32 column = i / CONVOLUTION_DEPTH, depth = i % CONVOLUTION_DEPTH;
            bool inside = first_column + column < columns && first_depth + depth < depths;
            right_tile[depth][column] = inside ? right(first_depth + depth, first_column + column) : 0.0f;
        }
        __syncthreads();
        for (u32 depth = 0; depth < CONVOLUTION_DEPTH; ++depth) {
            for (u32 i = 0; i < 4; ++i) {
                for (u32 j = 0; j < 4; ++j) {
                    sum[i][j] += left_tile[depth][my_row + CONVOLUTION_SIDE * i] *
                                 right_tile[depth][my_column + CONVOLUTION_SIDE * j];
                }
            }
        }
        __syncthreads();
    }
    for (u32 j = 0; j < 4; ++j) {
        for (u32 i = 0; i < 4; ++i) {
            u32 row = first_row + my_row + CONVOLUTION_SIDE * i;
            u32 column = first_column + my_column + CONVOLUTION_SIDE * j;
            if (row < rows && column < columns) {
                store(row, column, sum[i][j]);
            }
        }
    }
}

// The sizes of a convolution, in the kernels' order.
struct Convolution {
    u32 images, channels, height, width, filters, side, stride, padding;

    __device__ u32 out_height() const { return convolved(height, side, stride, padding); }
    __device__ u32 out_width() const { return convolved(width, side, stride, padding); }
};

// store(i, value) for element i of the output, from input(i) and weight(i).
//
// output[n, f, y, x] = Σ over c, v, u of weight[f, c, v, u] · input[n, c, y·stride + v - padding, x·stride + u - padding]
//
// What lies outside of the input is 0. Grid (⌈images·out_height·out_width / 64⌉, ⌈filters / 64⌉), 256 threads.
template <class Store, class Input, class Weight>
__device__ inline void product_for_output(Convolution of, Store store, Input input, Weight weight) {
    u32 out_width = of.out_width(), positions = of.out_height() * out_width;
    u32 area = of.side * of.side, depths = of.channels * area;
    auto left = [=](u32 row, u32 depth) {
        u32 image = row / positions, position = row % positions, channel = depth / area, place = depth % area;
        // Left of or above the input these wrap around to numbers beyond it.
        u32 y = position / out_width * of.stride + place / of.side - of.padding;
        u32 x = position % out_width * of.stride + place % of.side - of.padding;
        bool inside = y < of.height && x < of.width;
        return inside ? input((((u64)image * of.channels + channel) * of.height + y) * of.width + x) : 0.0f;
    };
    auto right = [=](u32 depth, u32 filter) { return weight((u64)filter * depths + depth); };
    auto put = [=](u32 row, u32 filter, float value) {
        store(((u64)(row / positions) * of.filters + filter) * positions + row % positions, value);
    };
    convolution_product<false>(of.images * positions, of.filters, depths, left, right, put);
}

// store(i, value) for element i of the input's gradient, from grad_output(i) and weight(i).
//
// grad_input[n, c, y, x] = Σ over f, v, u of weight[f, c, v, u] · grad_output[n, f, (y + padding - v) / stride,
// (x + padding - u) / stride], over the places of the filter from which both divisions are exact and inside
//
// Grid (⌈images·height·width / 64⌉, ⌈channels / 64⌉), 256 threads.
template <class Store, class GradOutput, class Weight>
__device__ inline void product_for_input(Convolution of, Store store, GradOutput grad_output, Weight weight) {
    u32 out_height = of.out_height(), out_width = of.out_width();
    u32 pixels = of.height * of.width, area = of.side * of.side;
    auto left = [=](u32 row, u32 depth) {
        u32 image = row / pixels, pixel = row % pixels, filter = depth / area, place = depth % area;
        u32 y = pixel / of.width + of.padding - place / of.side, x = pixel % of.width + of.padding - place % of.side;
        bool inside = y % of.stride == 0 && x % of.stride == 0 && y / of.stride < out_height && x / of.stride < out_width;
        u64 plane = (u64)image * of.filters + filter;
        return inside ? grad_output((plane * out_height + y / of.stride) * out_width + x / of.stride) : 0.0f;
    };
    auto right = [=](u32 depth, u32 channel) {
        return weight(((u64)(depth / area) * of.channels + channel) * area + depth % area);
    };
    auto put = [=](u32 row, u32 channel, float value) {
        store(((u64)(row / pixels) * of.channels + channel) * pixels + row % pixels, value);
    };
    convolution_product<false>(of.images * pixels, of.channels, of.filters * area, left, right, put);
}

// store(i, value) for element i of the weight's gradient, from grad_output(i) and input(i).
//
// grad_weight[f, c, v, u] = Σ over n, y, x of grad_output[n, f, y, x] · input[n, c, y·stride + v - padding,
// x·stride + u - padding]
//
// Grid (⌈channels·side·side / 64⌉, ⌈filters / 64⌉), 256 threads.
template <class Store, class GradOutput, class Input>
__device__ inline void product_for_weight(Convolution of, Store store, GradOutput grad_output, Input input) {
    u32 out_width = of.out_width(), positions = of.out_height() * out_width;
    u32 area = of.side * of.side, weights = of.channels * area;
    auto left = [=](u32 row, u32 depth) {
        u32 image = depth / positions, position = depth % positions, channel = row / area, place = row % area;
        u32 y = position / out_width * of.stride + place / of.side - of.padding;
        u32 x = position % out_width * of.stride + place % of.side - of.padding;
        bool inside = y < of.height && x < of.width;
        return inside ? input((((u64)image * of.channels + channel) * of.height + y) * of.width + x) : 0.0f;
    };
    auto right = [=](u32 depth, u32 filter) {
        return grad_output(((u64)(depth / positions) * of.filters + filter) * positions + depth % positions);
    };
    auto put = [=](u32 row, u32 filter, float value) { store((u64)filter * weights + row, value); };
    convolution_product<true>(weights, of.filters, of.images * positions, left, right, put);
}
