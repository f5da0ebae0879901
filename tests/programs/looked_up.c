/* The second way: dlopen and dlsym. With the argument "old" by the dlsym that programs built before glibc 2.34 refer to. */
#define _GNU_SOURCE
#include "every_function.h"
#include <dlfcn.h>
#include <string.h>

void *old_dlsym(void *, const char *);
__asm__(".symver old_dlsym,dlsym@GLIBC_2.2.5");

int main(int count, char **arguments)
{
    void *(*look_up)(void *, const char *) = count > 1 && !strcmp(arguments[1], "old") ? old_dlsym : dlsym;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return puts(dlerror()), 1;
    struct functions f;
    *(void **)&f.set_current = look_up(driver, "cuCtxSetCurrent");
    *(void **)&f.alloc = look_up(driver, "cuMemAlloc_v2");
    *(void **)&f.pitch = look_up(driver, "cuMemAllocPitch_v2");
    *(void **)&f.managed = look_up(driver, "cuMemAllocManaged");
    *(void **)&f.free = look_up(driver, "cuMemFree_v2");
    *(void **)&f.ordered = look_up(driver, "cuMemAllocAsync");
    *(void **)&f.pooled = look_up(driver, "cuMemAllocFromPoolAsync");
    *(void **)&f.ordered_free = look_up(driver, "cuMemFreeAsync");
    *(void **)&f.host_flagged = look_up(driver, "cuMemHostAlloc");
    *(void **)&f.host = look_up(driver, "cuMemAllocHost_v2");
    *(void **)&f.host_free = look_up(driver, "cuMemFreeHost");
    *(void **)&f.host_register = look_up(driver, "cuMemHostRegister_v2");
    *(void **)&f.host_unregister = look_up(driver, "cuMemHostUnregister");
    *(void **)&f.create = look_up(driver, "cuMemCreate");
    *(void **)&f.map = look_up(driver, "cuMemMap");
    *(void **)&f.unmap = look_up(driver, "cuMemUnmap");
    *(void **)&f.release = look_up(driver, "cuMemRelease");
    return call_every_function(&f);
}
