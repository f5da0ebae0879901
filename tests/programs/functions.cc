// Allocations in functions of every kind that C++ has, for stacks of machine code. The places of the calls are named by comments.
#include <cstddef>
#include <vector>

extern "C" {
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
}

static volatile int sink;

static inline __attribute__((always_inline)) unsigned long long take(size_t bytes)
{
    unsigned long long address = 0;
    if (cuMemAlloc_v2(&address, bytes)) // place: take
        __builtin_trap();
    return address;
}

namespace net {
template <class Number> struct Layer {
    std::vector<unsigned long long> weights;
    __attribute__((noinline)) void forward(size_t count)
    {
        weights.push_back(take(count * sizeof(Number))); // place: forward
        sink = sink + 1;
    }
};
} // namespace net

static __attribute__((noinline)) int train(int steps)
{
    net::Layer<float> one;
    net::Layer<double> other;
    auto step = [&](size_t count) __attribute__((noinline)) {
        one.forward(count); // place: float
        other.forward(count); // place: double
        sink = sink + 1;
    };
    for (int i = 0; i < steps; i++)
        step(1 << 18); // place: step
    return sink;
}

int main()
{
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    sink = train(3); // place: main
    return 0;
}
