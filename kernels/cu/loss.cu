// Cross-entropy in the two steps in which PyTorch takes it: the logarithm of the softmax, then the negative log-likelihood.
//
// logits, log_probabilities and their gradients (rows, vocabulary); targets (rows) 64-bit, where a negative target is a
// row that does not count; loss (1).

#include "index.cuh"
#include "reduce.cuh"

// log_probabilities = logits - largest - log Σ exp(logits - largest), a row. One block a row.
extern "C" __global__ void log_softmax_forward(float *log_probabilities, const float *logits, u32 vocabulary) {
    u64 row = blockIdx.x;
    const float *logit = logits + row * vocabulary;
    float largest = logit[0];
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        largest = fmaxf(largest, logit[word]);
    }
    largest = block_max(largest);
    float sum = 0.0f;
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        sum += expf(logit[word] - largest);
    }
    float normaliser = logf(block_sum(sum));
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        log_probabilities[row * vocabulary + word] = logit[word] - largest - normaliser;
    }
}

// grad_logits = grad_log_probabilities - exp(log_probabilities) · Σ grad_log_probabilities, a row. One block a row.
extern "C" __global__ void log_softmax_backward(float *grad_logits, const float *grad_log_probabilities,
                                                const float *log_probabilities, u32 vocabulary) {
    u64 row = blockIdx.x;
    const float *grad = grad_log_probabilities + row * vocabulary;
    float sum = 0.0f;
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        sum += grad[word];
    }
    sum = block_sum(sum);
    for (u32 word = threadIdx.x; word < vocabulary; word += blockDim.x) {
        u64 i = row * vocabulary + word;
        grad_logits[i] = grad[word] - expf(log_probabilities[i]) * sum;
    }
}

// loss = -scale · Σ log_probabilities[row, targets[row]] over the rows that count; scale is 1 / their number
//
// One block, so that the sum has one order.
extern "C" __global__ void nll_forward(float *loss, const float *log_probabilities, const i64 *targets, u32 rows,
                                       u32 vocabulary, float scale) {
    float sum = 0.0f;
    for (u32 row = threadIdx.x; row < rows; row += blockDim.x) {
        i64 target = targets[row];
        if (target >= 0) {
            sum += log_probabilities[(u64)row * vocabulary + target];
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        loss[0] = -scale * sum;
    }
}

// grad_log_probabilities = -scale at a row's target, 0 elsewhere. Launched elementwise over rows · vocabulary.
extern "C" __global__ void nll_backward(float *grad_log_probabilities, const i64 *targets, u32 rows, u32 vocabulary,
                                        float scale) {
    u64 elements = (u64)rows * vocabulary;
    for (u64 i = first_element(); i < elements; i += element_step()) {
        u64 row = i / vocabulary, word = i % vocabulary;
        grad_log_probabilities[i] = targets[row] == (i64)word ? -scale : 0.0f;
    }
}
