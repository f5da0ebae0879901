/* The third way, that of every CUDA runtime: one dlsym, and cuGetProcAddress for everything, itself included.
 * Arguments: version of the look-up function (1 or 2), kind of default stream (legacy or per-thread). */
#define _GNU_SOURCE
#include "every_function.h"
#include <dlfcn.h>
#include <string.h>

static CUresult (*first)(const char *, void **, int, uint64_t);
static CUresult (*second)(const char *, void **, int, uint64_t, int *);
static uint64_t flags;

static void *get(const char *symbol, int version)
{
    void *function = (void *)-1;
    int status = -1;
    CUresult result = second ? second(symbol, &function, version, flags, &status) : first(symbol, &function, version, flags);
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
        *(void **)&first = get("cuGetProcAddress", 11030);
    } else {
        *(void **)&second = dlsym(driver, "cuGetProcAddress_v2");
        *(void **)&second = get("cuGetProcAddress", 12000);
    }
    struct functions f;
#define X(name, symbol, version) *(void **)&f.name = get(symbol, version);
    FUNCTIONS(X)
#undef X
    get("cuNoSuchFunction", 12000);
    /* A name that this driver knows in a version that nobody else does: whoever asks gets that function and no other. */
    CUresult (*later)(CUcontext *, long, long, long, long, long, long);
    CUcontext context = 0;
    *(void **)&later = get("cuCtxCreate", 14000);
    CUresult result = later(&context, 1, 2, 3, 4, 5, 6);
    printf("%d %p\n", result, context);
    return call_every_function(&f);
}
