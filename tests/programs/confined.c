/* Takes something away from itself, before or after its first events, and goes on. Arguments: what (chroot PATH, user,
 * files N, seccomp-errno, seccomp-kill), "first" or "late", events before, events after. Prints what it can see of itself. */
#define _GNU_SOURCE
#include "memscope.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Allows what this program does, and what any CUDA program needs to open the device; nothing else. */
static int filter(unsigned otherwise)
{
    static const unsigned allowed[] = {SYS_write, SYS_read, SYS_openat, SYS_close, SYS_mmap, SYS_munmap, SYS_fstat, SYS_newfstatat,
        SYS_exit_group, SYS_brk, SYS_futex, SYS_clock_gettime, SYS_rt_sigreturn, SYS_gettid, SYS_ioctl, SYS_getrandom};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter rules[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (unsigned i = 0; i < COUNT; i++)
        rules[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], COUNT - i, 0);
    rules[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    rules[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {COUNT + 3, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int confine(const char *what, const char *more)
{
    if (!strcmp(what, "chroot"))
        return chroot(more) || chdir("/");
    if (!strcmp(what, "user"))
        return setgid(65534) || setuid(65534);
    if (!strcmp(what, "files")) {
        struct rlimit limit = {strtoul(more, NULL, 10), strtoul(more, NULL, 10)};
        return setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (!strcmp(what, "seccomp-errno"))
        return filter(SECCOMP_RET_ERRNO | EPERM);
    if (!strcmp(what, "seccomp-kill"))
        return filter(SECCOMP_RET_KILL_PROCESS);
    return 1;
}

int main(int count, char **arguments)
{
    if (count < 6)
        return 2;
    uint64_t number = 0, before = strtoull(arguments[4], NULL, 10), after = strtoull(arguments[5], NULL, 10);
    int late = !strcmp(arguments[3], "late");
    for (; late && number < before; number++)
        memscope_step(number);
    if (confine(arguments[1], arguments[2]))
        return perror(arguments[1]), 99;
    for (uint64_t end = number + after; number < end; number++)
        memscope_step(number);
    /* The numbers of files that it opens now. */
    for (int file = 0, i = 0; i < 40 && (file = open("/dev/null", O_RDONLY)) >= 0; i++)
        printf("%d ", file);
    puts("unharmed");
    return 3;
}
