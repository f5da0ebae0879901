/* Leaves a hooked call by other ways than its return: the driver (-DLEAVES) calls back, and the program jumps away or ends
 * the thread. What follows is recorded as ever. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

static jmp_buf back;
static _Thread_local int jumps;

__attribute__((visibility("default"))) void leave_driver(void)
{
    if (jumps)
        longjmp(back, 1);
    pthread_exit((void *)7);
}

static void *end_inside(void *unused)
{
    CUdeviceptr address;
    cuMemAlloc_v2(&address, 100);
    cuMemAllocManaged(&address, 4096, 1);
    return unused;
}

int main(void)
{
    CUdeviceptr address;
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, end_inside, NULL);
    pthread_join(thread, &result);
    printf("%p\n", result);
    jumps = 1;
    for (volatile int turn = 0; turn < 3; turn++)
        if (!setjmp(back))
            cuMemAllocManaged(&address, 4096, 1);
    cuMemAlloc_v2(&address, 200);
    cuMemFree_v2(address);
    return 0;
}
