/* The first way to a driver function: linked with -lcuda. */
#include "every_function.h"

int main(void)
{
    struct functions f = {cuCtxSetCurrent,         cuMemAlloc_v2,     cuMemAllocPitch_v2, cuMemAllocManaged,
                          cuMemFree_v2,            cuMemAllocAsync,   cuMemAllocFromPoolAsync, cuMemFreeAsync,
                          cuMemHostAlloc,          cuMemAllocHost_v2, cuMemFreeHost,      cuMemHostRegister_v2,
                          cuMemHostUnregister,     cuMemCreate,       cuMemMap,           cuMemUnmap,
                          cuMemRelease};
    return call_every_function(&f);
}
