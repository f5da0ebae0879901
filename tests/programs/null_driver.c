/* A libcuda.so.1 that does nothing: it hands out addresses and takes them back. Stateless, so that its cost is next to none.
 *
 * What a call does is decided by its arguments: an allocation of 0 bytes is invalid, one of 1 TiB or more is out of memory,
 * a free of an odd address is refused. Bits 44.. of an address say which device it is on; a pool's handle is its device + 1,
 * a context's too.
 *
 * -DREUSE: the 64 addresses of small allocations are given again the moment they are freed, to any thread, before
 * the call returns.
 * -DNESTED: cuMemAllocManaged calls the exported cuMemAlloc_v2, as the program would (build without -Bsymbolic).
 * -DOLD: an old driver, without cuDeviceGetUuid_v2 and cuMemGetInfo_v2.
 * -DLEAVES: cuMemAllocManaged calls the program's leave_driver, which may not return.
 * -DLIFE: it works from cuInit on, and until cuInit(0xdead).
 * -DOTHER_ENTRIES: cuGetProcAddress gives entries that are not the exported ones. */
#include "driver_api.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#ifdef LEAVES
void leave_driver(void);
#endif

/* Bits 0..7 of a context's handle are its device + 1. */
static _Thread_local uintptr_t context_of_thread = 1;
#define device_of_thread ((int)(context_of_thread & 255) - 1)
static _Atomic uint64_t next = 0x10000000;

static uint64_t hand_out(size_t bytes, int device)
{
    uint64_t room = (bytes + 511) & ~(uint64_t)511;
    return atomic_fetch_add_explicit(&next, room, memory_order_relaxed) | (uint64_t)device << 44;
}

#ifdef REUSE
static atomic_int taken[64];
static uint64_t small(void)
{
    for (unsigned place = 0;; place = (place + 1) % 64)
        if (!atomic_exchange(&taken[place], 1))
            return 0x1000 + place * 512;
}
#endif

#ifdef LIFE
static int life = NOT_INITIALIZED;
#define LIVE(call) (life ? life : (call))
#else
#define LIVE(call) (call)
#endif

CUresult cuInit(unsigned flags)
{
#ifdef LIFE
    life = flags == 0xdead ? DEINITIALIZED : SUCCESS;
#endif
    (void)flags;
    return SUCCESS;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, int device)
{
    if (bytes == 0 || !address)
        return INVALID_VALUE;
    if (bytes >> 40)
        return OUT_OF_MEMORY;
#ifdef REUSE
    if (bytes <= 512) {
        *address = small();
        return SUCCESS;
    }
#endif
    *address = hand_out(bytes, device);
    return SUCCESS;
}

static CUresult release(CUdeviceptr address)
{
    if (address & 1)
        return INVALID_VALUE;
#ifdef REUSE
    if (address >= 0x1000 && address < 0x1000 + 64 * 512)
        atomic_store(&taken[(address - 0x1000) / 512], 0);
    sched_yield();
#endif
    return SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    context_of_thread = (uintptr_t)context;
    return SUCCESS;
}
#ifndef OLD
CUresult cuCtxGetCurrent(CUcontext *context)
{
    errno = 34;
    *context = (CUcontext)context_of_thread;
    return SUCCESS;
}
#endif
CUresult cuCtxGetDevice(CUdevice *device)
{
    errno = 33; /* whoever asks must not let the program see this */
    if (device_of_thread < 0)
        return INVALID_CONTEXT;
    *device = device_of_thread;
    return SUCCESS;
}
#ifdef OLD
#define cuDeviceGetUuid_v2 cuDeviceGetUuid
#define cuMemGetInfo_v2 cuMemGetInfo
#endif
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    memcpy(uuid->bytes, "null driver 0000", 16);
    uuid->bytes[15] = (unsigned char)device;
    return SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)64 << 30;
    return SUCCESS;
}
CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    if (!free || !total)
        return INVALID_VALUE;
    *free = (size_t)1 << 30;
    *total = (size_t)64 << 30;
    return SUCCESS;
}
CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address)
{
    if (attribute != 9)
        return INVALID_VALUE;
    *(int *)data = (int)(address >> 44);
    return SUCCESS;
}

CUresult cuMemAlloc(unsigned *address, unsigned bytes) { *address = bytes; return SUCCESS; }
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    return LIVE(allocate(address, bytes, device_of_thread));
}
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    if (!pitch)
        return INVALID_VALUE;
    *pitch = (width + 511) & ~(size_t)511;
    return allocate(address, *pitch * height, device_of_thread);
}
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    (void)flags;
#ifdef LEAVES
    leave_driver();
#endif
#ifdef NESTED
    return cuMemAlloc_v2(address, bytes);
#else
    return allocate(address, bytes, device_of_thread);
#endif
}

/* Host functions run on a thread of the driver's; a free waits for them. */
struct host_work { void (*function)(void *); void (*callback)(CUstream, CUresult, void *); CUstream stream; void *data; };
static struct host_work waiting[64];
static int works;
static void *run_host_work(void *unused)
{
    for (int i = 0; i < works; i++)
        if (waiting[i].function)
            waiting[i].function(waiting[i].data);
        else
            waiting[i].callback(waiting[i].stream, SUCCESS, waiting[i].data);
    return unused;
}
CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *), void *data)
{
    waiting[works++ % 64] = (struct host_work){function, NULL, stream, data};
    return SUCCESS;
}
CUresult cuStreamAddCallback(CUstream stream, void (*callback)(CUstream, CUresult, void *), void *data, unsigned flags)
{
    (void)flags;
    waiting[works++ % 64] = (struct host_work){NULL, callback, stream, data};
    return SUCCESS;
}
static void wait_for_host_work(void)
{
    pthread_t thread;
    static atomic_int busy;
    if (!works || atomic_exchange(&busy, 1))
        return;
    if (!pthread_create(&thread, NULL, run_host_work, NULL))
        pthread_join(thread, NULL);
    works = 0;
    busy = 0;
}
CUresult cuMemFree_v2(CUdeviceptr address)
{
    wait_for_host_work();
    return LIVE(release(address));
}
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    /* A stream's device: its handle's bits 8.. */
    uint64_t handle = (uint64_t)(uintptr_t)stream;
    return allocate(address, bytes, handle > 2 ? (int)(handle >> 8) : device_of_thread);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    uint64_t handle = (uint64_t)(uintptr_t)stream;
    return allocate(address, bytes, handle > 2 ? (int)(handle >> 8) : device_of_thread);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)stream;
    return allocate(address, bytes, (int)(uintptr_t)pool - 1);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)stream;
    return allocate(address, bytes, (int)(uintptr_t)pool - 1);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) { (void)stream; return release(address); }
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) { (void)stream; return release(address); }
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate((CUdeviceptr *)address, bytes, 0);
}
CUresult cuMemAllocHost_v2(void **address, size_t bytes) { return allocate((CUdeviceptr *)address, bytes, 0); }
CUresult cuMemFreeHost(void *address) { return release((CUdeviceptr)(uintptr_t)address); }
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    (void)flags;
    return address && bytes ? SUCCESS : INVALID_VALUE;
}
CUresult cuMemHostUnregister(void *address) { return release((CUdeviceptr)(uintptr_t)address); }

CUresult cuMemCreate(unsigned long long *handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)
{
    (void)properties, (void)flags;
    if (!handle)
        return INVALID_VALUE;
    if (bytes > (size_t)1 << 40)
        return OUT_OF_MEMORY;
    *handle = 0x70 + bytes / 4096 % 16;
    return SUCCESS;
}
CUresult cuMemRelease(unsigned long long handle) { return release(handle << 1 | (handle == 0x99)); }
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags)
{
    (void)bytes, (void)offset, (void)flags;
    return address & 1 || handle < 0x70 ? INVALID_VALUE : SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) { return bytes ? release(address) : INVALID_VALUE; }

static CUresult make_context(CUcontext *context, CUdevice device)
{
    static _Atomic uintptr_t made = 0x5000;
    if (device > 7)
        return INVALID_VALUE;
    *context = (CUcontext)(atomic_fetch_add(&made, 0x100) | (uintptr_t)(device + 1));
    return cuCtxSetCurrent(*context);
}
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    (void)flags;
    return make_context(context, device);
}
CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned flags, CUdevice device)
{
    (void)affinity, (void)count, (void)flags;
    return make_context(context, device);
}
CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags, CUdevice device)
{
    (void)parameters, (void)flags;
    return make_context(context, device);
}
CUresult cuCtxDestroy_v2(CUcontext context)
{
    if ((uintptr_t)context < 0x100)
        return INVALID_CONTEXT; /* a primary one, or none */
    if (context_of_thread == (uintptr_t)context)
        context_of_thread = 1;
    return SUCCESS;
}
/* The primary context of a device: its handle is the device + 1. */
static atomic_int references[8];
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (device > 7)
        return INVALID_VALUE;
    atomic_fetch_add(&references[device], 1);
    *context = (CUcontext)(uintptr_t)(device + 1);
    return SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return atomic_load(&references[device]) ? atomic_fetch_sub(&references[device], 1), SUCCESS : INVALID_CONTEXT;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    atomic_store(&references[device], 0);
    return SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    errno = 35;
    *flags = 0;
    *active = atomic_load(&references[device]) > 0;
    return SUCCESS;
}

/* Arrays: the handle of one is 0xa0000 and on; one of 1 TiB or wider is out of memory. */
static CUresult make_array(CUarray *array, size_t width)
{
    static _Atomic uint64_t next_array = 0xa0000;
    if (!array)
        return INVALID_VALUE;
    if (width >> 40)
        return OUT_OF_MEMORY;
    *array = (CUarray)atomic_fetch_add(&next_array, 16);
    return SUCCESS;
}
CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *description)
{
    return make_array(array, array ? description->width : 0);
}
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *description)
{
    return make_array(array, description->width);
}
CUresult cuArrayDestroy(CUarray array) { return release((CUdeviceptr)(uintptr_t)array); }
CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *description, unsigned levels)
{
    return levels ? make_array(array, description->width) : INVALID_VALUE;
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) { return cuArrayDestroy(array); }

#include "null_objects.h"

/* A function of a CUDA version that is still to come. */
CUresult cuCtxCreate_v5(CUcontext *context, long one, long two, long three, long four, long five, long six)
{
    *context = (CUcontext)(one + two + three + four + five + six);
    return SUCCESS;
}

#ifdef OTHER_ENTRIES
static CUresult alloc_entry(CUdeviceptr *address, size_t bytes) { return allocate(address, bytes, device_of_thread); }
static CUresult free_entry(CUdeviceptr address) { return release(address); }
#define ALLOC_ENTRY alloc_entry
#define FREE_ENTRY free_entry
#else
#define ALLOC_ENTRY cuMemAlloc_v2
#define FREE_ENTRY cuMemFree_v2
#endif

#define ANY 0 /* both kinds of default stream */
static const struct { const char *symbol; int since; uint64_t stream; void *function; } exports[] = {
    {"cuCtxSetCurrent", 4000, ANY, (void *)cuCtxSetCurrent},
    {"cuMemAlloc", 2000, ANY, (void *)cuMemAlloc},
    {"cuMemAlloc", 3020, ANY, (void *)ALLOC_ENTRY},
    {"cuMemAllocPitch", 3020, ANY, (void *)cuMemAllocPitch_v2},
    {"cuMemAllocManaged", 6000, ANY, (void *)cuMemAllocManaged},
    {"cuMemFree", 3020, ANY, (void *)FREE_ENTRY},
    {"cuMemAllocAsync", 11020, LEGACY_STREAM, (void *)cuMemAllocAsync},
    {"cuMemAllocAsync", 11020, PER_THREAD_STREAM, (void *)cuMemAllocAsync_ptsz},
    {"cuMemAllocFromPoolAsync", 11020, LEGACY_STREAM, (void *)cuMemAllocFromPoolAsync},
    {"cuMemAllocFromPoolAsync", 11020, PER_THREAD_STREAM, (void *)cuMemAllocFromPoolAsync_ptsz},
    {"cuMemFreeAsync", 11020, LEGACY_STREAM, (void *)cuMemFreeAsync},
    {"cuMemFreeAsync", 11020, PER_THREAD_STREAM, (void *)cuMemFreeAsync_ptsz},
    {"cuMemHostAlloc", 2020, ANY, (void *)cuMemHostAlloc},
    {"cuMemAllocHost", 3020, ANY, (void *)cuMemAllocHost_v2},
    {"cuMemFreeHost", 2000, ANY, (void *)cuMemFreeHost},
    {"cuMemHostRegister", 6050, ANY, (void *)cuMemHostRegister_v2},
    {"cuMemHostUnregister", 4000, ANY, (void *)cuMemHostUnregister},
    {"cuMemCreate", 10020, ANY, (void *)cuMemCreate},
    {"cuMemRelease", 10020, ANY, (void *)cuMemRelease},
    {"cuMemMap", 10020, ANY, (void *)cuMemMap},
    {"cuMemUnmap", 10020, ANY, (void *)cuMemUnmap},
    {"cuArrayCreate", 3020, ANY, (void *)cuArrayCreate_v2},
    {"cuArray3DCreate", 3020, ANY, (void *)cuArray3DCreate_v2},
    {"cuArrayDestroy", 2000, ANY, (void *)cuArrayDestroy},
    {"cuMipmappedArrayCreate", 5000, ANY, (void *)cuMipmappedArrayCreate},
    {"cuMipmappedArrayDestroy", 5000, ANY, (void *)cuMipmappedArrayDestroy},
    {"cuCtxCreate", 3020, ANY, (void *)cuCtxCreate_v2},
    {"cuCtxCreate", 11040, ANY, (void *)cuCtxCreate_v3},
    {"cuCtxCreate", 12050, ANY, (void *)cuCtxCreate_v4},
    {"cuCtxDestroy", 4000, ANY, (void *)cuCtxDestroy_v2},
    {"cuDevicePrimaryCtxRetain", 7000, ANY, (void *)cuDevicePrimaryCtxRetain},
    {"cuDevicePrimaryCtxRelease", 7000, ANY, (void *)cuDevicePrimaryCtxRelease},
    {"cuDevicePrimaryCtxRelease", 11000, ANY, (void *)cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxReset", 7000, ANY, (void *)cuDevicePrimaryCtxReset},
    {"cuDevicePrimaryCtxReset", 11000, ANY, (void *)cuDevicePrimaryCtxReset_v2},
    {"cuMemRetainAllocationHandle", 10020, ANY, (void *)cuMemRetainAllocationHandle},
    {"cuMemImportFromShareableHandle", 10020, ANY, (void *)cuMemImportFromShareableHandle},
    {"cuIpcOpenMemHandle", 4010, ANY, (void *)cuIpcOpenMemHandle},
    {"cuIpcOpenMemHandle", 11000, ANY, (void *)cuIpcOpenMemHandle_v2},
    {"cuIpcCloseMemHandle", 10020, ANY, (void *)cuIpcCloseMemHandle},
    {"cuMemPoolCreate", 10020, ANY, (void *)cuMemPoolCreate},
    {"cuMemPoolDestroy", 10020, ANY, (void *)cuMemPoolDestroy},
    {"cuMemPoolImportFromShareableHandle", 10020, ANY, (void *)cuMemPoolImportFromShareableHandle},
    {"cuMemPoolImportPointer", 10020, ANY, (void *)cuMemPoolImportPointer},
    {"cuImportExternalMemory", 10020, ANY, (void *)cuImportExternalMemory},
    {"cuDestroyExternalMemory", 10020, ANY, (void *)cuDestroyExternalMemory},
    {"cuExternalMemoryGetMappedBuffer", 10020, ANY, (void *)cuExternalMemoryGetMappedBuffer},
    {"cuExternalMemoryGetMappedMipmappedArray", 10020, ANY, (void *)cuExternalMemoryGetMappedMipmappedArray},
    {"cuModuleLoad", 10020, ANY, (void *)cuModuleLoad},
    {"cuModuleLoadData", 10020, ANY, (void *)cuModuleLoadData},
    {"cuModuleLoadDataEx", 10020, ANY, (void *)cuModuleLoadDataEx},
    {"cuModuleLoadFatBinary", 10020, ANY, (void *)cuModuleLoadFatBinary},
    {"cuModuleUnload", 10020, ANY, (void *)cuModuleUnload},
    {"cuLibraryLoadData", 10020, ANY, (void *)cuLibraryLoadData},
    {"cuLibraryLoadFromFile", 10020, ANY, (void *)cuLibraryLoadFromFile},
    {"cuLibraryUnload", 10020, ANY, (void *)cuLibraryUnload},
    {"cuMulticastCreate", 12010, ANY, (void *)cuMulticastCreate},
    {"cuGraphInstantiate", 10000, ANY, (void *)cuGraphInstantiate},
    {"cuGraphInstantiate", 11000, ANY, (void *)cuGraphInstantiate_v2},
    {"cuGraphInstantiate", 12000, ANY, (void *)cuGraphInstantiateWithFlags},
    {"cuGraphInstantiateWithParams", 10020, LEGACY_STREAM, (void *)cuGraphInstantiateWithParams},
    {"cuGraphInstantiateWithParams", 10020, PER_THREAD_STREAM, (void *)cuGraphInstantiateWithParams_ptsz},
    {"cuGraphExecDestroy", 10020, ANY, (void *)cuGraphExecDestroy},
    {"cuGraphAddMemAllocNode", 10020, ANY, (void *)cuGraphAddMemAllocNode},
    {"cuGraphAddNode", 12020, ANY, (void *)cuGraphAddNode},
    {"cuGraphAddNode", 12030, ANY, (void *)cuGraphAddNode_v2},
    {"cuGraphUpload", 10020, LEGACY_STREAM, (void *)cuGraphUpload},
    {"cuGraphUpload", 10020, PER_THREAD_STREAM, (void *)cuGraphUpload_ptsz},
    {"cuGraphLaunch", 10020, LEGACY_STREAM, (void *)cuGraphLaunch},
    {"cuGraphLaunch", 10020, PER_THREAD_STREAM, (void *)cuGraphLaunch_ptsz},
    {"cuDeviceGraphMemTrim", 10020, ANY, (void *)cuDeviceGraphMemTrim},
    {"cuStreamBeginCapture", 10000, LEGACY_STREAM, (void *)cuStreamBeginCapture},
    {"cuStreamBeginCapture", 10000, PER_THREAD_STREAM, (void *)cuStreamBeginCapture_ptsz},
    {"cuStreamBeginCapture", 10010, LEGACY_STREAM, (void *)cuStreamBeginCapture_v2},
    {"cuStreamBeginCapture", 10010, PER_THREAD_STREAM, (void *)cuStreamBeginCapture_v2_ptsz},
    {"cuStreamBeginCaptureToGraph", 12030, LEGACY_STREAM, (void *)cuStreamBeginCaptureToGraph},
    {"cuStreamBeginCaptureToGraph", 12030, PER_THREAD_STREAM, (void *)cuStreamBeginCaptureToGraph_ptsz},
    {"cuStreamEndCapture", 10020, ANY, (void *)cuStreamEndCapture},
    {"cuCtxCreate", 14000, ANY, (void *)cuCtxCreate_v5},
    {"cuGetProcAddress", 11030, ANY, (void *)cuGetProcAddress},
    {"cuGetProcAddress", 12000, ANY, (void *)cuGetProcAddress_v2},
};

static void *look_up(const char *symbol, int version, uint64_t flags)
{
    uint64_t stream = flags & PER_THREAD_STREAM ? PER_THREAD_STREAM : LEGACY_STREAM;
    int newest = 0;
    void *found = NULL;
    for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++)
        if (!strcmp(exports[i].symbol, symbol) && exports[i].since <= version && exports[i].since > newest &&
            (exports[i].stream == ANY || exports[i].stream == stream)) {
            newest = exports[i].since;
            found = exports[i].function;
        }
    return found;
}
CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    *function = look_up(symbol, version, flags);
    return *function ? SUCCESS : NOT_FOUND;
}
/* As since CUDA 13: an unknown symbol is a success with a null address. */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    *function = look_up(symbol, version, flags);
    if (status)
        *status = *function ? 0 : 1;
    return SUCCESS;
}
