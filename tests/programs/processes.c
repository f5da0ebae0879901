/* Processes that come from processes. Each allocates so many bytes as tells who it is. Arguments say how. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void allocate(size_t bytes)
{
    CUdeviceptr address;
    if (cuMemAlloc_v2(&address, bytes))
        _exit(9);
}

static int wait_for(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    int status = 0;
    if (!strcmp(how, "leaf")) {
        allocate(5000);
        return 0;
    }
    allocate(1000);
    if (!strcmp(how, "fork")) {
        pid_t child = fork();
        if (!child) {
            allocate(2000);
            pid_t grandchild = fork();
            if (!grandchild) {
                allocate(3000);
                exit(0);
            }
            exit(wait_for(grandchild));
        }
        status = wait_for(child);
    } else if (!strcmp(how, "clone")) {
        /* No atfork handler of the C library runs. */
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (!child) {
            allocate(2000);
            _exit(0);
        }
        status = wait_for(child);
    } else if (!strcmp(how, "quiet-fork")) {
        pid_t child = fork();
        if (!child)
            exit(0); /* never calls the driver */
        status = wait_for(child);
    } else if (!strcmp(how, "vfork")) {
        pid_t child = vfork();
        if (!child) {
            execl("/proc/self/exe", arguments[0], "leaf", (char *)NULL);
            _exit(8);
        }
        status = wait_for(child);
    } else if (!strcmp(how, "spawn")) {
        pid_t child;
        char *leaf[] = {arguments[0], (char *)"leaf", NULL};
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, leaf, environ))
            return 7;
        status = wait_for(child);
    } else if (!strcmp(how, "exec")) {
        execl("/proc/self/exe", arguments[0], "leaf", (char *)NULL);
        return 8;
    }
    allocate(1001);
    printf("%d\n", status);
    return status;
}
