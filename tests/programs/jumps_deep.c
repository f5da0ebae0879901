/* Jumps out of hooked calls, and allocates again from deeper functions: from the driver's own call (-DLEAVES driver, argument
 * "driver"), or out of a signal handler at any moment (argument "signal"). Every allocation of 1000 + N bytes must be there. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { TURNS = 200 };
static sigjmp_buf back;
static volatile sig_atomic_t armed;

__attribute__((visibility("default"))) void leave_driver(void) { siglongjmp(back, 1); }

static void leave(int signal)
{
    (void)signal;
    if (armed) {
        armed = 0;
        siglongjmp(back, 1);
    }
}

/* From a frame of 64 KiB that is used all over. */
static __attribute__((noinline)) void allocate_deep(size_t bytes)
{
    volatile char room[1 << 16];
    CUdeviceptr address;
    for (size_t i = 0; i < sizeof room; i += 8)
        room[i] = room[i + 4] = 1;
    if (cuMemAlloc_v2(&address, bytes) || cuMemFree_v2(address))
        puts("refused");
}

int main(int count, char **arguments)
{
    int by_signal = count > 1 && !strcmp(arguments[1], "signal");
    struct sigaction action = {0};
    struct itimerval once = {{0, 0}, {0, 150}};
    CUdeviceptr address;
    action.sa_handler = leave;
    sigaction(SIGALRM, &action, NULL);
    allocate_deep(999);
    for (volatile int turn = 0; turn < TURNS; turn++) {
        if (!sigsetjmp(back, 1)) {
            if (by_signal) {
                armed = 1;
                setitimer(ITIMER_REAL, &once, NULL);
                for (;;)
                    if (!cuMemAlloc_v2(&address, 64))
                        cuMemFree_v2(address);
            }
            cuMemAllocManaged(&address, 4096, 1);
        }
        allocate_deep(1000 + (size_t)turn);
    }
    puts("done");
    return 0;
}
