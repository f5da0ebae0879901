/* A multicast object over two devices: memory of each is bound to it, and counts where it was created. Prints of each stage the result
 * and the bytes in use on both devices, as the driver says. Stays a while where most is in use. */
#define _DEFAULT_SOURCE
#include "driver_api.h"
#include <stdio.h>
#include <unistd.h>

typedef struct { int type, id, flags; } CUmemAccessDesc;
typedef struct { unsigned devices; size_t size; unsigned long long handle_types, flags; } CUmulticastObjectProp;
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *properties, int option);
CUresult cuMulticastAddDevice(unsigned long long handle, CUdevice device);
CUresult cuMulticastBindMem(unsigned long long handle, size_t offset, unsigned long long memory, size_t memory_offset, size_t size,
                            unsigned long long flags);
CUresult cuMulticastUnbind(unsigned long long handle, CUdevice device, size_t offset, size_t size);

enum { MIB = 1 << 20, SIZE = 4 * MIB, READ_AND_WRITE = 3 };
static CUcontext contexts[2];

static void stage(const char *name, CUresult result)
{
    size_t used[2];
    for (int device = 0; device < 2; device++) {
        size_t free = 0, total = 0;
        cuCtxSetCurrent(contexts[device]);
        cuMemGetInfo_v2(&free, &total);
        used[device] = (total - free) / MIB;
    }
    printf("%s %d %zu %zu\n", name, result, used[0], used[1]);
}

int main(void)
{
    CUmulticastObjectProp properties = {2, SIZE, 0, 0};
    CUmemAccessDesc access = {1, 0, READ_AND_WRITE};
    CUdeviceptr address = 0;
    size_t granularity = 0;
    unsigned long long object = 0, memory[2] = {0};
    int bad = cuInit(0) | cuDevicePrimaryCtxRetain(&contexts[0], 0) | cuDevicePrimaryCtxRetain(&contexts[1], 1);
    for (int device = 0; device < 2; device++) {
        CUmemAllocationProp on_device = {1, 0, 1, device, {0}};
        bad |= cuMemCreate(&memory[device], (device + 1) * SIZE, &on_device, 0);
    }
    bad |= cuMulticastGetGranularity(&granularity, &properties, 0) || SIZE % granularity;
    stage("made", cuMulticastCreate(&object, &properties));
    stage("joined", cuMulticastAddDevice(object, 0) | cuMulticastAddDevice(object, 1));
    stage("full", cuMulticastAddDevice(object, 1));
    stage("bound", cuMulticastBindMem(object, 0, memory[0], 0, SIZE, 0) | cuMulticastBindMem(object, 0, memory[1], SIZE, SIZE, 0));
    stage("beyond", cuMulticastBindMem(object, SIZE, memory[1], 0, SIZE, 0));
    bad |= cuMemAddressReserve(&address, SIZE, 0, 0, 0);
    stage("mapped", cuMemMap(address, SIZE, 0, object, 0) | cuMemSetAccess(address, SIZE, &access, 1));
    usleep(600000);
    stage("unmapped", cuMemUnmap(address, SIZE) | cuMemAddressFree(address, SIZE));
    stage("unbound", cuMulticastUnbind(object, 0, 0, SIZE) | cuMulticastUnbind(object, 1, 0, SIZE));
    stage("not bound", cuMulticastUnbind(object, 1, 0, SIZE));
    stage("gone", cuMemRelease(object));
    stage("end", cuMemRelease(memory[0]) | cuMemRelease(memory[1]));
    return bad ? 1 : 0;
}
