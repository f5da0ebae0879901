/* The part of null_driver.c that makes things without telling their bytes: modules, pools, graphs, imports. A handle is 0xb0000
 * and on; an odd one is refused. */
#ifndef NULL_OBJECTS_H
#define NULL_OBJECTS_H

static CUresult make_object(void *out, const void *from)
{
    static _Atomic uint64_t next_object = 0xb0000;
    if (!out || !from)
        return INVALID_VALUE;
    *(uint64_t *)out = atomic_fetch_add(&next_object, 16);
    return SUCCESS;
}
static CUresult end_object(void *handle) { return (uintptr_t)handle & 1 ? INVALID_VALUE : SUCCESS; }

CUresult cuModuleLoad(CUmodule *module, const char *path) { return make_object(module, path); }
CUresult cuModuleLoadData(CUmodule *module, const void *image) { return make_object(module, image); }
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    return count && (!options || !values) ? INVALID_VALUE : make_object(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) { return make_object(module, image); }
CUresult cuModuleUnload(CUmodule module) { return end_object(module); }
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *options, void **values, unsigned count, int *of_library,
                           void **its_values, unsigned its_count)
{
    /* The last arguments come over the stack. */
    (void)options, (void)values, (void)of_library;
    return count == 5 && its_count == 8 && its_values == (void **)7 ? make_object(library, code) : INVALID_VALUE;
}
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *options, void **values, unsigned count,
                               int *of_library, void **its_values, unsigned its_count)
{
    return cuLibraryLoadData(library, path, options, values, count, of_library, its_values, its_count);
}
CUresult cuLibraryUnload(CUlibrary library) { return end_object(library); }
CUresult cuMulticastCreate(unsigned long long *handle, const void *properties) { return make_object(handle, properties); }

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) { return make_object(pool, properties); }
CUresult cuMemPoolDestroy(CUmemoryPool pool) { return end_object(pool); }
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shared, int type, unsigned long long flags)
{
    return type == 1 && !flags ? make_object(pool, shared) : INVALID_VALUE;
}
CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, void *data)
{
    (void)pool;
    return data ? allocate(address, 7000, device_of_thread) : INVALID_VALUE;
}
/* Whatever is asked, it lies in 12 KiB. */
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    errno = 36;
    *base = address;
    *bytes = 12288;
    return SUCCESS;
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    /* 64 bytes by value, and an argument behind them. */
    if (flags != 1 || handle.reserved[0] != 'i' || handle.reserved[63] != 'h')
        return INVALID_VALUE;
    *address = 0x66000000;
    return SUCCESS;
}
CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr address) { return release(address); }
CUresult cuImportExternalMemory(CUexternalMemory *memory, const void *description) { return make_object(memory, description); }
CUresult cuDestroyExternalMemory(CUexternalMemory memory) { return end_object(memory); }
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description)
{
    (void)memory;
    return allocate(address, description->size, device_of_thread);
}
CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array, CUexternalMemory memory, const void *description)
{
    return memory ? make_object(array, description) : INVALID_VALUE;
}
CUresult cuMemImportFromShareableHandle(unsigned long long *handle, void *shared, int type)
{
    return type == 1 ? make_object(handle, shared) : INVALID_VALUE;
}
CUresult cuMemRetainAllocationHandle(unsigned long long *handle, void *address)
{
    *handle = 0x70;
    return address ? SUCCESS : INVALID_VALUE;
}

/* Graphs: one that was launched keeps 3 MiB of its device until a trim; a captured call gives an address. */
static _Atomic uint64_t graph_bytes[8];
static _Thread_local CUstream capturing; /* the stream, or null */
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *text, size_t bytes)
{
    return bytes == 5 && !node && !text ? make_object(exec, graph) : INVALID_VALUE;
}
CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *text, size_t bytes)
{
    return cuGraphInstantiate_v2(exec, graph, node, text, bytes);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    return flags == 3 ? make_object(exec, graph) : INVALID_VALUE;
}
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, void *parameters)
{
    return parameters ? make_object(exec, graph) : INVALID_VALUE;
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, void *parameters)
{
    return parameters ? make_object(exec, graph) : OUT_OF_MEMORY;
}
CUresult cuGraphExecDestroy(CUgraphExec exec) { return end_object(exec); }
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    if (after || count)
        return INVALID_VALUE;
    parameters->dptr = 0x77000000;
    return make_object(node, graph);
}
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, CUgraphNodeParams *parameters)
{
    if (parameters->type == 10)
        return cuGraphAddMemAllocNode(node, graph, after, count, &parameters->alloc);
    return make_object(node, graph);
}
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                           CUgraphNodeParams *parameters)
{
    return edges ? INVALID_VALUE : cuGraphAddNode(node, graph, after, count, parameters);
}
static CUresult run_graph(CUgraphExec exec)
{
    if ((uintptr_t)exec & 1)
        return INVALID_VALUE;
    atomic_store(&graph_bytes[device_of_thread & 7], 3 << 20);
    return SUCCESS;
}
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) { return stream == (CUstream)9 ? INVALID_VALUE : run_graph(exec); }
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) { return stream == (CUstream)8 ? NOT_FOUND : run_graph(exec); }
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return stream == (CUstream)7 ? INVALID_VALUE : run_graph(exec); }
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { return stream == (CUstream)6 ? NOT_FOUND : run_graph(exec); }
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
    errno = 37;
    *(uint64_t *)value = attribute == 2 ? atomic_load(&graph_bytes[device & 7]) : 1;
    return SUCCESS;
}
CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    atomic_store(&graph_bytes[device & 7], 0);
    return SUCCESS;
}
static CUresult begin_capture(CUstream stream) { return capturing = stream, stream ? SUCCESS : INVALID_VALUE; }
CUresult cuStreamBeginCapture(CUstream stream) { return begin_capture(stream); }
CUresult cuStreamBeginCapture_ptsz(CUstream stream) { return begin_capture(stream ? stream : (CUstream)2); }
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) { return mode > 2 ? INVALID_VALUE : begin_capture(stream); }
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
    return mode > 2 ? INVALID_VALUE : cuStreamBeginCapture_ptsz(stream);
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count,
                                     int mode)
{
    return graph && !after && !edges && !count && mode == 2 ? begin_capture(stream) : INVALID_VALUE;
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges,
                                          size_t count, int mode)
{
    return cuStreamBeginCaptureToGraph(stream ? stream : (CUstream)2, graph, after, edges, count, mode);
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    capturing = NULL;
    *graph = (CUgraph)0xc0000;
    return SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    errno = 38;
    *status = capturing && stream == capturing;
    return SUCCESS;
}
#endif
