/* Takes 1 MiB of the driver itself, then through each library that is named, in turn: 2 MiB through the first, 4 through the second,
 * and so on; after each, 1 MiB more itself. The memory of the last one is tagged, and it creates 2 MiB without an address too. A
 * child that it forks then takes 32 KiB through the first. */
#include "driver_api.h"
#include "memscope.h"
#include <dlfcn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

int main(int count, char **files) {
    CUcontext context;
    CUdeviceptr address = 0;
    void *library = NULL, *first = NULL;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuMemAlloc_v2(&address, MIB)) return 2;
    for (int index = 1; index < count; index++) {
        library = dlopen(files[index], RTLD_NOW);
        if (!library) return 3;
        first = first ? first : library;
        int (*take)(CUdeviceptr *, size_t) = (int (*)(CUdeviceptr *, size_t))dlsym(library, "take");
        CUdeviceptr own;
        if (!take || take(&address, MIB << index) || cuMemAlloc_v2(&own, MIB)) return 4;
    }
    memscope_tag((void *)(uintptr_t)address, MEMSCOPE_WORKSPACE, "tagged");
    unsigned long long handle;
    int (*create)(unsigned long long *, size_t) = (int (*)(unsigned long long *, size_t))dlsym(library, "create");
    if (!create || create(&handle, 2 * MIB)) return 5;
    return 0;
}
