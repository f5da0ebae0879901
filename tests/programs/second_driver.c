/* Loads two drivers at once, under the paths given as arguments, and uses both. */
#include "driver_api.h"
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        void *driver = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
        if (!driver)
            return puts(dlerror()), 1;
        CUresult (*alloc)(CUdeviceptr *, size_t);
        CUresult (*release)(CUdeviceptr);
        CUdeviceptr address = 0;
        *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
        *(void **)&release = dlsym(driver, "cuMemFree_v2");
        int result = alloc(&address, 100);
        printf("%d %llx %d\n", result, address, release(address));
    }
    return 0;
}
