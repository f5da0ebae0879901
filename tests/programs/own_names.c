/* A program that wraps driver functions under their own names, which it exports (build with -rdynamic), and looks the driver's up
 * by its handle. The driver's must be what it gets, and each call must be counted once. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <stdio.h>

static void *driver;
static int allocations, frees;

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    CUresult (*real)(CUdeviceptr *, size_t);
    *(void **)&real = dlsym(driver, "cuMemAlloc_v2");
    return ++allocations > 10 ? 99 : real(address, bytes);
}
CUresult cuMemFree_v2(CUdeviceptr address)
{
    CUresult (*real)(CUdeviceptr);
    *(void **)&real = dlsym(driver, "cuMemFree_v2");
    return ++frees > 10 ? 99 : real(address);
}

int main(void)
{
    CUdeviceptr address = 0;
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int bad = cuMemAlloc_v2(&address, 100) | cuMemFree_v2(address);
    printf("%d %d %d\n", bad, allocations, frees);
    return bad;
}
