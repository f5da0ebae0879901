/* Memory of one process in another, by handles: the child opens what the parent has allocated. Prints of each stage the result and
 * the bytes in use on the device, by both, as the driver says. Stays a while where most is in use. */
#include "two_processes.h"

#define UNIT 1
#include "stages.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address);
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count);

enum { MIB = 1 << 20, SMALL = 1536, LAZY = 1 };
typedef struct { CUipcMemHandle large, small; } Handles;

static int in_child(void)
{
    CUdeviceptr own = 0, large = 0, small = 0, again = 0, base = 0;
    size_t bytes = 0;
    Handles handles;
    hear(&handles, sizeof(handles));
    int bad = start() | cuMemAlloc_v2(&own, 2 * MIB);
    stage("without flag", cuIpcOpenMemHandle_v2(&large, handles.large, 0));
    stage("opened", cuIpcOpenMemHandle_v2(&large, handles.large, LAZY) | cuIpcOpenMemHandle_v2(&small, handles.small, LAZY));
    stage("again", cuIpcOpenMemHandle_v2(&again, handles.large, LAZY));
    bad |= again != large;
    bad |= byte_at(large) != 0x5a || byte_at(large + 6 * MIB - 1) != 0x5a || byte_at(small + SMALL - 1) != 0x11;
    bad |= cuMemGetAddressRange_v2(&base, &bytes, large + MIB) | (base != large) | (bytes != 6 * MIB);
    bad |= cuMemsetD8_v2(large + MIB, 0x33, 1) | cuMemsetD8_v2(small, 0x44, 1);
    stage("freed", cuMemFree_v2(large)); /* it is not its memory */
    usleep(600000);
    stage("closed", cuIpcCloseMemHandle(large));
    stage("closed", cuIpcCloseMemHandle(large));
    stage("closed", cuIpcCloseMemHandle(large)); /* it was opened twice */
    stage("closed", cuIpcCloseMemHandle(small));
    bad |= cuMemFree_v2(own);
    tell("", 1, -1);
    return bad ? 1 : 0;
}

int main(void)
{
    if (is_child())
        return in_child();
    CUdeviceptr large = 0, small = 0, neighbour = 0, ordered = 0, opened = 0;
    Handles handles, none;
    char word;
    int bad = start() | cuMemAlloc_v2(&large, 6 * MIB) | cuMemAlloc_v2(&small, SMALL) | cuMemAlloc_v2(&neighbour, SMALL);
    bad |= cuMemAllocAsync(&ordered, 1 * MIB, 0);
    bad |= cuMemsetD8_v2(large, 0x5a, 6 * MIB) | cuMemsetD8_v2(small, 0x11, SMALL) | cuMemsetD8_v2(neighbour, 0x22, SMALL);
    stage("named", cuIpcGetMemHandle(&handles.large, large + 5) | cuIpcGetMemHandle(&handles.small, small));
    stage("of a pool", cuIpcGetMemHandle(&none.large, ordered));
    stage("own", cuIpcOpenMemHandle_v2(&opened, handles.large, LAZY));
    tell(&handles, sizeof(handles), -1);
    hear(&word, 1);
    bad |= !ended_well();
    bad |= byte_at(large) != 0x5a || byte_at(large + MIB) != 0x33 || byte_at(small) != 0x44 || byte_at(neighbour) != 0x22;
    stage("end", cuMemFree_v2(large) | cuMemFree_v2(small) | cuMemFree_v2(neighbour) | cuMemFreeAsync(ordered, 0));
    bad |= cuMemAlloc_v2(&large, 6 * MIB) || byte_at(large) != 0 || cuMemFree_v2(large);
    return bad ? 1 : 0;
}
