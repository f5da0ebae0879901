/* Pools that keep what was freed. Prints results and the bytes in use, as the driver says. Between the calls is the time after which
 * memscope asks again. */
#define _DEFAULT_SOURCE
#include "driver_api.h"
#include <stdio.h>
#include <unistd.h>

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuCtxSynchronize(void);

enum { MIB = 1 << 20, RELEASE_THRESHOLD = 4 };

static void used(const char *stage, CUresult result)
{
    size_t free = 0, total = 0;
    cuMemGetInfo_v2(&free, &total);
    printf("%s %d %zu\n", stage, result, total - free);
    usleep(40000);
}

int main(void)
{
    CUcontext context = 0;
    CUmemoryPool pool = 0, own = 0;
    CUdeviceptr a = 0, b = 0, c = 0, d = 0;
    CUmemPoolProps properties = {1, 0, 1, 0, {0}};
    unsigned long long threshold = 64 * MIB;
    int bad = cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context);
    bad |= cuDeviceGetDefaultMemPool(&pool, 0) | cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &threshold);
    bad |= cuMemPoolCreate(&own, &properties) | cuMemPoolSetAttribute(own, RELEASE_THRESHOLD, &threshold);
    used("allocated", cuMemAllocAsync(&a, 48 * MIB, 0) | cuMemAllocAsync(&b, 16 * MIB, 0));
    used("freed", cuMemFreeAsync(a, 0));
    used("again", cuMemAllocAsync(&c, 8 * MIB, 0));
    used("own", cuMemAllocFromPoolAsync(&d, 24 * MIB, own, 0));
    used("own freed", cuMemFreeAsync(d, 0));
    used("trimmed", cuMemPoolTrimTo(pool, 32 * MIB) | cuCtxSynchronize());
    return bad ? 1 : 0;
}
