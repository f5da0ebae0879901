/* A program under a sampling profiler: SIGPROF a thousand times a second, without SA_RESTART, on a stack of its own, while it
 * allocates. The handler keeps errno, as every handler must: in the middle of a call of the driver it is the driver's. After the call
 * it is what it was before. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile sig_atomic_t samples;

static void sample(int signal)
{
    int before = errno;
    (void)signal;
    errno = 5;
    samples++;
    errno = before;
}

int main(void)
{
    stack_t stack = {malloc(1 << 16), 0, 1 << 16};
    struct sigaction action = {0};
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    CUdeviceptr address;
    action.sa_handler = sample;
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&stack, NULL);
    errno = 77;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    int bad = 0, foreign_errors = 0, i;
    for (i = 0; i < 100000 || samples < 100; i++) {
        if (i < 100000)
            bad |= cuMemAlloc_v2(&address, 100) | cuMemFree_v2(address);
        foreign_errors += errno != 77;
    }
    setitimer(ITIMER_PROF, &never, NULL);
    printf("%d %d %d\n", bad, samples >= 100, foreign_errors);
    return bad;
}
