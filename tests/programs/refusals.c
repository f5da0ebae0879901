/* What the driver refuses, and what a program may rely on all the same: results, and errno. */
#include "driver_api.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

static void tell(const char *what, CUresult result)
{
    printf("%s: %d, errno %d\n", what, result, errno);
    errno = 5;
}

int main(void)
{
    CUdeviceptr address = 0, unchanged = 0xabcd;
    errno = 5;
    tell("the very first call", cuMemFree_v2(0));
    tell("alloc", cuMemAlloc_v2(&address, 100));
    tell("alloc too much", cuMemAlloc_v2(&unchanged, (size_t)1 << 41));
    puts(dlerror() ? "dlerror says something" : "dlerror says nothing");
    tell("alloc nothing", cuMemAlloc_v2(&unchanged, 0));
    printf("%llx\n", unchanged);
    tell("free an odd address", cuMemFree_v2(address + 1));
    tell("free an unknown address", cuMemFree_v2(0xdead0000));
    tell("free", cuMemFree_v2(address));
    tell("free null, ordered", cuMemFreeAsync(0, 0));
    tell("free null of the host", cuMemFreeHost(0));
    cuCtxSetCurrent(0);
    tell("free without a context", cuMemFree_v2(address));
    tell("alloc without a context", cuMemAllocAsync(&address, 200, (CUstream)0x300));
    tell("alloc too much on the host", cuMemHostAlloc((void **)&unchanged, (size_t)1 << 42, 0));
    return 0;
}
