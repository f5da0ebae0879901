/* Takes memory of a device until it is refused, by cuMemAlloc or, as `out_of_memory pool`, from the device's pool. Then waits for a
 * line of its standard input: whoever runs this has been told by then. Ends with 3. */
#include "driver_api.h"
#include "memscope.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

int main(int count, char **arguments) {
    CUcontext context;
    CUdeviceptr weights, next;
    char line[8];
    int pool = count > 1 && strcmp(arguments[1], "pool") == 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&weights, 200 * MIB))
        return 1;
    memscope_tag((void *)(uintptr_t)weights, MEMSCOPE_WEIGHTS, "encoder.weight");
    memscope_phase("forward");
    memscope_scope_push("encoder");
    CUresult result;
    do
        result = pool ? cuMemAllocAsync(&next, 300 * MIB, NULL) : cuMemAlloc_v2(&next, 300 * MIB);
    while (result == SUCCESS);
    printf("refused with %d\n", result);
    fflush(stdout);
    return fgets(line, sizeof line, stdin) ? 3 : 4;
}
