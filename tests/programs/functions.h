/* The hooked functions, each once: how a program gets them is decided by whoever expands the list.
 *
 * X(exported name, name that cuGetProcAddress knows, CUDA version that it is asked for: of names with several meanings, the
 * one that means this function). */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H
#include "driver_api.h"

#define FUNCTIONS(X) \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", 12000) \
    X(cuMemAlloc_v2, "cuMemAlloc", 12000) \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch", 12000) \
    X(cuMemAllocManaged, "cuMemAllocManaged", 12000) \
    X(cuMemFree_v2, "cuMemFree", 12000) \
    X(cuMemAllocAsync, "cuMemAllocAsync", 12000) \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 12000) \
    X(cuMemFreeAsync, "cuMemFreeAsync", 12000) \
    X(cuMemHostAlloc, "cuMemHostAlloc", 12000) \
    X(cuMemAllocHost_v2, "cuMemAllocHost", 12000) \
    X(cuMemFreeHost, "cuMemFreeHost", 12000) \
    X(cuMemHostRegister_v2, "cuMemHostRegister", 12000) \
    X(cuMemHostUnregister, "cuMemHostUnregister", 12000) \
    X(cuMemCreate, "cuMemCreate", 12000) \
    X(cuMemMap, "cuMemMap", 12000) \
    X(cuMemUnmap, "cuMemUnmap", 12000) \
    X(cuMemRelease, "cuMemRelease", 12000) \
    X(cuArrayCreate_v2, "cuArrayCreate", 12000) \
    X(cuArray3DCreate_v2, "cuArray3DCreate", 12000) \
    X(cuArrayDestroy, "cuArrayDestroy", 12000) \
    X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 12000) \
    X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 12000) \
    X(cuCtxCreate_v2, "cuCtxCreate", 11000) \
    X(cuCtxCreate_v3, "cuCtxCreate", 12000) \
    X(cuCtxCreate_v4, "cuCtxCreate", 13000) \
    X(cuCtxDestroy_v2, "cuCtxDestroy", 12000) \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 12000) \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 10000) \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 12000) \
    X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 10000) \
    X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 12000) \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 12000) \
    X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 12000) \
    X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 10000) \
    X(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 12000) \
    X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 12000) \
    X(cuMemPoolCreate, "cuMemPoolCreate", 12000) \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 12000) \
    X(cuMemPoolImportFromShareableHandle, "cuMemPoolImportFromShareableHandle", 12000) \
    X(cuMemPoolImportPointer, "cuMemPoolImportPointer", 12000) \
    X(cuImportExternalMemory, "cuImportExternalMemory", 12000) \
    X(cuDestroyExternalMemory, "cuDestroyExternalMemory", 12000) \
    X(cuExternalMemoryGetMappedBuffer, "cuExternalMemoryGetMappedBuffer", 12000) \
    X(cuExternalMemoryGetMappedMipmappedArray, "cuExternalMemoryGetMappedMipmappedArray", 12000) \
    X(cuModuleLoad, "cuModuleLoad", 12000) \
    X(cuModuleLoadData, "cuModuleLoadData", 12000) \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 12000) \
    X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 12000) \
    X(cuModuleUnload, "cuModuleUnload", 12000) \
    X(cuLibraryLoadData, "cuLibraryLoadData", 12000) \
    X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000) \
    X(cuLibraryUnload, "cuLibraryUnload", 12000) \
    X(cuMulticastCreate, "cuMulticastCreate", 13000) \
    X(cuGraphInstantiate, "cuGraphInstantiate", 10000) \
    X(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000) \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiate", 12000) \
    X(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000) \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", 12000) \
    X(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 12000) \
    X(cuGraphAddNode, "cuGraphAddNode", 12020) \
    X(cuGraphAddNode_v2, "cuGraphAddNode", 13000) \
    X(cuGraphUpload, "cuGraphUpload", 12000) \
    X(cuGraphLaunch, "cuGraphLaunch", 12000) \
    X(cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", 12000) \
    X(cuStreamBeginCapture, "cuStreamBeginCapture", 10000) \
    X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 12000) \
    X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 13000) \
    X(cuStreamEndCapture, "cuStreamEndCapture", 12000)

struct functions {
#define X(name, symbol, version) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
};
#endif
