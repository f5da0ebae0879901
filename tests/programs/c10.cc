// A libc10 and a libc10_cuda of PyTorch's names, as far as memscope hooks them: memory at fixed addresses, and an exception
// where there is too little. Built with -DCUDA: libc10_cuda's part.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>

namespace c10 {
struct Device {
    int8_t type;
    int8_t index;
};

#ifdef CUDA
namespace cuda {
struct CUDAStream {
    uint64_t device;
    int64_t id;
};

CUDAStream getCurrentCUDAStream(signed char device)
{
    return {1, 0x40 + device};
}
} // namespace cuda
#else
void *alloc_cpu(size_t bytes)
{
    if (bytes > 1 << 20)
        throw std::bad_alloc();
    return bytes ? reinterpret_cast<void *>(0x5000) : nullptr;
}

void free_cpu(void *address)
{
    std::printf("freed %p\n", address);
}

void reportMemoryUsageToProfiler(void *address, int64_t bytes, size_t allocated, size_t reserved, Device device)
{
    std::printf("reported %p %ld %zu %zu %d %d\n", address, bytes, allocated, reserved, device.type, device.index);
    if (bytes == 13)
        throw 13;
}

void reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated, size_t reserved, Device device)
{
    std::printf("out of memory %ld %zu %zu %d %d\n", bytes, allocated, reserved, device.type, device.index);
}
#endif
} // namespace c10
