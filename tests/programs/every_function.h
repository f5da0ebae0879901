/* One call of every hooked function, however the program got them. What is printed must not depend on memscope. */
#include "functions.h"
#include <stdio.h>

static int linear_memory(const struct functions *f)
{
    CUdeviceptr a = 0, b = 0, c = 0, d = 0, e = 0, g = 0;
    void *h = 0, *i = 0;
    size_t pitch = 0;
    static char registered[64];
    int bad = f->cuCtxSetCurrent((CUcontext)1);
    bad |= f->cuMemAlloc_v2(&a, 1000) | f->cuMemAllocPitch_v2(&b, &pitch, 100, 10, 4) | f->cuMemAllocManaged(&c, 3000, 1);
    bad |= f->cuMemAllocAsync(&d, 4000, 0) | f->cuMemAllocAsync(&e, 4500, (CUstream)0x100);
    bad |= f->cuMemAllocFromPoolAsync(&g, 5000, (CUmemoryPool)3, 0);
    bad |= f->cuMemHostAlloc(&h, 6000, 0) | f->cuMemAllocHost_v2(&i, 7000);
    bad |= f->cuMemHostRegister_v2(registered, sizeof registered, 0);
    printf("%d %llx %llx %zu %llx %llx %llx %llx %p %p\n", bad, a, b, pitch, c, d, e, g, h, i);
    bad |= f->cuMemHostUnregister(registered) | f->cuMemFreeHost(i) | f->cuMemFreeHost(h);
    bad |= f->cuMemFreeAsync(g, 0) | f->cuMemFreeAsync(e, (CUstream)0x100);
    bad |= f->cuMemFree_v2(d) /* ordered memory, freed plainly */;
    bad |= f->cuMemFree_v2(c) | f->cuMemFree_v2(b) | f->cuMemFree_v2(a);
    printf("%d\n", bad);
    return bad;
}

static int virtual_memory(const struct functions *f)
{
    CUmemAllocationProp device = {1, 0, 1, 4, {0}}, host = {1, 0, 2, 0, {0}};
    unsigned long long on_device = 0, on_host = 0;
    int bad = f->cuMemCreate(&on_device, 2 << 20, &device, 0) | f->cuMemCreate(&on_host, 4096, &host, 0);
    bad |= f->cuMemMap(0x40000000, 1 << 20, 4096, on_device, 0);
    printf("%d %llx %llx", bad, on_device, on_host);
    printf(" %d", f->cuMemCreate(&on_host, (size_t)1 << 41, &device, 0));
    printf(" %d", f->cuMemMap(0x50000001, 4096, 0, on_device, 0));
    printf(" %d", f->cuMemUnmap(0x40000000, 0));
    printf(" %d\n", f->cuMemRelease(0x99));
    bad |= f->cuMemRelease(on_device) | f->cuMemUnmap(0x40000000, 1 << 20) | f->cuMemRelease(on_host);
    printf("%d\n", bad);
    return bad;
}

static int arrays(const struct functions *f)
{
    CUarray line = 0, image = 0, cube = 0, blocks = 0, strange = 0, vacant = 0;
    CUmipmappedArray levels = 0;
    CUDA_ARRAY_DESCRIPTOR line_of = {1000, 0, 0x20, 1}, image_of = {100, 10, 8, 4}, too_large = {(size_t)1 << 40, 2, 0x20, 4};
    CUDA_ARRAY3D_DESCRIPTOR cube_of = {16, 16, 6, 0x10, 2, 4}, blocks_of = {10, 10, 0, 0x91, 4, 0};
    CUDA_ARRAY3D_DESCRIPTOR strange_of = {16, 0, 0, 0x77, 1, 0}, vacant_of = {64, 64, 0, 0x20, 1, 0x80};
    CUDA_ARRAY3D_DESCRIPTOR levels_of = {8, 4, 3, 0x20, 1, 1};
    int bad = f->cuArrayCreate_v2(&line, &line_of) | f->cuArrayCreate_v2(&image, &image_of);
    bad |= f->cuArray3DCreate_v2(&cube, &cube_of) | f->cuArray3DCreate_v2(&blocks, &blocks_of);
    bad |= f->cuArray3DCreate_v2(&strange, &strange_of) | f->cuArray3DCreate_v2(&vacant, &vacant_of);
    bad |= f->cuMipmappedArrayCreate(&levels, &levels_of, 4);
    printf("%d %p %p %p %p %p\n", bad, line, image, cube, blocks, levels);
    printf("%d", f->cuArrayCreate_v2(&line, &too_large));
    printf(" %d", f->cuArrayCreate_v2(0, 0));
    printf(" %d\n", f->cuArrayDestroy((CUarray)0x99));
    bad |= f->cuArrayDestroy(vacant) | f->cuArrayDestroy(strange) | f->cuArrayDestroy(blocks) | f->cuArrayDestroy(cube);
    bad |= f->cuArrayDestroy(image) | f->cuArrayDestroy(line) | f->cuMipmappedArrayDestroy(levels);
    printf("%d\n", bad);
    return bad;
}

static int contexts(const struct functions *f)
{
    CUcontext primary = 0, again = 0, second = 0, third = 0, fourth = 0;
    CUdeviceptr a = 0, b = 0;
    void *pinned = 0;
    int bad = f->cuDevicePrimaryCtxRetain(&primary, 5) | f->cuDevicePrimaryCtxRetain(&again, 5);
    bad |= f->cuCtxSetCurrent(primary) | f->cuMemAlloc_v2(&a, 100);
    bad |= f->cuCtxCreate_v2(&second, 0, 5) | f->cuMemHostAlloc(&pinned, 300, 0) | f->cuMemAlloc_v2(&b, 200);
    bad |= f->cuCtxDestroy_v2(second); /* with what is in it */
    bad |= f->cuCtxCreate_v3(&third, 0, 0, 0, 6) | f->cuCtxDestroy_v2(third);
    bad |= f->cuCtxCreate_v4(&fourth, 0, 0, 6) | f->cuCtxDestroy_v2(fourth);
    printf("%d %p %p %p %p\n", bad, primary, second, third, fourth);
    printf("%d", f->cuCtxDestroy_v2(primary));
    printf(" %d", f->cuCtxCreate_v2(&third, 0, 9));
    printf(" %d\n", f->cuDevicePrimaryCtxRelease_v2(7));
    bad |= f->cuDevicePrimaryCtxRelease(5); /* not the last reference */
    bad |= f->cuDevicePrimaryCtxRelease_v2(5);
    bad |= f->cuDevicePrimaryCtxRetain(&primary, 5) | f->cuDevicePrimaryCtxReset_v2(5);
    bad |= f->cuDevicePrimaryCtxRetain(&primary, 5) | f->cuDevicePrimaryCtxReset(5) | f->cuDevicePrimaryCtxReset(5);
    bad |= f->cuCtxSetCurrent((CUcontext)1);
    printf("%d\n", bad);
    return bad;
}

static int call_every_function(const struct functions *f)
{
    return linear_memory(f) | virtual_memory(f) | arrays(f) | contexts(f);
}
