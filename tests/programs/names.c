/* Two threads that meet the same new names at the same moment. The names are long, so that there is time to meet. */
#define _GNU_SOURCE
#include "memscope.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 2, NAMES = 2000 };
static atomic_int arrived;

static void *work(void *unused)
{
    char name[1001];
    memset(name, '.', 1000);
    name[1000] = 0;
    for (int number = 0; number < NAMES; number++) {
        name[snprintf(name, 32, "name %d", number)] = '.';
        arrived++;
        for (int turn = 0; arrived < THREADS * (number + 1); turn++)
            if (turn > 1000)
                sched_yield();
        memscope_scope_push(name);
        memscope_scope_pop();
    }
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
