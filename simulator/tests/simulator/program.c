/* A CUDA driver program without NVIDIA's header: it declares what it uses, and finds it in one of three ways. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext;
typedef void *CUstream;

#define FUNCTIONS(F) \
    F(cuInit, cuInit, (unsigned)) \
    F(cuDeviceGetCount, cuDeviceGetCount, (int *)) \
    F(cuDeviceGetName, cuDeviceGetName, (char *, int, CUdevice)) \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
    F(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext)) \
    F(cuMemGetInfo, cuMemGetInfo_v2, (size_t *, size_t *)) \
    F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
    F(cuMemFree, cuMemFree_v2, (CUdeviceptr)) \
    F(cuMemAllocAsync, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream)) \
    F(cuMemFreeAsync, cuMemFreeAsync, (CUdeviceptr, CUstream)) \
    F(cuMemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
    F(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    F(cuGetErrorName, cuGetErrorName, (CUresult, const char **))

#define POINTER(base, name, arguments) static CUresult (*p_##base) arguments;
FUNCTIONS(POINTER)

#ifdef LINKED
#define DECLARE(base, name, arguments) extern CUresult name arguments;
FUNCTIONS(DECLARE)
static int find(void) {
#define SET(base, name, arguments) p_##base = name;
    FUNCTIONS(SET)
    return 0;
}
#else
static int find(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return puts(dlerror()), 1;
#ifdef BY_DLSYM
#define SET(base, name, arguments) \
    if (!(p_##base = (CUresult(*) arguments)dlsym(driver, #name))) return puts("missing " #name), 1;
    FUNCTIONS(SET)
#else
    typedef CUresult (*Find)(const char *, void **, int, unsigned long long, int *);
    Find get = (Find)dlsym(driver, "cuGetProcAddress_v2");
    if (!get) return puts("missing cuGetProcAddress_v2"), 1;
    void *function = &function;
    int status = -1;
    CUresult result = get("cuNoSuchFunction", &function, 12000, 0, &status);
    printf("unknown %d %s %d\n", result, function ? "found" : "null", status);
    function = &function;
    result = get("cuMemAllocAsync", &function, 11000, 0, &status);
    printf("too new %d %s %d\n", result, function ? "found" : "null", status);
    void *plain = 0, *per_thread = 0;
    get("cuMemAllocAsync", &plain, 12000, 1, &status);
    get("cuMemAllocAsync", &per_thread, 12000, 2, &status);
    printf("per thread differs %d\n", plain && per_thread && plain != per_thread);
#define SET(base, name, arguments) \
    if (get(#base, (void **)&p_##base, 12000, 0, &status) || !p_##base || status) return puts("missing " #base), 1;
    FUNCTIONS(SET)
#endif
    return 0;
}
#endif

#define CHECK(call) \
    do { \
        CUresult checked = (call); \
        if (checked) return printf("%s = %d\n", #call, checked), 1; \
    } while (0)

static int used(void) {
    size_t free_bytes, total;
    CHECK(p_cuMemGetInfo(&free_bytes, &total));
    printf("used %zu\n", total - free_bytes);
    return 0;
}

int main(void) {
    if (find()) return 1;
    CHECK(p_cuInit(0));
    int count;
    CHECK(p_cuDeviceGetCount(&count));
    printf("devices %d\n", count);
    char name[64];
    CHECK(p_cuDeviceGetName(name, sizeof name, 0));
    printf("name %s\n", name);
    CUcontext context;
    CHECK(p_cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(p_cuCtxSetCurrent(context));
    CUdeviceptr a, b;
    CHECK(p_cuMemAlloc(&a, 3000));
    CHECK(p_cuMemAllocAsync(&b, 1024, 0));
    if (used()) return 1;
    int numbers[4] = {1, 2, 3, 4}, back[4];
    CHECK(p_cuMemcpyHtoD(b, numbers, sizeof numbers));
    CHECK(p_cuMemcpyDtoH(back, b, sizeof back));
    printf("read back %d %d %d %d\n", back[0], back[1], back[2], back[3]);
    /* Memory of a pool may be freed either way. */
    CHECK(p_cuMemFree(b));
    CHECK(p_cuMemFreeAsync(a, 0));
    if (used()) return 1;
    CUresult result = p_cuMemFree(a);
    const char *text;
    CHECK(p_cuGetErrorName(result, &text));
    printf("double free %d %s\n", result, text);
    return 0;
}
