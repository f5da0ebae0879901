/* One call of every hooked function, however the program got them. What is printed must not depend on memscope. */
#include "driver_api.h"
#include <stdio.h>

struct functions {
    CUresult (*set_current)(CUcontext);
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*pitch)(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
    CUresult (*managed)(CUdeviceptr *, size_t, unsigned);
    CUresult (*free)(CUdeviceptr);
    CUresult (*ordered)(CUdeviceptr *, size_t, CUstream);
    CUresult (*pooled)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
    CUresult (*ordered_free)(CUdeviceptr, CUstream);
    CUresult (*host_flagged)(void **, size_t, unsigned);
    CUresult (*host)(void **, size_t);
    CUresult (*host_free)(void *);
    CUresult (*host_register)(void *, size_t, unsigned);
    CUresult (*host_unregister)(void *);
    CUresult (*create)(unsigned long long *, size_t, const CUmemAllocationProp *, unsigned long long);
    CUresult (*map)(CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*release)(unsigned long long);
};

static int call_every_function(const struct functions *f)
{
    CUdeviceptr a = 0, b = 0, c = 0, d = 0, e = 0, g = 0;
    void *h = 0, *i = 0;
    size_t pitch = 0;
    static char registered[64];
    int bad = f->set_current((CUcontext)1);
    bad |= f->alloc(&a, 1000) | f->pitch(&b, &pitch, 100, 10, 4) | f->managed(&c, 3000, 1);
    bad |= f->ordered(&d, 4000, 0) | f->ordered(&e, 4500, (CUstream)0x100) | f->pooled(&g, 5000, (CUmemoryPool)3, 0);
    bad |= f->host_flagged(&h, 6000, 0) | f->host(&i, 7000) | f->host_register(registered, sizeof registered, 0);
    printf("%d %llx %llx %zu %llx %llx %llx %llx %p %p\n", bad, a, b, pitch, c, d, e, g, h, i);
    bad |= f->host_unregister(registered) | f->host_free(i) | f->host_free(h);
    bad |= f->ordered_free(g, 0) | f->ordered_free(e, (CUstream)0x100) | f->free(d) /* ordered memory, freed plainly */;
    bad |= f->free(c) | f->free(b) | f->free(a);
    printf("%d\n", bad);
    CUmemAllocationProp device = {1, 0, 1, 4, {0}}, host = {1, 0, 2, 0, {0}};
    unsigned long long on_device = 0, on_host = 0;
    bad |= f->create(&on_device, 2 << 20, &device, 0) | f->create(&on_host, 4096, &host, 0);
    bad |= f->map(0x40000000, 1 << 20, 4096, on_device, 0);
    printf("%d %llx %llx", bad, on_device, on_host);
    printf(" %d", f->create(&on_host, (size_t)1 << 41, &device, 0));
    printf(" %d", f->map(0x50000001, 4096, 0, on_device, 0));
    printf(" %d", f->unmap(0x40000000, 0));
    printf(" %d\n", f->release(0x99));
    bad |= f->release(on_device) | f->unmap(0x40000000, 1 << 20) | f->release(on_host);
    printf("%d\n", bad);
    return bad;
}
