/* What programs print of their stages, and how they look at memory of the device: the driver's own answers. */
#ifndef STAGES_H
#define STAGES_H
#include "driver_api.h"
#include <stdio.h>

/* Unit in which bytes are printed. */
#ifndef UNIT
#define UNIT (1 << 20)
#endif

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);

/* Prints a stage's result and the bytes in use on the device, by all processes. */
static inline void stage(const char *name, CUresult result)
{
    size_t free = 0, total = 0;
    cuMemGetInfo_v2(&free, &total);
    printf("%s %d %zu\n", name, result, (total - free) / UNIT);
}

/* The byte at an address; -1 if it cannot be read. */
static inline int byte_at(CUdeviceptr address)
{
    unsigned char byte = 0;
    return cuMemcpyDtoH_v2(&byte, address, 1) ? -1 : byte;
}

/* Makes the primary context current. */
static inline int start(void)
{
    CUcontext context = 0;
    return cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context);
}
#endif
