// Attention tile by tile in fp32; flash_attention.cuh says how, and what each kernel computes of which shapes.

#include "flash_attention.cuh"

extern "C" __global__ void flash_forward(float *output, float *log_sums, const float *q, const float *k, const float *v,
                                         u32 heads, u32 sequence, u32 head_width, u32 causal, float scale) {
    flash_forward_of(ELEMENT_FP32, output, log_sums, q, k, v, heads, sequence, head_width, causal, scale);
}

extern "C" __global__ void flash_inner(float *inner, const float *output, const float *grad_output, u32 batch,
                                       u32 heads, u32 sequence, u32 head_width) {
    flash_inner_of(ELEMENT_FP32, inner, output, grad_output, batch, heads, sequence, head_width);
}

extern "C" __global__ void flash_backward_queries(float *grad_q, const float *grad_output, const float *q,
                                                  const float *k, const float *v, const float *log_sums,
                                                  const float *inner, u32 heads, u32 sequence, u32 head_width,
                                                  u32 causal, float scale) {
    flash_backward_queries_of(ELEMENT_FP32, grad_q, grad_output, q, k, v, log_sums, inner, heads, sequence, head_width,
                              causal, scale);
}

extern "C" __global__ void flash_backward_keys(float *grad_k, float *grad_v, const float *grad_output, const float *q,
                                               const float *k, const float *v, const float *log_sums,
                                               const float *inner, u32 heads, u32 sequence, u32 head_width, u32 causal,
                                               float scale) {
    flash_backward_keys_of(ELEMENT_FP32, grad_k, grad_v, grad_output, q, k, v, log_sums, inner, heads, sequence,
                           head_width, causal, scale);
}
