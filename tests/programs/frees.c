/* Frees what is not there to be freed, between what is: the driver's answers, one a line. */
#include "driver_api.h"
#include <stdio.h>

enum { MIB = 1 << 20 };

static void say(const char *what, CUresult result) { printf("%s %s\n", what, result ? "refused" : "freed"); }

int main(void)
{
    CUcontext context;
    CUdeviceptr plain, ordered, kept;
    void *pinned;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&plain, MIB)
        || cuMemAllocAsync(&ordered, 2 * MIB, NULL) || cuMemAlloc_v2(&kept, 4 * MIB) || cuMemAllocHost_v2(&pinned, MIB))
        return 1;
    say("nothing", cuMemFree_v2(0));
    say("unknown", cuMemFree_v2(0x1234500));
    say("inside", cuMemFree_v2(kept + 256));
    say("once", cuMemFree_v2(plain));
    say("twice", cuMemFree_v2(plain));
    say("ordered, at once", cuMemFree_v2(ordered));
    say("ordered, twice", cuMemFreeAsync(ordered, NULL));
    say("device memory as the host's", cuMemFreeHost((void *)(uintptr_t)kept));
    say("host memory", cuMemFreeHost(pinned));
    say("host memory, twice", cuMemFreeHost(pinned));
    return 6;
}
