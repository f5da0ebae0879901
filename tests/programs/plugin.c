/* A plug-in that links the driver itself, loaded where the program has no driver in its global scope. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>

int run_plugin(void)
{
    CUdeviceptr address;
    CUresult (*alloc)(CUdeviceptr *, size_t);
    int result = cuMemAlloc_v2(&address, 100);
    *(void **)&alloc = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    return result | (alloc ? alloc(&address, 200) : 99);
}
