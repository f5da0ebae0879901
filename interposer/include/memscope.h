/* memscope.h: a program says what its GPU memory is for.
 *
 * Include it from C99 or C++; there is nothing to link with, except -ldl where glibc is older than 2.34. Run under
 * `memscope run`, the calls reach memscope; otherwise each of them is one load and one branch, and does nothing.
 *
 *     memscope_step(0);
 *     memscope_phase("forward");
 *     memscope_scope_push("layer 3");
 *     cuMemAlloc(&weight, bytes);
 *     memscope_tag((const void *)weight, MEMSCOPE_WEIGHTS, "layers.3.weight");
 *     memscope_scope_pop();
 *
 * All functions may be called from any thread at any time; from a signal handler only after a first call elsewhere, because
 * that one uses dlsym. Names are C strings, in UTF-8 if they are to be read by people; NULL is "no name"; 1024 bytes of a name
 * are kept. memscope never looks at the memory behind an address.
 *
 * Requires GCC or Clang (the __atomic builtins) on Linux. */
#ifndef MEMSCOPE_H
#define MEMSCOPE_H

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What memory is for. */
enum memscope_category {
    MEMSCOPE_UNKNOWN = 0,     /* not known */
    MEMSCOPE_WEIGHTS = 1,     /* parameters and buffers of the model */
    MEMSCOPE_GRADIENTS = 2,   /* gradients of parameters */
    MEMSCOPE_ACTIVATIONS = 3, /* kept from forward for backward */
    MEMSCOPE_OPTIMIZER = 4,   /* state of the optimizer */
    MEMSCOPE_INPUTS = 5,      /* batches: data, labels, masks */
    MEMSCOPE_WORKSPACE = 6    /* temporaries, in forward too */
};

/* Implementation: memscope's functions, found once in each translation unit. */
struct memscope_functions_ {
    int searched;
    void (*tag)(const void *, int, const char *);
    void (*block_alloc)(const void *, uint64_t, void *);
    void (*block_free)(const void *);
    void (*scope_push)(const char *);
    void (*scope_pop)(void);
    void (*phase)(const char *);
    void (*step)(uint64_t);
};

/* Implementation. Stores the address of the function `name`, NULL without memscope. A handle of 0 is RTLD_DEFAULT, which C
 * programs see only if they define _GNU_SOURCE. */
static inline void memscope_find_(void *function, const char *name)
{
    void *address = dlsym((void *)0, name);
    memcpy(function, &address, sizeof address);
}

/* Implementation. Two threads may search at once: they find the same. */
static inline const struct memscope_functions_ *memscope_functions_get_(void)
{
    static struct memscope_functions_ known;
    if (!__atomic_load_n(&known.searched, __ATOMIC_ACQUIRE)) {
        struct memscope_functions_ found;
        memscope_find_(&found.tag, "memscope_tag");
        memscope_find_(&found.block_alloc, "memscope_block_alloc");
        memscope_find_(&found.block_free, "memscope_block_free");
        memscope_find_(&found.scope_push, "memscope_scope_push");
        memscope_find_(&found.scope_pop, "memscope_scope_pop");
        memscope_find_(&found.phase, "memscope_phase");
        memscope_find_(&found.step, "memscope_step");
        __atomic_store_n(&known.tag, found.tag, __ATOMIC_RELAXED);
        __atomic_store_n(&known.block_alloc, found.block_alloc, __ATOMIC_RELAXED);
        __atomic_store_n(&known.block_free, found.block_free, __ATOMIC_RELAXED);
        __atomic_store_n(&known.scope_push, found.scope_push, __ATOMIC_RELAXED);
        __atomic_store_n(&known.scope_pop, found.scope_pop, __ATOMIC_RELAXED);
        __atomic_store_n(&known.phase, found.phase, __ATOMIC_RELAXED);
        __atomic_store_n(&known.step, found.step, __ATOMIC_RELAXED);
        __atomic_store_n(&known.searched, 1, __ATOMIC_RELEASE);
    }
    return &known;
}

/* 1 when the program runs under memscope, else 0. */
static inline int memscope_is_active(void)
{
    return memscope_functions_get_()->tag != 0;
}

/* The allocation or block that is live at `address` is of `category` and called `name`, for its whole life: also for the
 * time before this call. The last tag wins. */
static inline void memscope_tag(const void *address, int category, const char *name)
{
    const struct memscope_functions_ *memscope = memscope_functions_get_();
    if (memscope->tag)
        memscope->tag(address, category, name);
}

/* For programs with their own allocator: `bytes` at `address`, inside an allocation of the driver, are in use, on `stream`
 * (a CUstream or cudaStream_t; NULL for the default stream). The allocation around it counts as a container from now on, and
 * its free part as cache. */
static inline void memscope_block_alloc(const void *address, uint64_t bytes, void *stream)
{
    const struct memscope_functions_ *memscope = memscope_functions_get_();
    if (memscope->block_alloc)
        memscope->block_alloc(address, bytes, stream);
}

/* The block at `address` is free again; its memory stays with the container. */
static inline void memscope_block_free(const void *address)
{
    const struct memscope_functions_ *memscope = memscope_functions_get_();
    if (memscope->block_free)
        memscope->block_free(address);
}

/* The calling thread enters the scope `name`. Scopes nest; what a thread allocates belongs to its open scopes. */
static inline void memscope_scope_push(const char *name)
{
    const struct memscope_functions_ *memscope = memscope_functions_get_();
    if (memscope->scope_push)
        memscope->scope_push(name);
}

/* The calling thread leaves the scope that it entered last. */
static inline void memscope_scope_pop(void)
{
    const struct memscope_functions_ *memscope = memscope_functions_get_();
    if (memscope->scope_pop)
        memscope->scope_pop();
}

/* The process is in phase `name` from now on: data, forward, loss, backward, optimizer, and so on. NULL ends the phase. */
static inline void memscope_phase(const char *name)
{
    const struct memscope_functions_ *memscope = memscope_functions_get_();
    if (memscope->phase)
        memscope->phase(name);
}

/* Training step `number` begins now, in the whole process. */
static inline void memscope_step(uint64_t number)
{
    const struct memscope_functions_ *memscope = memscope_functions_get_();
    if (memscope->step)
        memscope->step(number);
}

#ifdef __cplusplus
}
#endif

#endif
