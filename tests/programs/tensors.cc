// Calls libc10's functions as PyTorch does: linked, or (with an argument) from a plugin that was loaded out of the global scope,
// as Python loads its modules.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <new>

#ifndef PLUGIN_PATH
namespace c10 {
struct Device {
    int8_t type;
    int8_t index;
};
void *alloc_cpu(size_t);
void free_cpu(void *);
void reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t, Device);
void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device);
} // namespace c10

extern "C" int use()
{
    void *tensor = c10::alloc_cpu(4000);
    std::printf("%p %p\n", tensor, c10::alloc_cpu(0));
    try {
        c10::alloc_cpu(1 << 30);
    } catch (const std::bad_alloc &) {
        std::puts("bad_alloc");
    }
    c10::free_cpu(tensor);
    c10::free_cpu(nullptr);
    // A CPU tensor again, as with PyTorch's own profiler on; a CUDA tensor; one that is freed; a device that is no CUDA device.
    c10::reportMemoryUsageToProfiler(tensor, 4000, 1, 2, {0, -1});
    c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(0x9000), 4096, 3, 4, {1, 2});
    c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(0x9000), -4096, 5, 6, {1, 2});
    c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(0x9000), 8, 7, 8, {12, 0});
    try {
        c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(0xa000), 13, 9, 10, {1, 0});
    } catch (int thrown) {
        std::printf("thrown %d\n", thrown);
    }
    c10::reportOutOfMemoryToProfiler(1 << 30, 11, 12, {1, 0});
    return 0;
}
#endif

#ifdef PLUGIN_PATH
int main()
{
    void *plugin = dlopen(PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        std::puts(dlerror());
        return 1;
    }
    return reinterpret_cast<int (*)()>(dlsym(plugin, "use"))();
}
#elif !defined(PLUGIN)
int main()
{
    return use();
}
#endif
