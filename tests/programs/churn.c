/* Allocates and frees without end, and keeps its own count of returned calls in a shared file that outlives it: the truth
 * against which a killed session is compared. Argument: the file; 16 bytes, allocations and frees. */
#include "driver_api.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096))
        return 2;
    volatile uint64_t *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *context;
    if (counts == MAP_FAILED || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    CUdeviceptr held[64] = {0};
    for (uint64_t i = 0;; i++) {
        CUdeviceptr *slot = &held[i % 64];
        if (*slot) {
            if (cuMemFree_v2(*slot))
                return 1;
            counts[1]++;
        }
        if (cuMemAlloc_v2(slot, 4096 + 512 * (i % 7)))
            return 1;
        counts[0]++;
    }
}
