/* 16 threads allocate and free 1000 times each, all looking up at once, and once more in the destructor of a thread key. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 16, TURNS = 1000 };
static pthread_key_t key;
static pthread_barrier_t start;
static void *driver;
static CUresult (*free_function)(CUdeviceptr);

static void free_at_exit(void *address) { free_function((CUdeviceptr)(uintptr_t)address); }

static void *work(void *unused)
{
    (void)unused;
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUdeviceptr address = 0;
    pthread_barrier_wait(&start);
    *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
    for (int turn = 0; turn < TURNS; turn++)
        if (alloc(&address, 100) || free_function(address))
            return (void *)1;
    alloc(&address, 777);
    pthread_setspecific(key, (void *)(uintptr_t)address);
    return NULL;
}

int main(void)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&free_function = dlsym(driver, "cuMemFree_v2");
    pthread_key_create(&key, free_at_exit);
    pthread_barrier_init(&start, NULL, THREADS);
    pthread_t threads[THREADS];
    int bad = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        bad |= result != NULL;
    }
    puts(bad ? "bad" : "good");
    return bad;
}
