/*
 * Starts /bin/true in the way that the argument names, most of them without what is preloaded. Prints what the call returned and its
 * errno where it comes back; else the end of /bin/true is the end of this program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *words[] = {"true", NULL};
static char *none[] = {NULL};
static char *others[] = {"LD_PRELOAD=", "PATH=/bin", NULL};

static void start(int signal) {
    (void)signal;
    execve("/bin/true", words, none);
    _exit(9);
}

/* In 10 KiB, which is more than the least that a handler has on machines with large registers, and not much more. */
static void start_in_a_handler(void) {
    static char room[10240];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = start, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "";
    int result = 0;
    errno = 0;
    if (strcmp(way, "kept") == 0) {
        result = execve("/bin/true", words, environ);
    } else if (strcmp(way, "emptied") == 0) {
        result = execve("/bin/true", words, others);
    } else if (strcmp(way, "null") == 0) {
        result = execve("/bin/true", words, NULL);
    } else if (strcmp(way, "own") == 0) {
        unsetenv("LD_PRELOAD");
        result = execv("/bin/true", words);
    } else if (strcmp(way, "after a vfork") == 0) {
        pid_t child = vfork();
        if (child == 0) {
            execve("/bin/true", words, none);
            _exit(9);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("%d\n", status);
        return 0;
    } else if (strcmp(way, "in a handler on little stack") == 0) {
        start_in_a_handler();
    } else if (strcmp(way, "among folders") == 0) {
        execve("/nowhere/true", words, none);
        result = execve("/bin/true", words, none);
    } else if (strcmp(way, "nowhere") == 0) {
        result = execve("/nowhere/true", words, none);
    } else {
        char *volatile no_path = NULL;
        result = execve(no_path, words, none);
    }
    printf("%d %d\n", result, errno);
    return 0;
}
