/* 16 threads allocate while the main thread forks: each child allocates by itself and leaves. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 16, TURNS = 2000, CHILDREN = 24 };
static atomic_int running = THREADS;

static void turn(size_t bytes)
{
    CUdeviceptr address;
    if (cuMemAlloc_v2(&address, bytes) || cuMemFree_v2(address))
        _exit(9);
}

static void *work(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        turn(100);
        if (i % 100 == 0)
            usleep(100);
    }
    running--;
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    turn(1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    int bad = 0, status;
    for (int child = 0; child < CHILDREN; child++) {
        pid_t pid = fork();
        if (!pid) {
            for (int i = 0; i < 50; i++)
                turn(1000 + (size_t)child);
            exit(0);
        }
        waitpid(pid, &status, 0);
        bad |= status;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", bad, (int)running);
    return bad != 0;
}
