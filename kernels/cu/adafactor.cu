// Adafactor (Shazeer and Stern 2018) without a first moment: of a matrix's second moment only the means of its rows and of
// its columns are kept, of a vector's all of it.
//
// weight and gradient (rows, columns), row_state (rows), column_state (columns), partials (rows, 2), scalars (2).
//
//   row ← row + blend · (mean of g² over a row - row)          column likewise
//   v = row · column / max(mean of row, tiny)          u = g / √max(v, tiny²)
//   w ← w - max(floor, RMS(w)) · rate / max(1, RMS(u)) · u
//
// blend is step^-0.8, and rate the smaller of the learning rate and 1/√step; RMS(u) is clipped at 1.

#include "index.cuh"
#include "reduce.cuh"

// The smallest mean and root that are divided by: the distance from 1 to the next fp32 number.
#define TINY 1.1920929e-7f

__device__ inline float scaled(float gradient, float second_moment) {
    return gradient / sqrtf(fmaxf(second_moment, TINY * TINY));
}

// row_state; one block a row.
extern "C" __global__ void adafactor_rows(float *row_state, const float *gradient, u32 columns, float blend) {
    u64 row = blockIdx.x;
    const float *g = gradient + row * columns;
    float sum = 0.0f;
    for (u32 column = threadIdx.x; column < columns; column += blockDim.x) {
        sum += g[column] * g[column];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        row_state[row] += blend * (sum / columns - row_state[row]);
    }
}

// column_state; one block of (32, 32) for 32 columns.
extern "C" __global__ void adafactor_columns(float *column_state, const float *gradient, u32 rows, u32 columns,
                                             float blend) {
    __shared__ float part[32][33];
    u32 column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (column < columns) {
        for (u32 row = threadIdx.y; row < rows; row += 32) {
            float g = gradient[(u64)row * columns + column];
            sum += g * g;
        }
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        sum = 0.0f;
        for (u32 i = 0; i < 32; ++i) {
            sum += part[i][threadIdx.x];
        }
        column_state[column] += blend * (sum / rows - column_state[column]);
    }
}

// scalars[0] = max(mean of row_state, tiny). One block, so that the sum has one order.
extern "C" __global__ void adafactor_mean(float *scalars, const float *row_state, u32 rows) {
    float sum = 0.0f;
    for (u32 row = threadIdx.x; row < rows; row += blockDim.x) {
        sum += row_state[row];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        scalars[0] = fmaxf(sum / rows, TINY);
    }
}

// partials[row] = Σ u², Σ w² over a row; mean is scalars[0]. One block a row.
extern "C" __global__ void adafactor_partials(float *partials, const float *weight, const float *gradient,
                                              const float *row_state, const float *column_state, const float *scalars,
                                              u32 columns) {
    u64 row = blockIdx.x;
    float of_row = row_state[row] / scalars[0];
    float updates = 0.0f, weights = 0.0f;
    for (u32 column = threadIdx.x; column < columns; column += blockDim.x) {
        u64 i = row * columns + column;
        float u = scaled(gradient[i], of_row * column_state[column]), w = weight[i];
        updates += u * u;
        weights += w * w;
    }
    updates = block_sum(updates);
    weights = block_sum(weights);
    if (threadIdx.x == 0) {
        partials[2 * row] = updates;
        partials[2 * row + 1] = weights;
    }
}

// scalars[1] = max(floor, RMS(w)) · rate / max(1, RMS(u)), from the partials of all rows. One block.
extern "C" __global__ void adafactor_step(float *scalars, const float *partials, u32 rows, u64 elements, float rate,
                                          float floor) {
    float updates = 0.0f, weights = 0.0f;
    for (u32 row = threadIdx.x; row < rows; row += blockDim.x) {
        updates += partials[2 * (u64)row];
        weights += partials[2 * (u64)row + 1];
    }
    updates = block_sum(updates);
    weights = block_sum(weights);
    if (threadIdx.x == 0) {
        float size = fmaxf(floor, sqrtf(weights / elements));
        scalars[1] = size * rate / fmaxf(1.0f, sqrtf(updates / elements));
    }
}

// w ← w - scalars[1] · u. Launched elementwise over rows · columns.
extern "C" __global__ void adafactor_apply(float *weight, const float *gradient, const float *row_state,
                                           const float *column_state, const float *scalars, u32 rows, u32 columns) {
    u64 elements = (u64)rows * columns;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 row = i / columns, column = i % columns;
        weight[i] -= scalars[1] * scaled(gradient[i], row_state[row] / scalars[0] * column_state[column]);
    }
}

// The whole update of a vector: weight, second_moment and gradient (elements). One block, so that its sums have one order.
extern "C" __global__ void adafactor_vector(float *weight, float *second_moment, const float *gradient, u32 elements,
                                            float blend, float rate, float floor) {
    float updates = 0.0f, weights = 0.0f;
    for (u32 i = threadIdx.x; i < elements; i += blockDim.x) {
        float g = gradient[i], w = weight[i];
        float v = second_moment[i] + blend * (g * g - second_moment[i]);
        second_moment[i] = v;
        float u = scaled(g, v);
        updates += u * u;
        weights += w * w;
    }
    updates = block_sum(updates);
    weights = block_sum(weights);
    float step = fmaxf(floor, sqrtf(weights / elements)) * rate / fmaxf(1.0f, sqrtf(updates / elements));
    for (u32 i = threadIdx.x; i < elements; i += blockDim.x) {
        weight[i] -= step * scaled(gradient[i], second_moment[i]);
    }
}
