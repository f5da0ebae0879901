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

static int objects(const struct functions *f)
{
    CUmodule a = 0, b = 0, c = 0, d = 0;
    CUlibrary l = 0, m = 0;
    CUmemoryPool pool = 0, imported = 0;
    CUmemPoolProps properties = {1, 0, 1, 3, {0}};
    unsigned long long team = 0;
    int bad = f->cuModuleLoad(&a, "m") | f->cuModuleLoadData(&b, "m") | f->cuModuleLoadDataEx(&c, "m", 0, 0, 0);
    bad |= f->cuModuleLoadFatBinary(&d, "m");
    bad |= f->cuLibraryLoadData(&l, "l", 0, 0, 5, 0, (void **)7, 8) | f->cuLibraryLoadFromFile(&m, "l", 0, 0, 5, 0, (void **)7, 8);
    bad |= f->cuMemPoolCreate(&pool, &properties) | f->cuMemPoolImportFromShareableHandle(&imported, (void *)4, 1, 0);
    bad |= f->cuMulticastCreate(&team, &properties);
    printf("%d %p %p %p %p %p %p %p %p %llx\n", bad, a, b, c, d, l, m, pool, imported, team);
    printf("%d", f->cuModuleLoadData(&a, 0));
    printf(" %d", f->cuModuleUnload((CUmodule)0x99));
    printf(" %d\n", f->cuMemPoolCreate(&pool, 0));
    bad |= f->cuMemMap(0x60000000, 1 << 20, 0, team, 0) | f->cuMemUnmap(0x60000000, 1 << 20) | f->cuMemRelease(team);
    bad |= f->cuMemPoolDestroy(imported) | f->cuMemPoolDestroy(pool) | f->cuLibraryUnload(m) | f->cuLibraryUnload(l);
    bad |= f->cuModuleUnload(d) | f->cuModuleUnload(c) | f->cuModuleUnload(b) | f->cuModuleUnload(a);
    printf("%d\n", bad);
    return bad;
}

static int imports(const struct functions *f)
{
    CUipcMemHandle handle = {{'i'}};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC of = {0, 8192, 0, {0}};
    CUdeviceptr opened = 0, again = 0, pointed = 0, buffer = 0;
    CUexternalMemory external = 0;
    CUmipmappedArray levels = 0;
    unsigned long long received = 0, retained = 0;
    handle.reserved[63] = 'h';
    int bad = f->cuIpcOpenMemHandle(&opened, handle, 1) | f->cuIpcOpenMemHandle_v2(&again, handle, 1);
    bad |= f->cuMemPoolImportPointer(&pointed, (CUmemoryPool)0xb0070, &handle);
    bad |= f->cuImportExternalMemory(&external, &of) | f->cuExternalMemoryGetMappedBuffer(&buffer, external, &of);
    bad |= f->cuExternalMemoryGetMappedMipmappedArray(&levels, external, &of);
    bad |= f->cuMemImportFromShareableHandle(&received, (void *)5, 1) | f->cuMemRetainAllocationHandle(&retained, (void *)0x1000);
    printf("%d %llx %llx %llx %p %llx %p %llx %llx\n", bad, opened, again, pointed, external, buffer, levels, received, retained);
    printf("%d\n", f->cuIpcOpenMemHandle_v2(&opened, handle, 2));
    bad |= f->cuMemMap(0x61000000, 1 << 20, 0, received, 0) | f->cuMemUnmap(0x61000000, 1 << 20) | f->cuMemRelease(received);
    bad |= f->cuMemRelease(retained) | f->cuMipmappedArrayDestroy(levels) | f->cuMemFree_v2(buffer);
    bad |= f->cuDestroyExternalMemory(external) | f->cuMemFreeAsync(pointed, 0);
    bad |= f->cuIpcCloseMemHandle(again) | f->cuIpcCloseMemHandle(opened);
    printf("%d\n", bad);
    return bad;
}

static int graphs(const struct functions *f)
{
    CUgraph graph = (CUgraph)0xc0000;
    CUgraphExec a = 0, b = 0, c = 0, d = 0;
    CUgraphNode node = 0;
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {{1, 0, 1, 0, {0}}, 0, 0, 4096, 0};
    CUgraphNodeParams any = {10, {0}, memory, {0}}, other = {3, {0}, memory, {0}};
    CUdeviceptr planned = 0, real = 0;
    CUstream stream = (CUstream)0x100;
    int bad = f->cuGraphInstantiate(&a, graph, 0, 0, 5) | f->cuGraphInstantiate_v2(&b, graph, 0, 0, 5);
    bad |= f->cuGraphInstantiateWithFlags(&c, graph, 3) | f->cuGraphInstantiateWithParams(&d, graph, &any);
    bad |= f->cuGraphLaunch(a, 0); /* it has no memory */
    bad |= f->cuGraphAddMemAllocNode(&node, graph, 0, 0, &memory) | f->cuGraphAddNode(&node, graph, 0, 0, &any);
    bad |= f->cuGraphAddNode_v2(&node, graph, 0, 0, 0, &any) | f->cuGraphAddNode_v2(&node, graph, 0, 0, 0, &other);
    printf("%d %p %p %p %p %llx\n", bad, a, b, c, d, memory.dptr);
    bad |= f->cuGraphUpload(a, 0) | f->cuGraphLaunch(a, 0) /* the same again */ | f->cuMemFree_v2(memory.dptr);
    bad |= f->cuDeviceGraphMemTrim(0) | f->cuGraphLaunch(b, 0) | f->cuDeviceGraphMemTrim(0);
    printf("%d", f->cuGraphLaunch((CUgraphExec)0x99, 0));
    printf(" %d\n", f->cuStreamBeginCapture_v2(stream, 3));
    bad |= f->cuStreamBeginCapture(stream) | f->cuMemAllocAsync(&planned, 6000, stream) | f->cuMemFreeAsync(planned, stream);
    bad |= f->cuStreamEndCapture(stream, &graph);
    bad |= f->cuStreamBeginCapture_v2(stream, 1) | f->cuMemAllocAsync(&planned, 6100, stream);
    bad |= f->cuMemAllocAsync(&real, 6200, (CUstream)0x200) /* that one does not capture */;
    bad |= f->cuStreamEndCapture(stream, &graph);
    bad |= f->cuStreamBeginCaptureToGraph(stream, graph, 0, 0, 0, 2) | f->cuMemAllocFromPoolAsync(&planned, 6300, (CUmemoryPool)1, stream);
    bad |= f->cuStreamEndCapture(stream, &graph) | f->cuMemFreeAsync(real, stream);
    bad |= f->cuGraphExecDestroy(a) | f->cuGraphExecDestroy(b) | f->cuGraphExecDestroy(c) | f->cuGraphExecDestroy(d);
    printf("%d %llx %llx\n", bad, planned, real);
    return bad;
}

static int call_every_function(const struct functions *f)
{
    return linear_memory(f) | virtual_memory(f) | arrays(f) | contexts(f) | objects(f) | imports(f) | graphs(f);
}
