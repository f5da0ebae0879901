/* Closes every descriptor it does not know, and opens a file of its own at all of them, while events go on.
 * Argument: a file to create. */
#define _GNU_SOURCE
#include "memscope.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void many_events(uint64_t first)
{
    for (uint64_t number = first; number < first + 40000; number++)
        memscope_step(number);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    many_events(0);
    for (int descriptor = 3; descriptor < 1024; descriptor++)
        close(descriptor);
    many_events(40000);
    for (int descriptor = 3; descriptor < 1024; descriptor++)
        close(descriptor);
    int own = open(arguments[1], O_RDWR | O_CREAT | O_EXCL, 0600);
    for (int descriptor = own + 1; descriptor < 1024; descriptor++)
        dup2(own, descriptor);
    many_events(80000);
    struct stat status;
    fstat(own, &status);
    printf("own file: %lld bytes\n", (long long)status.st_size);
    return 0;
}
