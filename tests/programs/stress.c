/* Threads that record as fast as they can; every event carries a number of its own.
 * Arguments: threads, events of each. */
#include "memscope.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t events;
static pthread_barrier_t start;

static void *work(void *first)
{
    uint64_t number = (uint64_t)(uintptr_t)first;
    pthread_barrier_wait(&start);
    for (uint64_t turn = 0; turn < events; turn++)
        memscope_step(number + turn);
    return NULL;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    unsigned threads = (unsigned)atoi(arguments[1]);
    events = strtoull(arguments[2], NULL, 10);
    pthread_t ids[64];
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)(i * events));
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    puts("done");
    return 0;
}
