/* Threads that fight for the same few addresses: the driver gives a freed one away at once. */
#include "driver_api.h"
#include <pthread.h>
#include <stdio.h>

static void *work(void *unused)
{
    CUdeviceptr address[4];
    for (int turn = 0; turn < 3000; turn++) {
        for (int i = 0; i < 4; i++)
            cuMemAlloc_v2(&address[i], 64);
        for (int i = 0; i < 4; i++)
            cuMemFree_v2(address[i]);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
