/* The third way, that of every CUDA runtime: one dlsym, and cuGetProcAddress for everything, itself included.
 * Arguments: version of the look-up function (1 or 2), kind of default stream (legacy or per-thread). */
#define _GNU_SOURCE
#include "every_function.h"
#include <dlfcn.h>
#include <string.h>

static CUresult (*first)(const char *, void **, int, uint64_t);
static CUresult (*second)(const char *, void **, int, uint64_t, int *);
static uint64_t flags;

static void *get(const char *symbol)
{
    void *function = (void *)-1;
    int status = -1;
    CUresult result = second ? second(symbol, &function, 12000, flags, &status) : first(symbol, &function, 11030, flags);
    if (result || !function)
        printf("%s: result %d, status %d, %p\n", symbol, result, status, function);
    return function;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    flags = strcmp(arguments[2], "per-thread") ? LEGACY_STREAM : PER_THREAD_STREAM;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return puts(dlerror()), 1;
    if (arguments[1][0] == '1') {
        *(void **)&first = dlsym(driver, "cuGetProcAddress");
        *(void **)&first = get("cuGetProcAddress");
    } else {
        *(void **)&second = dlsym(driver, "cuGetProcAddress_v2");
        *(void **)&second = get("cuGetProcAddress");
    }
    struct functions f;
    *(void **)&f.set_current = get("cuCtxSetCurrent");
    *(void **)&f.alloc = get("cuMemAlloc");
    *(void **)&f.pitch = get("cuMemAllocPitch");
    *(void **)&f.managed = get("cuMemAllocManaged");
    *(void **)&f.free = get("cuMemFree");
    *(void **)&f.ordered = get("cuMemAllocAsync");
    *(void **)&f.pooled = get("cuMemAllocFromPoolAsync");
    *(void **)&f.ordered_free = get("cuMemFreeAsync");
    *(void **)&f.host_flagged = get("cuMemHostAlloc");
    *(void **)&f.host = get("cuMemAllocHost");
    *(void **)&f.host_free = get("cuMemFreeHost");
    *(void **)&f.host_register = get("cuMemHostRegister");
    *(void **)&f.host_unregister = get("cuMemHostUnregister");
    *(void **)&f.create = get("cuMemCreate");
    *(void **)&f.map = get("cuMemMap");
    *(void **)&f.unmap = get("cuMemUnmap");
    *(void **)&f.release = get("cuMemRelease");
    get("cuNoSuchFunction");
    return call_every_function(&f);
}
