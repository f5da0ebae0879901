// Runs the kernels' CUDA sources on the CPU: every thread of a block is a fiber, blocks run one after another.
//
// For tests only. It proves the sources' logic (indices, edges, reductions, barriers) where there is no GPU, and neither
// what a compiler for GPUs makes of them nor races between barriers: fibers run in order.
//
// A barrier is a round: each fiber runs until it comes to one, then the next fiber. A block in which some threads come to a
// barrier and others have ended is refused, since a GPU would hang or do worse.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <ucontext.h>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)

struct Position {
    unsigned x, y, z;
};
static Position blockIdx, threadIdx, blockDim, gridDim;

static const size_t STACK_BYTES = 64 * 1024;

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    Position position;
    bool ended;
    float shuffled;
    int vote;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static unsigned current;
static unsigned threads;
static std::function<void()> body;

static void enter() {
    body();
    fibers[current].ended = true;
}

static void __syncthreads() { swapcontext(&fibers[current].context, &scheduler); }

static int __syncthreads_or(int vote) {
    fibers[current].vote = vote;
    __syncthreads();
    int any = 0;
    for (unsigned i = 0; i < threads; ++i) {
        any |= fibers[i].vote;
    }
    __syncthreads();
    return any;
}

// The kernels shuffle with whole blocks only, so a round of the block serves as one of the warp.
static float __shfl_xor_sync(unsigned, float value, int offset) {
    fibers[current].shuffled = value;
    __syncthreads();
    float other = fibers[current ^ offset].shuffled;
    __syncthreads();
    return other;
}

static float cospif(float x) { return std::cos(M_PI * (double)x); }
static float sinpif(float x) { return std::sin(M_PI * (double)x); }
static unsigned __float_as_uint(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static float __uint_as_float(unsigned bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

#include "adafactor.cu"
#include "adamw.cu"
#include "adamw8bit.cu"
#include "adamw_bf16.cu"
#include "adamw_foreach.cu"
#include "attention.cu"
#include "batchnorm.cu"
#include "compress.cu"
#include "convolution.cu"
#include "elementwise.cu"
#include "embedding.cu"
#include "fill.cu"
#include "flash_attention.cu"
#include "half_attention.cu"
#include "half_batchnorm.cu"
#include "half_compress.cu"
#include "half_convolution.cu"
#include "half_elementwise.cu"
#include "half_embedding.cu"
#include "half_flash_attention.cu"
#include "half_layernorm.cu"
#include "half_loss.cu"
#include "half_matmul.cu"
#include "half_pooling.cu"
#include "half_relu.cu"
#include "layernorm.cu"
#include "loss.cu"
#include "loss_scale.cu"
#include "matmul.cu"
#include "momentum.cu"
#include "pooling.cu"
#include "relu.cu"
#include "round_bf16.cu"
#include "sgd.cu"

// One block; false when its threads part at a barrier.
static bool run_block() {
    for (unsigned i = 0; i < threads; ++i) {
        Fiber &fiber = fibers[i];
        fiber.position = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        fiber.ended = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = STACK_BYTES;
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, enter, 0);
    }
    while (true) {
        unsigned ended = 0;
        for (current = 0; current < threads; ++current) {
            threadIdx = fibers[current].position;
            swapcontext(&scheduler, &fibers[current].context);
            ended += fibers[current].ended;
        }
        if (ended != 0) {
            return ended == threads;
        }
    }
}

template <class T> static T argument(const uint64_t *cell) {
    T value;
    std::memcpy(&value, cell, sizeof value);
    return value;
}

template <class... Types, size_t... Indices>
static void call(void (*kernel)(Types...), const uint64_t *cells, std::index_sequence<Indices...>) {
    kernel(argument<Types>(cells + Indices)...);
}

template <class... Types> static std::function<void()> bind(void (*kernel)(Types...), const uint64_t *cells) {
    return [=] { call(kernel, cells, std::index_sequence_for<Types...>{}); };
}

#define ENTRY(kernel)                                                                                                        \
    if (std::strcmp(name, #kernel) == 0) {                                                                                   \
        body = bind(kernel, cells);                                                                                          \
    }

// 0, or 1 for an unknown kernel, or 2 when threads of a block part at a barrier.
extern "C" int emulate(const char *name, const unsigned *grid, const unsigned *block, const uint64_t *cells) {
    body = nullptr;
    ENTRY(adafactor_apply)
    ENTRY(adafactor_columns)
    ENTRY(adafactor_mean)
    ENTRY(adafactor_partials)
    ENTRY(adafactor_rows)
    ENTRY(adafactor_step)
    ENTRY(adafactor_vector)
    ENTRY(adamw)
    ENTRY(adamw8bit)
    ENTRY(adamw_apply)
    ENTRY(adamw_bf16)
    ENTRY(adamw_denominator)
    ENTRY(adamw_moments)
    ENTRY(add)
    ENTRY(averagepool_backward)
    ENTRY(averagepool_forward)
    ENTRY(batchnorm_backward)
    ENTRY(batchnorm_forward)
    ENTRY(bias_backward)
    ENTRY(compress)
    ENTRY(cast)
    ENTRY(convolution_backward_input)
    ENTRY(convolution_backward_weight)
    ENTRY(convolution_forward)
    ENTRY(decompress)
    ENTRY(embedding_backward_position)
    ENTRY(embedding_backward_table)
    ENTRY(embedding_forward)
    ENTRY(fill)
    ENTRY(flash_backward_keys)
    ENTRY(flash_backward_queries)
    ENTRY(flash_forward)
    ENTRY(flash_inner)
    ENTRY(gelu_backward)
    ENTRY(gelu_forward)
    ENTRY(half_add)
    ENTRY(half_averagepool_backward)
    ENTRY(half_averagepool_forward)
    ENTRY(half_batchnorm_backward)
    ENTRY(half_batchnorm_forward)
    ENTRY(half_bias_backward)
    ENTRY(half_compress)
    ENTRY(half_convolution_backward_input)
    ENTRY(half_convolution_backward_weight)
    ENTRY(half_convolution_forward)
    ENTRY(half_decompress)
    ENTRY(half_embedding_backward_position)
    ENTRY(half_embedding_backward_table)
    ENTRY(half_embedding_forward)
    ENTRY(half_fill)
    ENTRY(half_flash_backward_keys)
    ENTRY(half_flash_backward_queries)
    ENTRY(half_flash_forward)
    ENTRY(half_flash_inner)
    ENTRY(half_gelu_backward)
    ENTRY(half_gelu_forward)
    ENTRY(half_layernorm_backward_input)
    ENTRY(half_layernorm_backward_parameters)
    ENTRY(half_layernorm_forward)
    ENTRY(half_log_softmax_backward)
    ENTRY(half_log_softmax_forward)
    ENTRY(half_matmul)
    ENTRY(half_maxpool_backward)
    ENTRY(half_maxpool_forward)
    ENTRY(half_merge_heads)
    ENTRY(half_merge_heads_backward)
    ENTRY(half_relu_backward)
    ENTRY(half_relu_forward)
    ENTRY(half_softmax_backward)
    ENTRY(half_softmax_forward)
    ENTRY(half_split_qkv)
    ENTRY(half_split_qkv_backward)
    ENTRY(init_normal)
    ENTRY(layernorm_backward_input)
    ENTRY(layernorm_backward_parameters)
    ENTRY(layernorm_forward)
    ENTRY(log_softmax_backward)
    ENTRY(log_softmax_forward)
    ENTRY(matmul)
    ENTRY(maxpool_backward)
    ENTRY(maxpool_forward)
    ENTRY(merge_heads)
    ENTRY(merge_heads_backward)
    ENTRY(nll_backward)
    ENTRY(nll_forward)
    ENTRY(relu_backward)
    ENTRY(relu_forward)
    ENTRY(round_bf16)
    ENTRY(sgd)
    ENTRY(sgd_momentum)
    ENTRY(softmax_backward)
    ENTRY(softmax_forward)
    ENTRY(split_qkv)
    ENTRY(split_qkv_backward)
    ENTRY(unscale)
    if (!body) {
        return 1;
    }
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    threads = block[0] * block[1] * block[2];
    if (fibers.size() < threads) {
        fibers.resize(threads);
    }
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z) {
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) {
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
                if (!run_block()) {
                    return 2;
                }
            }
        }
    }
    return 0;
}
