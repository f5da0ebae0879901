/* Programs that each count their steps from 1: "plain MIB STEPS" one of them; "forks one-after-another|side-by-side" two forked ones,
 * of which the second begins its first step when the first has ended; "rank" a rank of a job, where the one with rank 1 does so. */
#include "driver_api.h"
#include "memscope.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Weights before the first step; in step N, N times a quarter of them. */
static void train(size_t weights, int steps)
{
    CUcontext context;
    CUdeviceptr kept, taken;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&kept, weights))
        exit(1);
    for (int step = 1; step <= steps; step++) {
        memscope_step(step);
        if (cuMemAlloc_v2(&taken, weights / 4 * step) || cuMemFree_v2(taken))
            exit(1);
    }
}

static pid_t child(size_t weights, const int *wait_for)
{
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        if (wait_for && (close(wait_for[1]) || read(wait_for[0], &byte, 1) != 0))
            _exit(2);
        usleep(50000);
        train(weights, 3);
        _exit(0);
    }
    return pid;
}

static int forks(int side_by_side)
{
    int status, ends[2];
    if (pipe(ends))
        return 1;
    pid_t first = child(4 << 20, NULL), second = side_by_side ? child(8 << 20, ends) : 0;
    if (waitpid(first, &status, 0) != first || status)
        return 1;
    if (!side_by_side)
        second = child(8 << 20, NULL);
    else if (close(ends[1]))
        return 1;
    return waitpid(second, &status, 0) != second || status;
}

/* Both are there before either trains. */
static int rank(void)
{
    const char *number = getenv("OMPI_COMM_WORLD_RANK");
    if (!number)
        number = getenv("PMI_RANK");
    if (!number)
        return 1;
    int second = !strcmp(number, "1");
    if (!second) {
        usleep(300000);
        train(4 << 20, 3);
        fclose(fopen("trained", "w"));
        return 0;
    }
    while (access("trained", F_OK))
        usleep(10000);
    usleep(300000);
    train(8 << 20, 3);
    return 0;
}

int main(int count, char **words)
{
    if (count == 4 && !strcmp(words[1], "plain"))
        return train(strtoul(words[2], NULL, 10) << 20, atoi(words[3])), 0;
    if (count == 3 && !strcmp(words[1], "forks"))
        return forks(!strcmp(words[2], "side-by-side"));
    return rank();
}
