/* Arguments that no driver accepts, or that a driver answers without filling anything in: results must be the driver's own. */
#include "driver_api.h"
#include <stdio.h>

int main(void)
{
    CUdeviceptr address = 7;
    size_t pitch = 7, free_bytes = 0, total = 0;
    cuCtxSetCurrent((CUcontext)1);
    printf("%d\n", cuMemAlloc_v2(NULL, 100));
    printf("%d %llu\n", cuMemAllocPitch_v2(&address, NULL, 100, 10, 4), address);
    printf("%d %zu\n", cuMemAllocPitch_v2(NULL, &pitch, 100, 10, 4), pitch);
    printf("%d\n", cuMemAllocManaged(NULL, 100, 1));
    printf("%d\n", cuMemAllocAsync(NULL, 100, NULL));
    printf("%d\n", cuMemHostAlloc(NULL, 100, 0));
    printf("%d\n", cuMemHostRegister_v2(NULL, 0, 0));
    printf("%d\n", cuMemGetInfo_v2(NULL, NULL));
    printf("%d %zu\n", cuMemGetInfo_v2(NULL, &total), total);
    printf("%d %zu\n", cuMemGetInfo_v2(&free_bytes, NULL), free_bytes);
    printf("%d\n", cuMemCreate(NULL, 100, NULL, 0));
    unsigned long long handle = 0;
    printf("%d\n", cuMemCreate(&handle, (size_t)1 << 41, NULL, 0));
    return 0;
}
