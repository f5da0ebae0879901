/* The driver in another namespace of the linker (dlmopen), used from this one; with a path as an argument, also a plug-in in
 * that namespace that is linked with the driver. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*release)(CUdeviceptr);
    CUresult (*set_current)(CUcontext);
    CUdeviceptr address = 0;
    for (int turn = 0; turn < 2; turn++) {
        void *driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
        if (!driver)
            return puts(dlerror()), 1;
        *(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
        *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
        *(void **)&release = dlsym(driver, "cuMemFree_v2");
        int bad = set_current((CUcontext)3) | alloc(&address, 100);
        printf("%d %llx\n", bad, address);
        printf("%d\n", release(address));
        if (count > 1) {
            Lmid_t space;
            dlinfo(driver, RTLD_DI_LMID, &space);
            void *plugin = dlmopen(space, arguments[1], RTLD_NOW);
            int (*run)(void);
            if (!plugin)
                return puts(dlerror()), 1;
            *(void **)&run = dlsym(plugin, "run_plugin");
            printf("%d\n", run());
        }
        dlclose(driver);
    }
    return 0;
}
