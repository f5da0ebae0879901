// Attention tile by tile (Dao et al. 2022): context = softmax(scale · q · kᵀ) · v without the (T, T) matrix in memory.
//
// batch B, sequence T, heads H, width of a head D, at most 128. A block holds 16 queries against 16 keys at a time; thread
// (row, column) of its 16 × 16 owns the score of one query and one key, and of its row's results the columns column,
// column + 16, … Scores of keys that a query does not see, or that are beyond T, count as -∞. With causal not 0, query t sees the
// keys 0 to t.
//
// The softmax's sum grows along the keys with the largest score so far taken out; when a larger one comes, sum and result are
// scaled down. What backward needs of it is one number a row, the logarithm of the sum of the exponentials of its scores.
//
// Written once for elements of 32 and of 16 bits, which are widened when they are read and rounded when they are written: scores,
// softmax and sums are in fp32, and so are log_sums and inner.

#pragma once

#include "half.cuh"

#define FLASH_TILE 16
#define FLASH_WIDEST 128
#define FLASH_PARTS (FLASH_WIDEST / FLASH_TILE)

// Stands for -∞: below any score.
#define FLASH_LEAST -3.0e38f

// 16 rows of one head, zero beyond T. One more column keeps threads of a column in different banks.
typedef float FlashRows[FLASH_TILE][FLASH_WIDEST + 1];

// Rows first, first + 1, … of a head that begins at `head`, and whose rows are `step` elements apart.
__device__ inline void flash_load(FlashRows rows, const void *array, u32 element, u64 head, u64 step, u32 first,
                                  u32 sequence, u32 head_width) {
    for (u32 i = threadIdx.x; i < FLASH_TILE * head_width; i += blockDim.x) {
        u32 row = i / head_width, d = i % head_width;
        rows[row][d] = first + row < sequence ? read(array, element, head + (first + row) * step + d) : 0.0f;
    }
}

__device__ inline float flash_dot(const float *a, const float *b, u32 count) {
    float sum = 0.0f;
    for (u32 d = 0; d < count; ++d) {
        sum += a[d] * b[d];
    }
    return sum;
}

__device__ inline bool flash_is_seen(u32 query, u32 key, u32 sequence, u32 causal) {
    return query < sequence && key < sequence && (!causal || key <= query);
}

// output (B, T, H, D) and log_sums (B, H, T) from q, k, v (B, H, T, D). One block of 256 threads for 16 queries of a head;
// blocks are B·H·⌈T/16⌉.
__device__ inline void flash_forward_of(u32 element, void *output, float *log_sums, const void *q, const void *k,
                                        const void *v, u32 heads, u32 sequence, u32 head_width, u32 causal, float scale) {
    __shared__ FlashRows of_q, of_k, of_v;
    __shared__ float weights[FLASH_TILE][FLASH_TILE + 1];
    u32 tiles = (sequence + FLASH_TILE - 1) / FLASH_TILE;
    u64 head = blockIdx.x / tiles;
    u32 first_query = blockIdx.x % tiles * FLASH_TILE;
    u32 row = threadIdx.x / FLASH_TILE, column = threadIdx.x % FLASH_TILE;
    u32 query = first_query + row;
    u64 offset = head * sequence * head_width;
    flash_load(of_q, q, element, offset, head_width, first_query, sequence, head_width);

    float largest = FLASH_LEAST, sum = 0.0f, result[FLASH_PARTS];
    for (u32 part = 0; part < FLASH_PARTS; ++part) {
        result[part] = 0.0f;
    }
    u32 end = causal && first_query + FLASH_TILE < sequence ? first_query + FLASH_TILE : sequence;
    for (u32 first_key = 0; first_key < end; first_key += FLASH_TILE) {
        __syncthreads();
        flash_load(of_k, k, element, offset, head_width, first_key, sequence, head_width);
        flash_load(of_v, v, element, offset, head_width, first_key, sequence, head_width);
        __syncthreads();
        bool seen = flash_is_seen(query, first_key + column, sequence, causal);
        weights[row][column] = seen ? scale * flash_dot(of_q[row], of_k[column], head_width) : FLASH_LEAST;
        __syncthreads();
        float before = largest;
        for (u32 key = 0; key < FLASH_TILE; ++key) {
            largest = fmaxf(largest, weights[row][key]);
        }
        __syncthreads();
        // A row beyond T sees no key.
        weights[row][column] = seen ? expf(weights[row][column] - largest) : 0.0f;
        __syncthreads();
        float shrink = expf(before - largest);
        sum *= shrink;
        for (u32 key = 0; key < FLASH_TILE; ++key) {
            sum += weights[row][key];
        }
        for (u32 part = 0, d = column; d < head_width; ++part, d += FLASH_TILE) {
            result[part] *= shrink;
            for (u32 key = 0; key < FLASH_TILE; ++key) {
                result[part] += weights[row][key] * of_v[key][d];
            }
        }
    }
    if (query < sequence) {
        u64 b = head / heads, h = head % heads;
        u64 target = ((b * sequence + query) * heads + h) * head_width;
        for (u32 part = 0, d = column; d < head_width; ++part, d += FLASH_TILE) {
            write(output, element, target + d, result[part] / sum);
        }
        if (column == 0) {
            log_sums[head * sequence + query] = largest + logf(sum);
        }
    }
}

// inner (B, H, T) = the inner product of each row of output and grad_output, both (B, T, H, D). It is Σ p · dp of a row of the
// matrix that is not there. Launched elementwise over B·H·T.
__device__ inline void flash_inner_of(u32 element, float *inner, const void *output, const void *grad_output, u32 batch,
                                      u32 heads, u32 sequence, u32 head_width) {
    u64 elements = (u64)batch * heads * sequence;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 t = i % sequence, h = i / sequence % heads, b = i / sequence / heads;
        u64 place = ((b * sequence + t) * heads + h) * head_width;
        float sum = 0.0f;
        for (u32 d = 0; d < head_width; ++d) {
            sum += read(output, element, place + d) * read(grad_output, element, place + d);
        }
        inner[i] = sum;
    }
}

// grad_q (B, H, T, D) from grad_output (B, T, H, D), q, k, v (B, H, T, D), log_sums and inner (B, H, T); launched as forward.
//
// p = exp(scale · q · k - log sum); dp = grad_output · v; ds = p · (dp - inner); grad_q = scale · Σ ds · k.
__device__ inline void flash_backward_queries_of(u32 element, void *grad_q, const void *grad_output, const void *q,
                                                 const void *k, const void *v, const float *log_sums, const float *inner,
                                                 u32 heads, u32 sequence, u32 head_width, u32 causal, float scale) {
    __shared__ FlashRows of_q, of_grad, of_k, of_v;
    __shared__ float grad_scores[FLASH_TILE][FLASH_TILE + 1];
    u32 tiles = (sequence + FLASH_TILE - 1) / FLASH_TILE;
    u64 head = blockIdx.x / tiles;
    u32 first_query = blockIdx.x % tiles * FLASH_TILE;
    u32 row = threadIdx.x / FLASH_TILE, column = threadIdx.x % FLASH_TILE;
    u32 query = first_query + row;
    u64 offset = head * sequence * head_width, width = (u64)heads * head_width;
    u64 of_head = head / heads * sequence * width + head % heads * head_width;
    flash_load(of_q, q, element, offset, head_width, first_query, sequence, head_width);
    flash_load(of_grad, grad_output, element, of_head, width, first_query, sequence, head_width);

    float result[FLASH_PARTS];
    for (u32 part = 0; part < FLASH_PARTS; ++part) {
        result[part] = 0.0f;
    }
    u32 end = causal && first_query + FLASH_TILE < sequence ? first_query + FLASH_TILE : sequence;
    for (u32 first_key = 0; first_key < end; first_key += FLASH_TILE) {
        __syncthreads();
        flash_load(of_k, k, element, offset, head_width, first_key, sequence, head_width);
        flash_load(of_v, v, element, offset, head_width, first_key, sequence, head_width);
        __syncthreads();
        float grad_score = 0.0f;
        if (flash_is_seen(query, first_key + column, sequence, causal)) {
            u64 place = head * sequence + query;
            float p = expf(scale * flash_dot(of_q[row], of_k[column], head_width) - log_sums[place]);
            grad_score = p * (flash_dot(of_grad[row], of_v[column], head_width) - inner[place]);
        }
        grad_scores[row][column] = grad_score;
        __syncthreads();
        for (u32 part = 0, d = column; d < head_width; ++part, d += FLASH_TILE) {
            for (u32 key = 0; key < FLASH_TILE; ++key) {
                result[part] += grad_scores[row][key] * of_k[key][d];
            }
        }
    }
    if (query < sequence) {
        for (u32 part = 0, d = column; d < head_width; ++part, d += FLASH_TILE) {
            write(grad_q, element, offset + (u64)query * head_width + d, scale * result[part]);
        }
    }
}

// grad_k and grad_v (B, H, T, D), as above, with the parts exchanged: a block has 16 keys, its rows, and goes along the
// queries. grad_k = scale · Σ ds · q; grad_v = Σ p · grad_output.
__device__ inline void flash_backward_keys_of(u32 element, void *grad_k, void *grad_v, const void *grad_output,
                                              const void *q, const void *k, const void *v, const float *log_sums,
                                              const float *inner, u32 heads, u32 sequence, u32 head_width, u32 causal,
                                              float scale) {
    __shared__ FlashRows of_q, of_grad, of_k, of_v;
    __shared__ float grad_scores[FLASH_TILE][FLASH_TILE + 1], probabilities[FLASH_TILE][FLASH_TILE + 1];
    u32 tiles = (sequence + FLASH_TILE - 1) / FLASH_TILE;
    u64 head = blockIdx.x / tiles;
    u32 first_key = blockIdx.x % tiles * FLASH_TILE;
    u32 row = threadIdx.x / FLASH_TILE, column = threadIdx.x % FLASH_TILE;
    u32 key = first_key + row;
    u64 offset = head * sequence * head_width, width = (u64)heads * head_width;
    u64 of_head = head / heads * sequence * width + head % heads * head_width;
    flash_load(of_k, k, element, offset, head_width, first_key, sequence, head_width);
    flash_load(of_v, v, element, offset, head_width, first_key, sequence, head_width);

    float by_k[FLASH_PARTS], by_v[FLASH_PARTS];
    for (u32 part = 0; part < FLASH_PARTS; ++part) {
        by_k[part] = by_v[part] = 0.0f;
    }
    for (u32 first_query = causal ? first_key : 0; first_query < sequence; first_query += FLASH_TILE) {
        __syncthreads();
        flash_load(of_q, q, element, offset, head_width, first_query, sequence, head_width);
        flash_load(of_grad, grad_output, element, of_head, width, first_query, sequence, head_width);
        __syncthreads();
        float p = 0.0f, grad_score = 0.0f;
        if (flash_is_seen(first_query + column, key, sequence, causal)) {
            u64 place = head * sequence + first_query + column;
            p = expf(scale * flash_dot(of_q[column], of_k[row], head_width) - log_sums[place]);
            grad_score = p * (flash_dot(of_grad[column], of_v[row], head_width) - inner[place]);
        }
        probabilities[row][column] = p;
        grad_scores[row][column] = grad_score;
        __syncthreads();
        for (u32 part = 0, d = column; d < head_width; ++part, d += FLASH_TILE) {
            for (u32 query = 0; query < FLASH_TILE; ++query) {
                by_k[part] += grad_scores[row][query] * of_q[query][d];
                by_v[part] += probabilities[row][query] * of_grad[query][d];
            }
        }
    }
    if (key < sequence) {
        for (u32 part = 0, d = column; d < head_width; ++part, d += FLASH_TILE) {
            u64 place = offset + (u64)key * head_width + d;
            write(grad_k, element, place, scale * by_k[part]);
            write(grad_v, element, place, by_v[part]);
        }
    }
}
