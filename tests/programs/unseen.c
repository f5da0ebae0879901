/* Filters its own system calls so that nothing sees it coming, with its death as the answer to any other. Arguments: "end", which
 * allows writing and ending, and ends in order; or "read" and a program, which allows all but to open files for writing, and
 * becomes that program. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int install(struct sock_filter *rules, unsigned short count)
{
    struct sock_fprog program = {count, rules};
    return (int)(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) | syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static int only_end(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(rules, sizeof rules / sizeof *rules);
}

static int only_read(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE | O_CREAT, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return install(rules, sizeof rules / sizeof *rules);
}

int main(int count, char **arguments)
{
    static const char unharmed[] = "unharmed\n";
    if (count < 2)
        return 2;
    if (count > 2) {
        if (only_read())
            return perror("filter"), 99;
        return execv(arguments[2], arguments + 2), 1;
    }
    if (only_end())
        return perror("filter"), 99;
    return write(1, unharmed, sizeof unharmed - 1) == sizeof unharmed - 1 ? 3 : 1;
}
