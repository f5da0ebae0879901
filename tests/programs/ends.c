/* What ends without a call that names it: what was allocated in contexts that are destroyed or reset. Prints after each stage how
 * many bytes of the device are in use, as the driver says. */
#include "driver_api.h"
#include <stdio.h>

enum { MIB = 1 << 20 };

static void used(const char *stage)
{
    size_t free = 0, total = 0;
    int bad = cuMemGetInfo_v2(&free, &total);
    printf("%s %d %zu\n", stage, bad, total - free);
}

int main(void)
{
    CUcontext primary = 0, second = 0, third = 0;
    CUdeviceptr memory = 0;
    CUarray array = 0;
    CUmipmappedArray levels = 0;
    void *pinned = 0;
    CUDA_ARRAY_DESCRIPTOR square = {1024, 1024, 0x20, 1};
    CUDA_ARRAY3D_DESCRIPTOR smaller = {512, 512, 0, 0x20, 1, 0};
    int bad = cuInit(0) | cuDevicePrimaryCtxRetain(&primary, 0) | cuCtxSetCurrent(primary);
    bad |= cuMemAlloc_v2(&memory, MIB) | cuArrayCreate_v2(&array, &square) | cuMipmappedArrayCreate(&levels, &smaller, 3);
    used("arrays");
    bad |= cuCtxCreate_v2(&second, 0, 0) | cuMemAlloc_v2(&memory, 8 * MIB) | cuArrayCreate_v2(&array, &square);
    bad |= cuMemAllocHost_v2(&pinned, 2 * MIB);
    used("second");
    bad |= cuCtxDestroy_v2(second) | cuCtxSetCurrent(primary);
    used("destroyed");
    bad |= cuCtxCreate_v2(&third, 0, 0) | cuMemAllocAsync(&memory, 16 * MIB, 0) | cuCtxDestroy_v2(third);
    bad |= cuCtxSetCurrent(primary);
    used("pool");
    bad |= cuDevicePrimaryCtxReset_v2(0) | cuDevicePrimaryCtxRetain(&primary, 0) | cuCtxSetCurrent(primary);
    used("reset");
    bad |= cuMemAlloc_v2(&memory, 3 * MIB); /* left to the end of the process */
    used("end");
    return bad ? 1 : 0;
}
