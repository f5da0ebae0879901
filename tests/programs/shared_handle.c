/* Memory of a handle in two processes: the child takes in what the parent has created, by a file descriptor, and maps it too. Prints of
 * each stage the result and the bytes in use on the device, by both, as the driver says. Stays a while where most is in use. */
#include "two_processes.h"

#include "stages.h"

typedef struct { int type, id, flags; } CUmemAccessDesc;
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMemExportToShareableHandle(void *shared, unsigned long long handle, int type, unsigned long long flags);
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count);

enum { MIB = 1 << 20, DESCRIPTOR = 1, READ_AND_WRITE = 3, SIZE = 4 * MIB };

/* Reserves addresses, and maps memory of a handle there. */
static CUresult mapped(CUdeviceptr *address, unsigned long long handle)
{
    CUmemAccessDesc access = {1, 0, READ_AND_WRITE};
    return cuMemAddressReserve(address, SIZE, 0, 0, 0) | cuMemMap(*address, SIZE, 0, handle, 0) |
           cuMemSetAccess(*address, SIZE, &access, 1);
}

static CUresult unmapped(CUdeviceptr address)
{
    return cuMemUnmap(address, SIZE) | cuMemAddressFree(address, SIZE);
}

static int in_child(void)
{
    unsigned long long handle = 0, none = 0;
    CUdeviceptr own = 0, address = 0;
    char word;
    int descriptor = hear(&word, 1);
    int bad = start() | cuMemAlloc_v2(&own, 1 * MIB);
    stage("foreign", cuMemImportFromShareableHandle(&none, (void *)(intptr_t)other, DESCRIPTOR));
    stage("taken in", cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, DESCRIPTOR));
    bad |= close(descriptor);
    stage("mapped", mapped(&address, handle));
    stage("released", cuMemRelease(handle)); /* its memory stays while it is mapped */
    bad |= byte_at(address) != 0x5a || byte_at(address + SIZE - 1) != 0x5a || cuMemsetD8_v2(address, 0x33, 1);
    usleep(600000);
    stage("unmapped", unmapped(address));
    bad |= cuMemFree_v2(own);
    tell("", 1, -1);
    return bad ? 1 : 0;
}

int main(void)
{
    if (is_child())
        return in_child();
    CUmemAllocationProp properties = {1, DESCRIPTOR, 1, 0, {0}};
    unsigned long long handle = 0;
    CUdeviceptr address = 0;
    int descriptor = -1;
    char word;
    int bad = start() | cuMemCreate(&handle, SIZE, &properties, 0) | mapped(&address, handle);
    bad |= cuMemsetD8_v2(address, 0x5a, SIZE);
    stage("shared", cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 0));
    tell("", 1, descriptor);
    hear(&word, 1);
    bad |= !ended_well() || byte_at(address) != 0x33 || byte_at(address + 1) != 0x5a || close(descriptor);
    stage("end", unmapped(address) | cuMemRelease(handle));
    return bad ? 1 : 0;
}
