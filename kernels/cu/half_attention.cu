// attention.cu for elements of 16 bits. batch B, sequence T, heads H, width of a head D; the model's width is H·D.
//
// What only moves elements does not ask which kind they are.

#include "half.cuh"
#include "reduce.cuh"

// q, k, v (B, H, T, D) from qkv (B, T, 3, H, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void half_split_qkv(void *q, void *k, void *v, const void *qkv, u32 batch, u32 sequence, u32 heads,
                                          u32 head_width) {
    u64 width = (u64)heads * head_width;
    u64 elements = (u64)batch * sequence * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        const u16 *source = (const u16 *)qkv + (b * sequence + t) * 3 * width + h * head_width + d;
        ((u16 *)q)[i] = source[0];
        ((u16 *)k)[i] = source[width];
        ((u16 *)v)[i] = source[2 * width];
    }
}

// grad_qkv (B, T, 3, H, D) from grad_q, grad_k, grad_v (B, H, T, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void half_split_qkv_backward(void *grad_qkv, const void *grad_q, const void *grad_k,
                                                   const void *grad_v, u32 batch, u32 sequence, u32 heads,
                                                   u32 head_width) {
    u64 width = (u64)heads * head_width;
    u64 elements = (u64)batch * sequence * width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        u16 *target = (u16 *)grad_qkv + (b * sequence + t) * 3 * width + h * head_width + d;
        target[0] = ((const u16 *)grad_q)[i];
        target[width] = ((const u16 *)grad_k)[i];
        target[2 * width] = ((const u16 *)grad_v)[i];
    }
}

// output (B, T, H, D) from input (B, H, T, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void half_merge_heads(void *output, const void *input, u32 batch, u32 sequence, u32 heads,
                                            u32 head_width) {
    u64 elements = (u64)batch * sequence * heads * head_width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        ((u16 *)output)[((b * sequence + t) * heads + h) * head_width + d] = ((const u16 *)input)[i];
    }
}

// grad_input (B, H, T, D) from grad_output (B, T, H, D). Launched elementwise over B·H·T·D.
extern "C" __global__ void half_merge_heads_backward(void *grad_input, const void *grad_output, u32 batch, u32 sequence,
                                                     u32 heads, u32 head_width) {
    u64 elements = (u64)batch * sequence * heads * head_width;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 d = i % head_width, t = i / head_width % sequence;
        u64 h = i / head_width / sequence % heads, b = i / head_width / sequence / heads;
        ((u16 *)grad_input)[i] = ((const u16 *)grad_output)[((b * sequence + t) * heads + h) * head_width + d];
    }
}

// As softmax_forward of attention.cu; the scores are of one kind, the probabilities of another or the same
extern "C" __global__ void half_softmax_forward(void *probabilities, const void *scores, u32 sequence, u32 causal,
                                                u32 probabilities_element, u32 scores_element) {
    u64 row = blockIdx.x, first = row * sequence;
    u32 keys = causal ? (u32)(row % sequence) + 1 : sequence;
    float largest = read(scores, scores_element, first);
    for (u32 key = threadIdx.x; key < keys; key += blockDim.x) {
        largest = fmaxf(largest, read(scores, scores_element, first + key));
    }
    largest = block_max(largest);
    float sum = 0.0f;
    for (u32 key = threadIdx.x; key < keys; key += blockDim.x) {
        sum += expf(read(scores, scores_element, first + key) - largest);
    }
    float scale = 1.0f / block_sum(sum);
    for (u32 key = threadIdx.x; key < sequence; key += blockDim.x) {
        float score = key < keys ? read(scores, scores_element, first + key) : 0.0f;
        write(probabilities, probabilities_element, first + key, key < keys ? expf(score - largest) * scale : 0.0f);
    }
}

// As softmax_backward of attention.cu; probabilities and their gradients are of one kind
extern "C" __global__ void half_softmax_backward(void *grad_scores, const void *grad_probabilities,
                                                 const void *probabilities, u32 sequence, u32 scores_element,
                                                 u32 probabilities_element) {
    u64 first = (u64)blockIdx.x * sequence;
    u32 kind = probabilities_element;
    float sum = 0.0f;
    for (u32 key = threadIdx.x; key < sequence; key += blockDim.x) {
        sum += read(probabilities, kind, first + key) * read(grad_probabilities, kind, first + key);
    }
    sum = block_sum(sum);
    for (u32 key = threadIdx.x; key < sequence; key += blockDim.x) {
        float p = read(probabilities, kind, first + key), dp = read(grad_probabilities, kind, first + key);
        write(grad_scores, scores_element, first + key, p * (dp - sum));
    }
}
