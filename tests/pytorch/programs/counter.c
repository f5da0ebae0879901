// A count of the bytes that PyTorch holds on the CPU, which knows nothing of memscope.
//
// Preloaded into the program, it stands before c10::alloc_cpu and c10::free_cpu and writes to the file that COUNTER_FILE names,
// one event after another: the address, the bytes (negative for a free) and the bytes live after the event, as three numbers of
// eight bytes. It keeps the sizes itself, since a free names none. For programs that allocate on one thread.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct live {
    uint64_t address, bytes;
    struct live *next;
};

static struct live *buckets[1 << 14];
static int64_t live_bytes;

static struct live **bucket(uint64_t address) { return &buckets[(address >> 6) % (1 << 14)]; }

// The function behind ours: Python loads libc10 outside the global scope, where RTLD_NEXT does not look.
static void *real(const char *name) {
    void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) abort();
    return function;
}

static void note(uint64_t address, int64_t bytes) {
    static FILE *file;
    if (!file) {
        file = fopen(getenv("COUNTER_FILE"), "w");
        if (!file) abort();
    }
    live_bytes += bytes;
    int64_t event[3] = {(int64_t)address, bytes, live_bytes};
    if (fwrite(event, sizeof event, 1, file) != 1) abort();
}

void *alloc_cpu(size_t bytes) __asm__("_ZN3c109alloc_cpuEm");
void *alloc_cpu(size_t bytes) {
    static void *(*plain)(size_t);
    if (!plain) plain = (void *(*)(size_t))real("_ZN3c109alloc_cpuEm");
    void *memory = plain(bytes);
    if (memory) {
        struct live *one = malloc(sizeof *one), **first = bucket((uint64_t)memory);
        if (!one) abort();
        *one = (struct live){(uint64_t)memory, bytes, *first};
        *first = one;
        note(one->address, (int64_t)bytes);
    }
    return memory;
}

void free_cpu(void *memory) __asm__("_ZN3c108free_cpuEPv");
void free_cpu(void *memory) {
    static void (*plain)(void *);
    if (!plain) plain = (void (*)(void *))real("_ZN3c108free_cpuEPv");
    for (struct live **at = bucket((uint64_t)memory); memory && *at; at = &(*at)->next) {
        struct live *one = *at;
        if (one->address == (uint64_t)memory) {
            note(one->address, -(int64_t)one->bytes);
            *at = one->next;
            free(one);
            break;
        }
    }
    plain(memory);
}
