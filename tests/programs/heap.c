/* Counts the calls of its own malloc, which every library in the process uses, around calls that memscope hooks.
 * It opens the driver itself, or with -DLINKED is linked with it. Where NVTX is injected, its ranges count too. */
#define _GNU_SOURCE
#include "memscope.h"
#include "driver_api.h"
#include "nvtx_by_hand.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

static char pool[1 << 22];
static _Atomic size_t used;
static atomic_int calls;

void *malloc(size_t bytes)
{
    calls++;
    size_t at = atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15);
    if (at + bytes + 16 > sizeof pool)
        return errno = ENOMEM, (void *)0;
    *(size_t *)(pool + at) = bytes;
    return pool + at + 16;
}
void free(void *address) { (void)address; }
void *calloc(size_t count, size_t bytes)
{
    return malloc(count * bytes); /* the pool is used once, so it is zero */
}
void *realloc(void *old, size_t bytes)
{
    char *fresh = malloc(bytes);
    if (old && fresh) {
        size_t before = ((size_t *)old)[-2];
        memcpy(fresh, old, before < bytes ? before : bytes);
    }
    return fresh;
}

int main(void)
{
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*release)(CUdeviceptr);
    CUresult (*set_current)(CUcontext);
    CUdeviceptr address = 0;
#ifdef LINKED
    set_current = cuCtxSetCurrent;
    alloc = cuMemAlloc_v2;
    release = cuMemFree_v2;
#else
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&release = dlsym(driver, "cuMemFree_v2");
    *(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
#endif
    set_current((CUcontext)1); /* the driver's own thread-local memory is allocated here */
    int before = calls;
    alloc(&address, 100);
    int first_alloc = calls - before;

    before = calls;
    release(address);
    int first_free = calls - before;

    before = calls;
    for (int turn = 0; turn < 50000; turn++) {
        alloc(&address, 100);
        release(address);
        alloc(&address, (size_t)1 << 41);
    }
    int later = calls - before;

    memscope_step(0); /* looks the functions up */
    before = calls;
    for (int turn = 0; turn < 1000; turn++) {
        char name[32];
        snprintf(name, sizeof name, "scope %d", turn);
        memscope_scope_push(name);
        memscope_tag((void *)0x1000, MEMSCOPE_WEIGHTS, name);
        memscope_scope_pop();
    }
    int names = calls - before;

    nvtxRangePushA("the first one looks for a profiler");
    nvtxRangePop();
    before = calls;
    for (int turn = 0; turn < 1000; turn++) {
        char name[32];
        snprintf(name, sizeof name, "range %d", turn);
        nvtxRangePushA(name);
        alloc(&address, 100);
        nvtxRangeEnd(nvtxRangeStartA(name));
        nvtxRangePop();
    }
    printf("%d %d %d %d %d\n", first_alloc, first_free, later, names, calls - before);
    return 0;
}
