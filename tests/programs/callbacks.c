/* Host functions of streams, on a thread of the driver's: they allocate, which NVIDIA forbids and a driver may still do, while
 * the main thread waits inside a hooked free, and they take and free host memory. */
#include "driver_api.h"
#include <stdio.h>
#include <stdlib.h>

static void from_driver(void *data)
{
    CUdeviceptr address;
    void *host;
    size_t bytes = (size_t)(uintptr_t)data;
    if (cuMemAlloc_v2(&address, bytes) || cuMemAllocHost_v2(&host, bytes) || cuMemFreeHost(host) || cuMemFree_v2(address))
        exit(9);
    free(malloc(bytes));
}
static void from_stream(CUstream stream, CUresult status, void *data)
{
    (void)stream, (void)status;
    from_driver(data);
}

int main(void)
{
    CUdeviceptr address;
    cuCtxSetCurrent((CUcontext)1);
    for (size_t turn = 0; turn < 50; turn++) {
        int bad = cuMemAlloc_v2(&address, 100);
        bad |= cuLaunchHostFunc(NULL, from_driver, (void *)(1000 + turn));
        bad |= cuStreamAddCallback(NULL, from_stream, (void *)(2000 + turn), 0);
        bad |= cuMemFree_v2(address); /* waits for both */
        if (bad)
            return printf("%d\n", bad), 1;
    }
    puts("done");
    return 0;
}
