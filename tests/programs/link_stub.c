/* What -lcuda links against in the tests: the driver's names without a driver. Built as libcuda.so with the soname
 * libcuda.so.1 and never loaded: at run time the loader finds the simulated or the real libcuda.so.1. */
#define STUB(name)                                                                                                     \
    int name(void) { return 999; }

STUB(cuInit)
STUB(cuDevicePrimaryCtxRetain)
STUB(cuDevicePrimaryCtxRelease_v2)
STUB(cuCtxSetCurrent)
STUB(cuCtxSynchronize)
STUB(cuMemAlloc_v2)
STUB(cuMemAllocPitch_v2)
STUB(cuMemAllocManaged)
STUB(cuMemAllocAsync)
STUB(cuMemFreeAsync)
STUB(cuMemFree_v2)
STUB(cuMemAllocHost_v2)
STUB(cuMemHostAlloc)
STUB(cuMemFreeHost)
STUB(cuMemGetInfo_v2)
STUB(cuStreamSynchronize)
