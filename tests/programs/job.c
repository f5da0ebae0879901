/* A rank of a distributed job, without any library of its launcher's: holds (rank + 1) * 16 MiB of device memory. Prints
 * `rank R of N`. Ends with 0, or with 3 when it was out of memory. */
#include "driver_api.h"
#include <stdio.h>
#include <stdlib.h>

static int named(const char *const *names) {
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value) return atoi(value);
    }
    return -1;
}

int main(void) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", 0};
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", 0};
    void *context;
    CUdeviceptr held;
    int rank = named(ranks);
    if (rank < 0 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuMemAlloc_v2(&held, (size_t)(rank + 1) << 24)) return 3;
    printf("rank %d of %d\n", rank, named(sizes));
    return cuMemFree_v2(held) ? 2 : 0;
}
