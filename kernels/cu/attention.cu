// What attention does besides its matrix products: heads apart and together again, and the softmax of the scores.
//
// batch B, sequence T, heads H, width of a head D; the model's width is H·D.

#include "index.cuh"
#include "reduce.cuh"

// q, k, v (B, H, T, D) from qkv (B, T, 3, H, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void split_qkv(float *q, float *k, float *v, const float *qkv, u32 batch, u32 sequence, u32 heads,
                                     u32 head_width) {
    u64 width = (u64)heads * head_width;
    u64 elements = (u64)batch * sequence * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        const float *source = qkv + (b * sequence + t) * 3 * width + h * head_width + d;
        q[i] = source[0];
        k[i] = source[width];
        v[i] = source[2 * width];
    }
}

// grad_qkv (B, T, 3, H, D) from grad_q, grad_k, grad_v (B, H, T, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void split_qkv_backward(float *grad_qkv, const float *grad_q, const float *grad_k,
                                              const float *grad_v, u32 batch, u32 sequence, u32 heads, u32 head_width) {
    u64 width = (u64)heads * head_width;
    u64 elements = (u64)batch * sequence * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        float *target = grad_qkv + (b * sequence + t) * 3 * width + h * head_width + d;
        target[0] = grad_q[i];
        target[width] = grad_k[i];
        target[2 * width] = grad_v[i];
    }
}

// output (B, T, H, D) from input (B, H, T, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void merge_heads(float *output, const float *input, u32 batch, u32 sequence, u32 heads,
                                       u32 head_width) {
    u64 elements = (u64)batch * sequence * heads * head_width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        output[((b * sequence + t) * heads + h) * head_width + d] = input[i];
    }
}

// grad_input (B, H, T, D) from grad_output (B, T, H, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void merge_heads_backward(float *grad_input, const float *grad_output, u32 batch, u32 sequence,
                                                u32 heads, u32 head_width) {
    u64 elements = (u64)batch * sequence * heads * head_width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        grad_input[i] = grad_output[((b * sequence + t) * heads + h) * head_width + d];
    }
}

// probabilities (B, H, T, T) = softmax of scores (B, H, T, T) over the last axis
//
// With causal not 0, query t sees the keys 0 to t only, and the probabilities of later keys are 0. One block a row; the
// rows are B·H·T.
extern "C" __global__ void softmax_forward(float *probabilities, const float *scores, u32 sequence, u32 causal) {
    u64 row = blockIdx.x;
    const float *score = scores + row * sequence;
    u32 keys = causal ? (u32)(row % sequence) + 1 : sequence;
    float largest = score[0];
    for (u32 key = threadIdx.x; key < keys; key += blockDim.x) {
        largest = fmaxf(largest, score[key]);
    }
    largest = block_max(largest);
    float sum = 0.0f;
    for (u32 key = threadIdx.x; key < keys; key += blockDim.x) {
        sum += expf(score[key] - largest);
    }
    float scale = 1.0f / block_sum(sum);
    for (u32 key = threadIdx.x; key < sequence; key += blockDim.x) {
        probabilities[row * sequence + key] = key < keys ? expf(score[key] - largest) * scale : 0.0f;
    }
}

// grad_scores = p · (grad_probabilities - Σ p · grad_probabilities), the sum over the row; all (B, H, T, T)
//
// A masked key has p = 0, and so its score has gradient 0. One block a row.
extern "C" __global__ void softmax_backward(float *grad_scores, const float *grad_probabilities,
                                            const float *probabilities, u32 sequence) {
    u64 row = blockIdx.x;
    const float *p = probabilities + row * sequence;
    const float *dp = grad_probabilities + row * sequence;
    float sum = 0.0f;
    for (u32 key = threadIdx.x; key < sequence; key += blockDim.x) {
        sum += p[key] * dp[key];
    }
    sum = block_sum(sum);
    for (u32 key = threadIdx.x; key < sequence; key += blockDim.x) {
        grad_scores[row * sequence + key] = p[key] * (dp[key] - sum);
    }
}
