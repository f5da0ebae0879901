// Token, position and token-type embeddings, summed.
//
// rows = batch · sequence; row r is position r mod sequence of its sequence.

#include "index.cuh"

// output (rows, width) = token_table[tokens] + position_table[position] (+ type_table[types])
//
// tokens (rows) 64-bit, token_table (vocabulary, width), position_table (positions ≥ sequence, width),
// types (rows) 64-bit and type_table (kinds, width), or both null.
// Launched elementwise over rows · width.
extern "C" __global__ void embedding_forward(float *output, const i64 *tokens, const float *token_table,
                                             const float *position_table, const i64 *types, const float *type_table,
                                             u32 rows, u32 sequence, u32 width) {
    u64 elements = (u64)rows * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 row = i / width, column = i % width;
        float sum = token_table[(u64)tokens[row] * width + column] + position_table[row % sequence * width + column];
        if (type_table) {
            sum += type_table[(u64)types[row] * width + column];
        }
        output[i] = sum;
    }
}

// grad_table[k] += Σ grad_output[r] over the rows r with indices[r] = k
//
// grad_table (entries, width), grad_output (rows, width), indices (rows) 64-bit. One block a row: the block of an index's
// first row sums all rows with that index, in order, and the others leave. So nothing is atomic and nothing is lost, and
// entries that do not occur are not touched.
extern "C" __global__ void embedding_backward_table(float *grad_table, const float *grad_output, const i64 *indices,
                                                    u32 rows, u32 width) {
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
        float sum = 0.0f;
        for (u32 other = row; other < rows; ++other) {
            if (indices[other] == index) {
                sum += grad_output[(u64)other * width + column];
            }
        }
        grad_table[(u64)index * width + column] += sum;
    }
}

// grad_table[t] = Σ grad_output[r] over the rows r at position t, added to what is there if accumulate
//
// grad_table (positions, width), to whose entries from sequence on nothing is added; grad_output (rows, width).
// Launched elementwise over positions · width.
extern "C" __global__ void embedding_backward_position(float *grad_table, const float *grad_output, u32 rows,
                                                       u32 sequence, u32 positions, u32 width, u32 accumulate) {
    u64 elements = (u64)positions * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 position = i / width, column = i % width;
        float sum = accumulate ? grad_table[i] : 0.0f;
        if (position < sequence) {
            for (u64 row = position; row < rows; row += sequence) {
                sum += grad_output[row * width + column];
            }
        }
        grad_table[i] = sum;
    }
}
