/* Another library that a user preloads: it stands in the way of cuMemAlloc_v2, of malloc and (with -DDLSYM) of dlsym, naively,
 * and tells at the end what it saw. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static unsigned allocations, look_ups;

static void *(*real_dlsym(void))(void *, const char *)
{
    static void *(*real)(void *, const char *);
    if (!real)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    static CUresult (*next)(CUdeviceptr *, size_t);
    allocations++;
    if (!next)
        *(void **)&next = real_dlsym()(RTLD_NEXT, "cuMemAlloc_v2");
    if (!next) /* the program has opened the driver for itself */
        *(void **)&next = real_dlsym()(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuMemAlloc_v2");
    return next(address, bytes);
}

#ifdef DLSYM
void *dlsym(void *handle, const char *name)
{
    if (handle != RTLD_NEXT && !strcmp(name, "cuMemAlloc_v2")) {
        look_ups++;
        return (void *)cuMemAlloc_v2;
    }
    return real_dlsym()(handle, name);
}
#endif

__attribute__((destructor)) static void tell(void)
{
    printf("injector: %u allocations, %u look-ups\n", allocations, look_ups);
}
