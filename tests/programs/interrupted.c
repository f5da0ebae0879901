/* A signal handler that annotates at any moment, in the middle of other events and of the growth of the log. */
#define _GNU_SOURCE
#include "memscope.h"
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static void tick(int signal)
{
    (void)signal;
    memscope_step(1000000 + (uint64_t)ticks++);
}

int main(void)
{
    struct sigaction action = {0};
    struct itimerval every = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    memscope_step(0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (uint64_t number = 1; number < 100000; number++)
        memscope_step(number);
    while (!ticks)
        ;
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d\n", ticks > 0);
    return 0;
}
