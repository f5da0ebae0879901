/* Known chains of callers that end in an allocation, each checked by the program itself: glibc's backtrace() tells, at the same
 * place, the addresses that a correct walk gives. It prints a line for each allocation, in order:
 *
 *     <bytes> <frame> <frame> …
 *
 * the innermost frame first, each as module (the file's last name) + address in the file in hexadecimal, of the last byte of the
 * call. The first one is the function that allocates. Argument: the case. */
#define _GNU_SOURCE
#include "driver_api.h"
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST = 128 };
static size_t bytes = 512;

/* Prints the caller's stack as backtrace() sees it, without this function. */
static void tell(size_t size, void **frames, int count)
{
    printf("%zu", size);
    for (int i = 1; i < count; i++) {
        Dl_info info;
        struct link_map *map;
        char *address = (char *)frames[i] - 1;
        if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))
            printf(" ?");
        else {
            const char *name = *map->l_name ? map->l_name : program_invocation_name, *slash = strrchr(name, '/');
            printf(" %s+%lx", slash ? slash + 1 : name, (unsigned long)(address - (char *)map->l_addr));
        }
    }
    printf("\n");
}

/* An allocation of its own size here and now. The call's own place is in no backtrace, so it is in a function of its own, and both
 * are called from the same function. */
#define ALLOCATE() do { allocate(); ask(); } while (0)

static __attribute__((noinline)) void allocate(void)
{
    CUdeviceptr address;
    bytes += 512;
    if (cuMemAlloc_v2(&address, bytes))
        exit(3);
}

static __attribute__((noinline)) void ask(void)
{
    void *frames[MOST + 8];
    tell(bytes, frames, backtrace(frames, MOST + 8));
}

static volatile int never;

static __attribute__((noinline)) void leaf(void)
{
    ALLOCATE();
    never++;
}

static __attribute__((noinline)) int middle(int depth)
{
    char buffer[100 + 16];
    memset(buffer, depth, sizeof buffer);
    leaf();
    return buffer[depth % 100] + never;
}

static inline __attribute__((always_inline)) int built_in(int depth) { return middle(depth) + 1; }
static __attribute__((noinline)) int outer(int depth) { return built_in(depth) * 2; }

/* A frame of a size that is known at run time only. */
static __attribute__((noinline)) int variable(int size)
{
    char buffer[size];
    memset(buffer, size, (size_t)size);
    leaf();
    return buffer[size / 2];
}

/* A frame that is aligned more than the stack is. */
static __attribute__((noinline)) int aligned(int value)
{
    _Alignas(64) char buffer[128];
    memset(buffer, value, sizeof buffer);
    leaf();
    return buffer[value % 100];
}

static __attribute__((noinline)) int recurse(int depth)
{
    if (depth == 0) {
        leaf();
        return never;
    }
    int inside = recurse(depth - 1);
    return inside + never; /* no loop */
}

/* Called by the C library. */
static int compare(const void *one, const void *other)
{
    leaf();
    return *(const int *)one - *(const int *)other;
}

static void *thread(void *unused)
{
    outer(3);
    return unused;
}

static void handler(int signal) { middle(signal); }

static jmp_buf back;
static __attribute__((noinline)) void jump(int value)
{
    leaf();
    longjmp(back, value);
}

/* The frame register holds a number that is no address, or one that leads nowhere good, and nothing tells of it. backtrace() would
 * follow it, so that it is not asked. */
static __attribute__((noinline)) void broken(uintptr_t value)
{
#ifdef __x86_64__
    register uintptr_t in __asm__("r12") = value;
    register void (*function)(void) __asm__("r13") = allocate;
    __asm__ volatile("mov %%rsp, %%rbx\n\t"
                     "mov %%rbp, %%r14\n\t"
                     "sub $128, %%rsp\n\t"
                     "and $-16, %%rsp\n\t"
                     "mov %0, %%rbp\n\t"
                     "call *%1\n\t"
                     "mov %%r14, %%rbp\n\t"
                     "mov %%rbx, %%rsp"
                     :
                     : "r"(in), "r"(function)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r14", "memory", "cc");
#endif
}

/* From here on, opening, mapping or looking at anything ends the process. */
static int filter(void)
{
    static const int forbidden[] = {SYS_open, SYS_openat, SYS_mmap, SYS_process_vm_readv, SYS_pread64, SYS_stat, SYS_prlimit64};
    enum { COUNT = sizeof forbidden / sizeof *forbidden };
    struct sock_filter rules[2 * COUNT + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++) {
        rules[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden[i], 0, 1);
        rules[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    rules[2 * COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 2 * COUNT + 2, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static ucontext_t main_context, other_context;
static void coroutine(void)
{
    outer(5);
    swapcontext(&other_context, &main_context);
}

int main(int count, char **arguments)
{
    const char *which = count > 1 ? arguments[1] : "";
    void *warm[2];
    backtrace(warm, 2); /* it loads a library at its first call */
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (!strcmp(which, "chain")) {
        outer(1);
        variable(300);
        aligned(7);
        int numbers[2] = {1, 2};
        qsort(numbers, 2, sizeof *numbers, compare);
    } else if (!strcmp(which, "recursion")) {
        recurse(count > 2 ? atoi(arguments[2]) : 10000);
        outer(1);
    } else if (!strcmp(which, "threads")) {
        for (int i = 0; i < 3; i++) {
            pthread_t id;
            pthread_create(&id, NULL, thread, NULL);
            pthread_join(id, NULL);
        }
    } else if (!strcmp(which, "filter")) {
        outer(1);
        if (filter())
            return 99;
        outer(2);
        aligned(7);
    } else if (!strcmp(which, "fork")) {
        outer(1);
        fflush(stdout);
        pid_t child = fork();
        outer(2);
        if (child == 0)
            return 0;
        waitpid(child, NULL, 0);
    } else if (!strcmp(which, "signal")) {
        struct sigaction action = {.sa_handler = handler};
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
    } else if (!strcmp(which, "signal-stack")) {
        static char room[1 << 16];
        stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
        sigaltstack(&stack, NULL);
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        outer(1);
    } else if (!strcmp(which, "longjmp")) {
        for (volatile int i = 0; i < 3; i++)
            if (!setjmp(back))
                jump(1);
        outer(1);
    } else if (!strcmp(which, "broken")) {
        uintptr_t here = (uintptr_t)&which;
        uintptr_t values[] = {0, 1, 0xdeadbeef, UINTPTR_MAX, UINTPTR_MAX - 7, here, here & ~(uintptr_t)7, here + (1 << 30),
                              (uintptr_t)"text", 0x800000000000u, (uintptr_t)&values};
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            broken(values[i]);
    } else if (!strcmp(which, "coroutine")) {
        static char room[1 << 16];
        getcontext(&other_context);
        other_context.uc_stack.ss_sp = room;
        other_context.uc_stack.ss_size = sizeof room;
        makecontext(&other_context, coroutine, 0);
        swapcontext(&main_context, &other_context);
        outer(1);
    } else if (!strcmp(which, "reload")) {
        /* Two libraries that are made of the same source with different names of functions, at the same address if it can be. */
        for (int i = 0; i < 6; i++) {
            void *library = dlopen(arguments[2 + i % 2], RTLD_NOW);
            void (*call)(void (*)(void)) = library ? (void (*)(void (*)(void)))dlsym(library, "call") : NULL;
            if (!call)
                return 4;
            call(leaf);
            dlclose(library);
        }
    } else
        return 2;
    return 0;
}
