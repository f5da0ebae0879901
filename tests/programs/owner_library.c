/* A library that takes device memory for itself. Whose it is, only its file's name says. With RUNTIME defined it asks the CUDA runtime
 * for it, else the driver. */
#include "driver_api.h"
#include <dlfcn.h>

int cudaMalloc(void **address, size_t bytes);

int take(CUdeviceptr *address, size_t bytes) {
#ifdef RUNTIME
    int result = cudaMalloc((void **)address, bytes);
#else
    /* By the library's own look-up, as those that load the driver themselves do it. */
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*allocate)(CUdeviceptr *, size_t) = driver ? (CUresult (*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2") : 0;
    int result = allocate ? allocate(address, bytes) : 1;
#endif
    return result; /* not in a tail call, which would leave no trace of the library */
}

int create(unsigned long long *handle, size_t bytes) {
    CUmemAllocationProp properties = {.type = 1, .location = 1};
    int result = cuMemCreate(handle, bytes, &properties, 0);
    return result;
}
