/* One known sequence of driver calls, the functions found in the way that the argument says: link, dlsym, or proc (through
 * cuGetProcAddress, as a CUDA runtime does). Prints results only, never addresses: the output must not depend on memscope. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>


static struct {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*alloc)(CUdeviceptr *, size_t);
    int (*pitch)(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
    int (*managed)(CUdeviceptr *, size_t, unsigned);
    int (*alloc_async)(CUdeviceptr *, size_t, void *);
    int (*free_async)(CUdeviceptr, void *);
    int (*free)(CUdeviceptr);
    int (*alloc_host)(void **, size_t);
    int (*free_host)(void *);
} f;

static void *driver;
static int (*proc)(const char *, void **, int, uint64_t, int *);

static void *find(const char *symbol, const char *name) {
    void *function = NULL;
    int status;
    if (!proc)
        return dlsym(driver, symbol);
    return proc(name, &function, 12000, 0, &status) ? NULL : function;
}

static int look_up(const char *way) {
    if (!strcmp(way, "link")) {
        f.init = cuInit, f.retain = cuDevicePrimaryCtxRetain, f.set_current = cuCtxSetCurrent, f.alloc = cuMemAlloc_v2;
        f.pitch = cuMemAllocPitch_v2, f.managed = cuMemAllocManaged, f.alloc_async = cuMemAllocAsync;
        f.free_async = cuMemFreeAsync, f.free = cuMemFree_v2, f.alloc_host = cuMemAllocHost_v2, f.free_host = cuMemFreeHost;
        return 1;
    }
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return puts(dlerror()), 0;
    if (!strcmp(way, "proc")) {
        *(void **)&proc = dlsym(driver, "cuGetProcAddress_v2");
        *(void **)&proc = find("cuGetProcAddress_v2", "cuGetProcAddress"); /* by itself once more, as the runtime does */
        if (!proc)
            return 0;
    }
    *(void **)&f.init = find("cuInit", "cuInit");
    *(void **)&f.retain = find("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain");
    *(void **)&f.set_current = find("cuCtxSetCurrent", "cuCtxSetCurrent");
    *(void **)&f.alloc = find("cuMemAlloc_v2", "cuMemAlloc");
    *(void **)&f.pitch = find("cuMemAllocPitch_v2", "cuMemAllocPitch");
    *(void **)&f.managed = find("cuMemAllocManaged", "cuMemAllocManaged");
    *(void **)&f.alloc_async = find("cuMemAllocAsync", "cuMemAllocAsync");
    *(void **)&f.free_async = find("cuMemFreeAsync", "cuMemFreeAsync");
    *(void **)&f.free = find("cuMemFree_v2", "cuMemFree");
    *(void **)&f.alloc_host = find("cuMemAllocHost_v2", "cuMemAllocHost");
    *(void **)&f.free_host = find("cuMemFreeHost", "cuMemFreeHost");
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 2 || !look_up(argv[1]))
        return 2;
    void *context = NULL, *pinned = NULL;
    printf("start %d\n", f.init(0) | f.retain(&context, 0) | f.set_current(context));
    CUdeviceptr kept[100], memory = 0;
    size_t pitch = 0;
    int bad = 0;
    for (int i = 0; i < 100; i++) /* 100 allocations, 100 · 1 MiB live at once */
        bad |= f.alloc(&kept[i], 1u << 20);
    for (int i = 0; i < 50; i++) { /* 50 more, one at a time */
        bad |= f.alloc_async(&memory, 4096, NULL);
        bad |= i % 2 ? f.free_async(memory, NULL) : f.free(memory); /* ordered memory may be freed either way */
    }
    printf("device %d\n", bad);
    bad |= f.managed(&memory, 3u << 20, 1);
    bad |= f.free(memory);
    bad |= f.pitch(&memory, &pitch, 100, 10, 4);
    printf("pitch %d %d\n", bad, pitch >= 100);
    bad |= f.free(memory);
    bad |= f.alloc_host(&pinned, 5u << 20);
    bad |= f.free_host(pinned);
    printf("null %d\n", f.free(0));
    printf("unknown %d\n", f.free(0x1234500) != 0);
    printf("too much %d\n", f.alloc(&memory, (size_t)1 << 42));
    for (int i = 0; i < 99; i++) /* the last one is left to the end of the process */
        bad |= f.free(kept[i]);
    printf("end %d\n", bad);
    return bad ? 1 : 4;
}
