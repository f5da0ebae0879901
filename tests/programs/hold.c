/* Holds exactly known device memory for a while, so that NVML is asked while nothing changes: 64 MiB + 3 MiB of device memory,
 * 5 MiB of pinned host memory. Argument: milliseconds to hold. */
#include "driver_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_) {                                                                                                   \
            fprintf(stderr, "%s: %d\n", #call, code_);                                                                 \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv) {
    void *context, *pinned;
    CUdeviceptr large, small;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc_v2(&large, 64u << 20));
    MUST(cuMemAlloc_v2(&small, 3u << 20));
    MUST(cuMemAllocHost_v2(&pinned, 5u << 20));
    usleep((argc > 1 ? atoi(argv[1]) : 500) * 1000);
    MUST(cuMemFreeHost(pinned));
    MUST(cuMemFree_v2(small));
    MUST(cuMemFree_v2(large));
    puts("held");
    return 0;
}
