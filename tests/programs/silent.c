/* Allocates and frees, takes system calls or clocks away from itself, allocates and frees again, from a page of code that has not
 * called before, and ends without the C library. Arguments: what (strict, filter, deny NUMBER, tsc), "first" or "late". What it does
 * to itself it does so that nothing sees it coming where it is deny. Writes one line. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int install(struct sock_filter *rules, unsigned short count)
{
    struct sock_fprog program = {count, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Nothing but writing and ending. */
static int filter(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(rules, sizeof rules / sizeof *rules);
}

/* Everything but one call, which fails; as if somebody else had done it before the program began. */
static int deny(unsigned number)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return (int)(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) | syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static int confine(const char *what, const char *number)
{
    if (!strcmp(what, "strict"))
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (!strcmp(what, "filter"))
        return filter();
    if (!strcmp(what, "deny"))
        return deny((unsigned)atoi(number));
    if (!strcmp(what, "tsc"))
        return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    return 1;
}

/* The way to the driver is not bound at the first call: that would be a system call too. */
static CUresult (*volatile allocate)(CUdeviceptr *, size_t), (*volatile release)(CUdeviceptr);

#define CALLS(NAME) \
    __attribute__((noinline, aligned(4096))) static int NAME(int count, size_t bytes) \
    { \
        int bad = 0; \
        for (int i = 0; i < count; i++) { \
            CUdeviceptr address; \
            bad |= allocate(&address, bytes) | release(address); \
        } \
        return bad; \
    }
CALLS(before)
CALLS(after)

static void say(const char *text)
{
    if (write(1, text, strlen(text)) < 0)
        syscall(SYS_exit, 1);
}

int main(int count, char **arguments)
{
    if (count < 4 || cuInit(0))
        return 2;
    allocate = cuMemAlloc_v2, release = cuMemFree_v2;
    int bad = !strcmp(arguments[3], "late") ? before(10, 100) : 0;
    if (confine(arguments[1], arguments[2]))
        return 99;
    say(bad | after(500, 200) ? "bad\n" : "unharmed\n");
    syscall(SYS_exit, 3);
    return 1;
}
