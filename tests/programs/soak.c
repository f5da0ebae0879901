/* Declares blocks and frees them, two events each. Arguments: processes, pairs in each, pairs a second (0: as fast as it can), and, of
   one process, blocks that live to its end. */
#include "memscope.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void work(uint64_t pairs, uint64_t rate)
{
    double begin = now();
    for (uint64_t pair = 0; pair < pairs; pair++) {
        void *address = (void *)(uintptr_t)(0x100000 + pair % 4096 * 512);
        memscope_block_alloc(address, 512, NULL);
        memscope_block_free(address);
        while (rate && pair % 100 == 99 && now() - begin < (double)pair / (double)rate)
            usleep(1000);
    }
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    uint64_t pairs = strtoull(arguments[2], NULL, 10), rate = strtoull(arguments[3], NULL, 10);
    int processes = atoi(arguments[1]), status, bad = 0;
    for (int held = 0; count > 4 && held < atoi(arguments[4]); held++)
        memscope_block_alloc((void *)(0x40000000 + (uintptr_t)held * 512), 512, NULL);
    if (processes == 1)
        return work(pairs, rate), 0;
    for (int i = 0; i < processes; i++)
        if (!fork()) {
            work(pairs, rate);
            exit(0);
        }
    while (wait(&status) > 0)
        bad |= status;
    return bad != 0;
}
