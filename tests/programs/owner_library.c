/* A library that takes device memory of the driver for itself. Whose it is, only its file's name says. */
#include "driver_api.h"
#include <dlfcn.h>

/* By the library's own look-up, as those that load the driver themselves do it. */
int take(CUdeviceptr *address, size_t bytes) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*allocate)(CUdeviceptr *, size_t) = driver ? (CUresult (*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2") : 0;
    int result = allocate ? allocate(address, bytes) : 1;
    return result; /* not in a tail call, which would leave no trace of the library */
}

int create(unsigned long long *handle, size_t bytes) {
    CUmemAllocationProp properties = {.type = 1, .location = 1};
    int result = cuMemCreate(handle, bytes, &properties, 0);
    return result;
}
