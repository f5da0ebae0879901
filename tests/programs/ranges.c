/* A program with NVTX ranges, which knows nothing of memscope: what it prints is what NVTX gives back. Argument "train": steps of a
 * trainer that allocates from the driver in its passes. */
#ifdef NVTX_HEADERS
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#else
#include "nvtx_by_hand.h"
#endif
#include <stdio.h>
#include <string.h>

typedef unsigned long long CUdeviceptr;
/* A driver of our tests has no need of these. */
extern int cuInit(unsigned) __attribute__((weak));
extern int cuDevicePrimaryCtxRetain(void **, int) __attribute__((weak));
extern int cuCtxSetCurrent(void *);
extern int cuMemAlloc_v2(CUdeviceptr *, size_t);
extern int cuMemFree_v2(CUdeviceptr);

static CUdeviceptr take(size_t mebibytes)
{
    CUdeviceptr address = 0;
    if (cuMemAlloc_v2(&address, mebibytes << 20))
        exit(3);
    return address;
}

static nvtxEventAttributes_t named(const char *message, nvtxStringHandle_t registered)
{
    nvtxEventAttributes_t attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = registered ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
    if (registered)
        attributes.message.registered = registered;
    else
        attributes.message.ascii = message;
    return attributes;
}

static void every_way(void)
{
    nvtxMarkA("a mark");
    int results[6];
    results[0] = nvtxRangePushA("narrow");
    results[1] = nvtxRangePushW(L"w\u00efde");
    nvtxEventAttributes_t attributes = named("attributes", NULL);
    results[2] = nvtxRangePushEx(&attributes);
    take(1);
    results[3] = nvtxRangePop();
    nvtxRangePop();
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
    attributes = named("not registered: no profiler", string);
    results[4] = nvtxDomainRangePushEx(domain, &attributes);
    take(2);
    results[5] = nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangeId_t range = nvtxRangeStartA("warming up"), other = nvtxDomainRangeStartEx(domain, &attributes);
    take(3);
    nvtxDomainRangeEnd(domain, other);
    nvtxRangeEnd(range);
    take(4);
    for (int i = 0; i < 6; i++)
        printf("%d\n", results[i]);
}

static void train(void)
{
    CUdeviceptr weights = take(8), state = 0;
    for (int step = 0; step < 3; step++) {
        char name[32];
        snprintf(name, sizeof name, "step %d", step + 10);
        nvtxRangePushA(name);
        nvtxRangePushA("Forward");
        nvtxRangePushA("layer");
        CUdeviceptr activation = take(4), temporary = take(2);
        cuMemFree_v2(temporary);
        nvtxRangePop();
        nvtxRangePop();
        nvtxRangePushA("backward");
        CUdeviceptr workspace = take(1);
        cuMemFree_v2(activation);
        cuMemFree_v2(workspace);
        nvtxRangePop();
        nvtxRangePushA("Optimizer.step#SGD.step");
        nvtxRangePushA("step"); /* the optimizer's own, none of the program's */
        if (!state)
            state = take(16);
        nvtxRangePop();
        nvtxRangePop();
        nvtxRangePop();
    }
    cuMemFree_v2(state);
    cuMemFree_v2(weights);
}

int main(int count, char **arguments)
{
    void *context;
    if (cuInit && (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)))
        return 1;
    if (count > 1 && !strcmp(arguments[1], "train"))
        train();
    else
        every_way();
    return 0;
}
