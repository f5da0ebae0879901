/* A pool of one process in another: the child takes in the parent's pool, and a pointer to what was allocated from it. Prints of each
 * stage the result and the bytes in use on the device, by both, as the driver says. Stays a while where most is in use. */
#include "two_processes.h"

#include "stages.h"

typedef struct { unsigned char reserved[64]; } CUmemPoolPtrExportData;
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolExportToShareableHandle(void *shared, CUmemoryPool pool, int type, unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count);

enum { MIB = 1 << 20, DESCRIPTOR = 1, RESERVED = 5, USED = 7 };

/* True if a pool uses and keeps so many MiB. */
static int holds(CUmemoryPool pool, uint64_t used, uint64_t kept)
{
    uint64_t uses = 0, reserves = 0;
    return !cuMemPoolGetAttribute(pool, USED, &uses) && !cuMemPoolGetAttribute(pool, RESERVED, &reserves) &&
           uses == used * MIB && reserves - uses == kept * MIB;
}

static int in_child(void)
{
    CUmemoryPool pool = 0;
    CUmemPoolPtrExportData data;
    CUdeviceptr own = 0, address = 0, none = 0;
    int descriptor = hear(&data, sizeof(data));
    int bad = start() | cuMemAlloc_v2(&own, 1 * MIB);
    stage("taken in", cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)descriptor, DESCRIPTOR, 0));
    stage("allocated", cuMemAllocFromPoolAsync(&none, 1 * MIB, pool, 0)); /* it is not its pool */
    stage("pointed", cuMemPoolImportPointer(&address, pool, &data));
    bad |= byte_at(address) != 0x5a || byte_at(address + 4 * MIB - 1) != 0x5a || !holds(pool, 0, 0);
    bad |= cuMemsetD8_v2(address, 0x33, 1);
    usleep(600000);
    stage("freed", cuMemFreeAsync(address, 0));
    stage("freed", cuMemFreeAsync(address, 0));
    bad |= cuMemPoolDestroy(pool) | cuMemFree_v2(own) | close(descriptor);
    tell("", 1, -1);
    return bad ? 1 : 0;
}

int main(void)
{
    if (is_child())
        return in_child();
    CUmemPoolProps properties = {1, DESCRIPTOR, 1, 0, {0}};
    CUmemoryPool pool = 0, usual = 0;
    CUmemPoolPtrExportData data;
    CUdeviceptr address = 0, other_pools = 0;
    int descriptor = -1;
    char word;
    int bad = start() | cuDeviceGetDefaultMemPool(&usual, 0) | cuMemPoolCreate(&pool, &properties);
    bad |= cuMemAllocFromPoolAsync(&address, 4 * MIB, pool, 0) | cuMemAllocAsync(&other_pools, 2 * MIB, 0);
    bad |= cuMemsetD8_v2(address, 0x5a, 4 * MIB);
    stage("of a usual pool", cuMemPoolExportToShareableHandle(&descriptor, usual, DESCRIPTOR, 0));
    stage("of its memory", cuMemPoolExportPointer(&data, other_pools));
    stage("shared", cuMemPoolExportToShareableHandle(&descriptor, pool, DESCRIPTOR, 0) | cuMemPoolExportPointer(&data, address));
    tell(&data, sizeof(data), descriptor);
    hear(&word, 1);
    bad |= !ended_well() || byte_at(address) != 0x33 || byte_at(address + 1) != 0x5a || !holds(pool, 4, 0) || !holds(usual, 2, 0);
    stage("end", cuMemFreeAsync(address, 0) | cuMemFreeAsync(other_pools, 0));
    bad |= cuMemPoolDestroy(pool) | close(descriptor);
    return bad ? 1 : 0;
}
