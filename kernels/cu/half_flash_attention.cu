// Attention tile by tile for elements of 16 bits; flash_attention.cuh says how. log_sums and inner are in fp32.

#include "flash_attention.cuh"

extern "C" __global__ void half_flash_forward(void *output, float *log_sums, const void *q, const void *k,
                                              const void *v, u32 heads, u32 sequence, u32 head_width, u32 causal,
                                              float scale, u32 element) {
    flash_forward_of(element, output, log_sums, q, k, v, heads, sequence, head_width, causal, scale);
}

extern "C" __global__ void half_flash_inner(float *inner, const void *output, const void *grad_output, u32 batch,
                                            u32 heads, u32 sequence, u32 head_width, u32 element) {
    flash_inner_of(element, inner, output, grad_output, batch, heads, sequence, head_width);
}

extern "C" __global__ void half_flash_backward_queries(void *grad_q, const void *grad_output, const void *q,
                                                       const void *k, const void *v, const float *log_sums,
                                                       const float *inner, u32 heads, u32 sequence, u32 head_width,
                                                       u32 causal, float scale, u32 element) {
    flash_backward_queries_of(element, grad_q, grad_output, q, k, v, log_sums, inner, heads, sequence, head_width,
                              causal, scale);
}

extern "C" __global__ void half_flash_backward_keys(void *grad_k, void *grad_v, const void *grad_output, const void *q,
                                                    const void *k, const void *v, const float *log_sums,
                                                    const float *inner, u32 heads, u32 sequence, u32 head_width,
                                                    u32 causal, float scale, u32 element) {
    flash_backward_keys_of(element, grad_k, grad_v, grad_output, q, k, v, log_sums, inner, heads, sequence, head_width,
                           causal, scale);
}
