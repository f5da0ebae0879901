/* Deletes the folder of its own log, and goes on. Argument: the folder. Prints by how much its files grew on that device. */
#define _GNU_SOURCE
#include "memscope.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    memscope_step(0);
    DIR *folder = opendir(arguments[1]);
    int log = -1;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            log = openat(dirfd(folder), entry->d_name, O_RDONLY);
            unlinkat(dirfd(folder), entry->d_name, 0);
        }
    struct stat before, after;
    fstat(log, &before);
    for (uint64_t number = 1; number < 100000; number++)
        memscope_step(number);
    fstat(log, &after);
    printf("grown by %lld chunks\n", (long long)(after.st_size - before.st_size) >> 20);
    return 0;
}
