// matmul.cu for elements of 16 bits, which are multiplied and summed in fp32; an output is rounded once.

#include "half.cuh"

#define HALF_TILE 64   // rows and columns of the output that a block computes
#define HALF_DEPTH 16  // columns of a and rows of b that it holds at a time
#define HALF_THREADS 256
#define HALF_SIDE 16   // threads lie HALF_SIDE × HALF_SIDE over the tile, each with HALF_TILE / HALF_SIDE rows and columns
#define HALF_EACH (HALF_TILE / HALF_SIDE)

// As matmul of matmul.cu, with its grid; a, b, bias and output are all of one kind.
extern "C" __global__ void __launch_bounds__(HALF_THREADS)
    half_matmul(void *output, const void *a, const void *b, const void *bias, u32 m, u32 n, u32 k, u32 batches, u64 a_row,
                u64 a_column, u64 a_batch, u64 b_row, u64 b_column, u64 b_batch, u64 output_row, u64 output_batch,
                float alpha, float beta, u32 element) {
    __shared__ float a_tile[HALF_DEPTH][HALF_TILE + 1];
    __shared__ float b_tile[HALF_DEPTH][HALF_TILE + 1];
    u32 first_row = blockIdx.x * HALF_TILE, first_column = blockIdx.y * HALF_TILE;
    u32 my_row = threadIdx.x / HALF_SIDE, my_column = threadIdx.x % HALF_SIDE;

    for (u32 batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        u64 left = batch * a_batch;
        u64 right = batch * b_batch;
        float sum[HALF_EACH][HALF_EACH] = {};
        for (u32 first_depth = 0; first_depth < k; first_depth += HALF_DEPTH) {
            // Neighbouring threads load neighbouring addresses, whichever way an operand lies.
            for (u32 i = threadIdx.x; i < HALF_TILE * HALF_DEPTH; i += HALF_THREADS) {
                u32 row = a_column == 1 ? i / HALF_DEPTH : i % HALF_TILE;
                u32 depth = a_column == 1 ? i % HALF_DEPTH : i / HALF_TILE;
                bool inside = first_row + row < m && first_depth + depth < k;
                u64 place = left + (first_row + row) * a_row + (first_depth + depth) * a_column;
                a_tile[depth][row] = inside ? read(a, element, place) : 0.0f;
            }
            for (u32 i = threadIdx.x; i < HALF_TILE * HALF_DEPTH; i += HALF_THREADS) {
                u32 column = b_column == 1 ? i % HALF_TILE : i / HALF_DEPTH;
                u32 depth = b_column == 1 ? i / HALF_TILE : i % HALF_DEPTH;
                bool inside = first_column + column < n && first_depth + depth < k;
                u64 place = right + (first_depth + depth) * b_row + (first_column + column) * b_column;
                b_tile[depth][column] = inside ? read(b, element, place) : 0.0f;
            }
            __syncthreads();
            for (u32 depth = 0; depth < HALF_DEPTH; ++depth) {
                for (u32 i = 0; i < HALF_EACH; ++i) {
                    for (u32 j = 0; j < HALF_EACH; ++j) {
                        sum[i][j] += a_tile[depth][my_row + HALF_SIDE * i] * b_tile[depth][my_column + HALF_SIDE * j];
                    }
                }
            }
            __syncthreads();
        }
        for (u32 i = 0; i < HALF_EACH; ++i) {
            for (u32 j = 0; j < HALF_EACH; ++j) {
                u32 row = first_row + my_row + HALF_SIDE * i, column = first_column + my_column + HALF_SIDE * j;
                if (row < m && column < n) {
                    u64 cell = batch * output_batch + row * output_row + column;
                    float value = alpha * sum[i][j];
                    if (beta != 0.0f) {
                        value += beta * read(output, element, cell);
                    }
                    if (bias) {
                        value += read(bias, element, column);
                    }
                    write(output, element, cell, value);
                }
            }
        }
    }
}

// As bias_backward of matmul.cu, with its blocks.
extern "C" __global__ void half_bias_backward(void *grad_bias, const void *grad_output, u32 rows, u32 width,
                                              u32 accumulate, u32 element) {
    __shared__ float part[32][33];
    u32 column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (column < width) {
        for (u32 row = threadIdx.y; row < rows; row += 32) {
            sum += read(grad_output, element, (u64)row * width + column);
        }
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        sum = accumulate ? read(grad_bias, element, column) : 0.0f;
        for (u32 i = 0; i < 32; ++i) {
            sum += part[i][threadIdx.x];
        }
        write(grad_bias, element, column, sum);
    }
}
