// Matrix products, and the gradient of the bias that follows one.

#include "index.cuh"

#define TILE 64   // rows and columns of the output that a block computes
#define DEPTH 16  // columns of a and rows of b that it holds at a time
#define THREADS 256
#define SIDE 16   // threads lie SIDE × SIDE over the tile, each with TILE / SIDE rows and columns
#define EACH (TILE / SIDE)

// output[z] (m, n) = alpha · a[z] (m, k) · b[z] (k, n) + beta · output[z] + bias, for z < batches
//
// bias (n) or null. Element (i, j) of a[z] lies at a[z·a_batch + i·a_row + j·a_column], and so for b, so that one kernel
// serves transposed operands; rows of the output are output_row apart and their elements adjacent. With beta = 0 the output
// is not read. m, n and k are below 2³¹.
//
// Grid (⌈m / 64⌉, ⌈n / 64⌉, batches, at most 65,535: a block takes every gridDim.z-th batch), 256 threads.
extern "C" __global__ void __launch_bounds__(THREADS)
    matmul(float *output, const float *a, const float *b, const float *bias, u32 m, u32 n, u32 k, u32 batches, u64 a_row,
           u64 a_column, u64 a_batch, u64 b_row, u64 b_column, u64 b_batch, u64 output_row, u64 output_batch, float alpha,
           float beta) {
    __shared__ float a_tile[DEPTH][TILE + 1];
    __shared__ float b_tile[DEPTH][TILE + 1];
    u32 first_row = blockIdx.x * TILE, first_column = blockIdx.y * TILE;
    u32 my_row = threadIdx.x / SIDE, my_column = threadIdx.x % SIDE;

    for (u32 batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        const float *left = a + batch * a_batch;
        const float *right = b + batch * b_batch;
        float sum[EACH][EACH] = {};
        for (u32 first_depth = 0; first_depth < k; first_depth += DEPTH) {
            // Neighbouring threads load neighbouring addresses, whichever way an operand lies.
            for (u32 i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
                u32 row = a_column == 1 ? i / DEPTH : i % TILE;
                u32 depth = a_column == 1 ? i % DEPTH : i / TILE;
                bool inside = first_row + row < m && first_depth + depth < k;
                a_tile[depth][row] =
                    inside ? left[(first_row + row) * a_row + (first_depth + depth) * a_column] : 0.0f;
            }
            for (u32 i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
                u32 column = b_column == 1 ? i % TILE : i / DEPTH;
                u32 depth = b_column == 1 ? i / TILE : i % DEPTH;
                bool inside = first_column + column < n && first_depth + depth < k;
                b_tile[depth][column] =
                    inside ? right[(first_depth + depth) * b_row + (first_column + column) * b_column] : 0.0f;
            }
            __syncthreads();
            for (u32 depth = 0; depth < DEPTH; ++depth) {
                for (u32 i = 0; i < EACH; ++i) {
                    for (u32 j = 0; j < EACH; ++j) {
                        sum[i][j] += a_tile[depth][my_row + SIDE * i] * b_tile[depth][my_column + SIDE * j];
                    }
                }
            }
            __syncthreads();
        }
        for (u32 i = 0; i < EACH; ++i) {
            for (u32 j = 0; j < EACH; ++j) {
                u32 row = first_row + my_row + SIDE * i, column = first_column + my_column + SIDE * j;
                if (row < m && column < n) {
                    float *cell = output + batch * output_batch + row * output_row + column;
                    float value = alpha * sum[i][j];
                    if (beta != 0.0f) {
                        value += beta * *cell;
                    }
                    if (bias) {
                        value += bias[column];
                    }
                    *cell = value;
                }
            }
        }
    }
}

// grad_bias (width) = Σ over rows of grad_output (rows, width); added to what is there when accumulate is not 0
//
// One block of 32 × 32 threads for 32 columns: threadIdx.x is the column, threadIdx.y takes every 32nd row.
extern "C" __global__ void bias_backward(float *grad_bias, const float *grad_output, u32 rows, u32 width,
                                         u32 accumulate) {
    __shared__ float part[32][33];
    u32 column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (column < width) {
        for (u32 row = threadIdx.y; row < rows; row += 32) {
            sum += grad_output[(u64)row * width + column];
        }
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        sum = accumulate ? grad_bias[column] : 0.0f;
        for (u32 i = 0; i < 32; ++i) {
            sum += part[i][threadIdx.x];
        }
        grad_bias[column] = sum;
    }
}
