/* A program with an allocator of its own, which declares its blocks through memscope.h: one container of 64 MiB. */
#include "driver_api.h"
#include "memscope.h"
#include <stdint.h>
#include <stdio.h>


#define MIB ((uint64_t)1 << 20)

static void *at(CUdeviceptr base, uint64_t offset) { return (void *)(uintptr_t)(base + offset); }

int main(void) {
    void *context;
    CUdeviceptr base, leaf;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&base, 64 * MIB) ||
        cuMemAlloc_v2(&leaf, 2 * MIB))
        return 1;
    memscope_step(1);
    memscope_phase("forward");
    memscope_scope_push("encoder");
    memscope_scope_push("layer 0");
    memscope_block_alloc(at(base, 0), 10 * MIB, NULL);
    memscope_tag(at(base, 0), MEMSCOPE_WEIGHTS, "encoder.0.weight");
    memscope_block_alloc(at(base, 16 * MIB), 20 * MIB, NULL);
    memscope_tag(at(base, 16 * MIB), MEMSCOPE_ACTIVATIONS, "encoder.0.output");
    memscope_scope_pop();
    memscope_scope_pop();
    memscope_tag(at(leaf, 0), MEMSCOPE_INPUTS, "batch");
    memscope_step(2);
    memscope_block_free(at(base, 16 * MIB));
    memscope_block_alloc(at(base, 40 * MIB), 5 * MIB, NULL); /* never tagged: unknown */
    memscope_step(3);
    memscope_tag(at(base, 40 * MIB), MEMSCOPE_GRADIENTS, "encoder.0.weight.grad"); /* told later: counts from its birth */
    return cuMemFree_v2(leaf);
}
