/* Fills a device of 1 GiB: 512 MiB of weights in the scope "encoder", then 448 MiB, which it gives back and takes again three
 * times more. After the first filling it waits for a line of its standard input: whoever runs this has been told by then. Ends
 * with 3. */
#include "driver_api.h"
#include "memscope.h"
#include <stdint.h>
#include <stdio.h>

#define MIB ((uint64_t)1 << 20)

int main(void) {
    CUcontext context;
    CUdeviceptr weights, rest;
    char line[8];
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    memscope_scope_push("encoder");
    if (cuMemAlloc_v2(&weights, 512 * MIB)) return 1;
    memscope_tag((void *)(uintptr_t)weights, MEMSCOPE_WEIGHTS, "encoder.weight");
    for (int time = 0; time < 4; time++) {
        if (cuMemAlloc_v2(&rest, 448 * MIB)) return 2;
        if (time == 0 && !fgets(line, sizeof line, stdin)) return 4;
        if (cuMemFree_v2(rest)) return 2;
    }
    return 3;
}
