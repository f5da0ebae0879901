/* Closes the driver and opens it again, with something else at its old address if it left. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>

int main(void)
{
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUdeviceptr address;
    for (int turn = 0; turn < 3; turn++) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        if (!driver)
            return puts(dlerror()), 1;
        void *base = (void *)((struct link_map *)driver)->l_addr;
        *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
        printf("%d\n", alloc(&address, 100));
        dlclose(driver);
        mmap(base, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    return 0;
}
