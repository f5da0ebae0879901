/* Times calls that memscope records. Arguments: threads, batches in each thread, and microseconds of sleep after each burst
 * of 32 batches. A batch is 16 pairs of an allocation and a free. Prints nanoseconds a call, as the slowest thread saw them:
 * of the median batch, of all batches together, and the processor time of all together. Sleep is in none of them. The median
 * leaves out the batches in which the log grew.
 *
 * A fourth argument is the number of frames on the stack of each allocation, at least 5; allocations then come from two places in
 * turn. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 16, BURST = 32 };
struct result { double median, mean, processor; };
static int batches, pause_us, frames;
static pthread_barrier_t start;

static double read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static double now(void) { return read_clock(CLOCK_MONOTONIC); }
static double processor(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Two places, each with a frame of its own. */
static __attribute__((noinline)) int one(CUdeviceptr *address)
{
    int result = cuMemAlloc_v2(address, 512);
    __asm__ volatile("" : : : "memory");
    return result;
}

static __attribute__((noinline)) int other(CUdeviceptr *address)
{
    int result = cuMemAlloc_v2(address, 512);
    __asm__ volatile("" : : : "memory");
    return result;
}

static __attribute__((noinline)) void work(struct result *result)
{
    double *times = malloc((size_t)(batches + 1) * sizeof *times), all = 0, used = 0;
    CUdeviceptr address;
    for (int warm = 0; warm < 100; warm++)
        if (cuMemAlloc_v2(&address, 512) || cuMemFree_v2(address))
            exit(1);
    for (int batch = 0; batch < batches; batch++)
        times[batch] = 0; /* its pages are present from here on */
    pthread_barrier_wait(&start);
    for (int burst = 0; burst < batches; burst += BURST) {
        double used_before = processor(), begin = now(), end = begin;
        for (int batch = burst; batch < burst + BURST && batch < batches; batch++) {
            double before = end;
            for (int pair = 0; pair < PAIRS; pair++) {
                if (!frames)
                    cuMemAlloc_v2(&address, 512);
                else if (pair % 2)
                    one(&address);
                else
                    other(&address);
                cuMemFree_v2(address);
            }
            end = now();
            times[batch] = end - before;
        }
        all += end - begin;
        used += processor() - used_before;
        if (pause_us)
            usleep((useconds_t)pause_us);
    }
    result->mean = all / (2.0 * PAIRS * batches);
    result->processor = used / (2.0 * PAIRS * batches);
    qsort(times, (size_t)batches, sizeof *times, compare);
    result->median = times[batches / 2] / (2.0 * PAIRS);
    free(times);
}

static __attribute__((noinline)) void deeper(int more, struct result *result)
{
    if (more)
        deeper(more - 1, result);
    else
        work(result);
    __asm__ volatile("" : : : "memory");
}

/* Below a place are: work, the calls of deeper, this, and two frames of the C library. */
static void *begin(void *result)
{
    deeper(frames > 5 ? frames - 6 : 0, result);
    return NULL;
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    int threads = atoi(arguments[1]);
    batches = atoi(arguments[2]);
    pause_us = atoi(arguments[3]);
    frames = count > 4 ? atoi(arguments[4]) : 0;
    pthread_t ids[16];
    struct result results[16], slowest = {0, 0, 0};
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, begin, &results[i]);
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        slowest.median = results[i].median > slowest.median ? results[i].median : slowest.median;
        slowest.mean = results[i].mean > slowest.mean ? results[i].mean : slowest.mean;
        slowest.processor = results[i].processor > slowest.processor ? results[i].processor : slowest.processor;
    }
    printf("%.3f %.3f %.3f\n", slowest.median, slowest.mean, slowest.processor);
    return 0;
}
