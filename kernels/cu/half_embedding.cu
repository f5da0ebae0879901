// embedding.cu for elements of 16 bits: sums are in fp32 and rounded once.

#include "half.cuh"

// As embedding_forward of embedding.cu. Launched elementwise over rows · width.
extern "C" __global__ void half_embedding_forward(void *output, const i64 *tokens, const void *token_table,
                                                  const void *position_table, const i64 *types, const void *type_table,
                                                  u32 rows, u32 sequence, u32 width, u32 element) {
    u64 elements = (u64)rows * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 row = i / width, column = i % width;
        float sum = read(token_table, element, (u64)tokens[row] * width + column) +
                    read(position_table, element, row % sequence * width + column);
        if (type_table) {
            sum += read(type_table, element, (u64)types[row] * width + column);
        }
        write(output, element, i, sum);
    }
}

// As embedding_backward_table of embedding.cu. One block a row.
extern "C" __global__ void half_embedding_backward_table(void *grad_table, const void *grad_output, const i64 *indices,
                                                         u32 rows, u32 width, u32 element) {
    u32 row = blockIdx.x;
    i64 index = indices[row];
    int seen_before = 0;
    for (u32 earlier = threadIdx.x; earlier < row; earlier += blockDim.x) {
        seen_before |= indices[earlier] == index;
    }
    if (__syncthreads_or(seen_before)) {
        return;
    }
    for (u32 column = threadIdx.x; column < width; column += blockDim.x) {
        u64 cell = (u64)index * width + column;
        float sum = read(grad_table, element, cell);
        for (u32 other = row; other < rows; ++other) {
            if (indices[other] == index) {
                sum += read(grad_output, element, (u64)other * width + column);
            }
        }
        write(grad_table, element, cell, sum);
    }
}

// As embedding_backward_position of embedding.cu. Launched elementwise over positions · width.
extern "C" __global__ void half_embedding_backward_position(void *grad_table, const void *grad_output, u32 rows,
                                                            u32 sequence, u32 positions, u32 width, u32 accumulate,
                                                            u32 element) {
    u64 elements = (u64)positions * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 position = i / width, column = i % width;
        float sum = accumulate ? read(grad_table, element, i) : 0.0f;
        if (position < sequence) {
            for (u64 row = position; row < rows; row += sequence) {
                sum += read(grad_output, element, row * width + column);
            }
        }
        write(grad_table, element, i, sum);
    }
}
