/* Streams that capture: what one of them allocates and frees becomes nodes of a graph, whose memory a launch takes. Prints of each
 * stage the result, the bytes in use and those that the driver uses and keeps for graphs, as it says. Stays a while where most is
 * in use. */
#define _DEFAULT_SOURCE
#include "driver_api.h"
#include <stdio.h>
#include <unistd.h>

CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);

enum { MIB = 1 << 20, GLOBAL = 0, RELAXED = 2, NON_BLOCKING = 1, USED = 0, RESERVED = 2 };

static void stage(const char *name, CUresult result)
{
    size_t free = 0, total = 0;
    uint64_t used = 0, kept = 0;
    cuMemGetInfo_v2(&free, &total);
    cuDeviceGetGraphMemAttribute(0, USED, &used);
    cuDeviceGetGraphMemAttribute(0, RESERVED, &kept);
    printf("%s %d %zu %zu %zu\n", name, result, (total - free) / MIB, (size_t)used / MIB, (size_t)kept / MIB);
}

int main(void)
{
    CUcontext context = 0;
    CUstream stream = 0, beside = 0;
    CUmemoryPool pool = 0;
    CUgraph graph = 0, none = 0;
    CUgraphExec exec = 0, second = 0;
    CUdeviceptr a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
    int bad = cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context) | cuDeviceGetDefaultMemPool(&pool, 0);
    bad |= cuStreamCreate(&stream, NON_BLOCKING) | cuStreamCreate(&beside, NON_BLOCKING);
    stage("before", cuMemAllocAsync(&a, 3 * MIB, stream));

    bad |= cuStreamBeginCapture_v2(stream, GLOBAL);
    bad |= cuMemAllocAsync(&b, 4 * MIB, stream) | cuMemAllocAsync(&c, 2 * MIB, stream) | cuMemFreeAsync(b, stream);
    bad |= cuMemAllocFromPoolAsync(&d, 1 * MIB, pool, stream) | cuMemFreeAsync(d, stream);
    stage("captured", SUCCESS);
    stage("beside", cuMemAllocAsync(&e, 5 * MIB, beside));
    bad |= cuStreamEndCapture(stream, &graph);
    stage("ready", cuGraphInstantiateWithFlags(&exec, graph, 0));
    stage("second", cuGraphInstantiateWithFlags(&second, graph, 0));

    stage("launched", cuGraphLaunch(exec, stream));
    usleep(600000);
    stage("again", cuGraphLaunch(exec, stream)); /* the memory of c is there still */
    stage("freed", cuMemFreeAsync(c, stream));
    stage("trimmed", cuDeviceGraphMemTrim(0));

    bad |= cuStreamBeginCapture_v2(stream, GLOBAL);
    stage("own", cuMemFreeAsync(a, stream)); /* no memory of a graph */
    stage("spoiled", cuStreamEndCapture(stream, &none));
    bad |= cuStreamBeginCapture_v2(stream, GLOBAL);
    stage("unsafe", cuMemAlloc_v2(&f, 1 * MIB));
    stage("spoiled", cuStreamEndCapture(stream, &none));
    bad |= cuStreamBeginCapture_v2(stream, RELAXED);
    stage("relaxed", cuMemAlloc_v2(&f, 1 * MIB));
    bad |= cuStreamEndCapture(stream, &none) | cuGraphDestroy(none) | cuMemFree_v2(f);

    stage("launched", cuGraphLaunch(exec, stream));
    stage("freed", cuMemFree_v2(c));
    bad |= cuGraphExecDestroy(exec) | cuGraphDestroy(graph);
    stage("trimmed", cuDeviceGraphMemTrim(0));
    stage("end", cuMemFreeAsync(a, stream) | cuMemFreeAsync(e, beside));
    return bad ? 1 : 0;
}
