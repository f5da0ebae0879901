/* A library that asks the driver for others, as a CUDA runtime that is linked dynamically does: found by one dlsym, called through
 * frames of its own. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <string.h>

static CUresult (*allocate)(CUdeviceptr *, size_t);

/* Keeps a frame of its own, of a size that is known only when it runs. */
__attribute__((noinline)) static int deeper(CUdeviceptr *address, size_t bytes, int depth) {
    volatile char used[depth * 24 + 8];
    memset((void *)used, depth, sizeof used);
    int result = depth ? deeper(address, bytes, depth - 1) : allocate(address, bytes);
    return result + used[0] - depth;
}

int cudaMalloc(void **address, size_t bytes) {
    if (!allocate) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        CUresult (*look_up)(const char *, void **, int, uint64_t, int *);
        *(void **)&look_up = driver ? dlsym(driver, "cuGetProcAddress_v2") : 0;
        if (!look_up || look_up("cuMemAlloc", (void **)&allocate, 12000, LEGACY_STREAM, 0)) return 1;
    }
    int result = deeper((CUdeviceptr *)address, bytes, bytes >> 20 & 3);
    return result;
}
