/* Two processes, each on a device of its own, and then the first program replaced by another (exec). Rank r allocates
 * (r + 1) * 8 MiB on device r and frees nothing: its end does. */
#include "driver_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>


static int work(int rank, size_t bytes) {
    void *context;
    CUdeviceptr memory;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, rank) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&memory, bytes))
        return 1;
    usleep(100 * 1000);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) /* the program after exec */
        return work(0, 1u << 20) ? 1 : 6;
    for (int rank = 0; rank < 2; rank++) {
        if (fork() == 0) {
            char value[2] = {(char)('0' + rank), 0};
            setenv("RANK", value, 1);
            int bad = work(rank, (size_t)(rank + 1) * (8u << 20));
            if (bad || rank)
                _exit(bad);
            execl(argv[0], argv[0], "again", (char *)NULL); /* rank 0: same process, next program */
            _exit(1);
        }
    }
    int status, sum = 0;
    while (wait(&status) > 0)
        sum += WEXITSTATUS(status);
    return sum;
}
