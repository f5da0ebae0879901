/* A graph whose nodes allocate: what a launch takes of the device, and what is kept of it. Prints results and the bytes in use,
 * as the driver says. */
#include "driver_api.h"
#include <stdio.h>

CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, CUdeviceptr address);

enum { MIB = 1 << 20 };

static void used(const char *stage, CUresult result)
{
    size_t free = 0, total = 0;
    cuMemGetInfo_v2(&free, &total);
    printf("%s %d %zu\n", stage, result, total - free);
}

int main(void)
{
    CUcontext context = 0;
    CUgraph graph = 0;
    CUgraphNode node = 0;
    CUgraphExec exec = 0;
    CUDA_MEM_ALLOC_NODE_PARAMS first = {{1, 0, 1, 0, {0}}, 0, 0, 4 * MIB, 0}, second = {{1, 0, 1, 0, {0}}, 0, 0, 2 * MIB, 0};
    int bad = cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context) | cuGraphCreate(&graph, 0);
    bad |= cuGraphAddMemAllocNode(&node, graph, 0, 0, &first) | cuGraphAddMemFreeNode(&node, graph, &node, 1, first.dptr);
    bad |= cuGraphAddMemAllocNode(&node, graph, &node, 1, &second);
    used("made", cuGraphInstantiateWithFlags(&exec, graph, 0));
    used("launched", cuGraphLaunch(exec, 0));
    used("again", cuGraphLaunch(exec, 0)); /* the second node's memory is there still */
    used("trimmed", cuDeviceGraphMemTrim(0));
    used("freed", cuMemFree_v2(second.dptr));
    used("trimmed", cuDeviceGraphMemTrim(0));
    used("launched", cuGraphLaunch(exec, 0));
    used("freed", cuMemFree_v2(second.dptr));
    used("launched", cuGraphLaunch(exec, 0));
    used("freed", cuMemFreeAsync(second.dptr, 0));
    return bad ? 1 : 0;
}
