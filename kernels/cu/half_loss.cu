// The log-softmax of loss.cu where logits have 16 bits. Log-probabilities and their gradients are in fp32 as always: a row's
// logarithm near -11 has steps of 2⁻⁴ in bf16, which no loss can bear.

#include "half.cuh"
#include "reduce.cuh"

// As log_softmax_forward of loss.cu. One block a row.
extern "C" __global__ void half_log_softmax_forward(float *log_probabilities, const void *logits, u32 vocabulary,
                                                    u32 element) {
    u64 first = (u64)blockIdx.x * vocabulary;
    float largest = read(logits, element, first);
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        largest = fmaxf(largest, read(logits, element, first + word));
    }
    largest = block_max(largest);
    float sum = 0.0f;
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        sum += expf(read(logits, element, first + word) - largest);
    }
    float normaliser = logf(block_sum(sum));
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        log_probabilities[first + word] = read(logits, element, first + word) - largest - normaliser;
    }
}

// As log_softmax_backward of loss.cu. One block a row.
extern "C" __global__ void half_log_softmax_backward(void *grad_logits, const float *grad_log_probabilities,
                                                     const float *log_probabilities, u32 vocabulary, u32 element) {
    u64 first = (u64)blockIdx.x * vocabulary;
    float sum = 0.0f;
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        sum += grad_log_probabilities[first + word];
    }
    sum = block_sum(sum);
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        u64 i = first + word;
        write(grad_logits, element, i, grad_log_probabilities[i] - expf(log_probabilities[i]) * sum);
    }
}
