/* Two processes that take turns: each goes on once the other has told it something, which may carry a descriptor. */
#ifndef TWO_PROCESSES_H
#define TWO_PROCESSES_H
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int other;
static pid_t child;

/* Makes the other process; true in it. */
static int is_child(void)
{
    int ends[2];
    setvbuf(stdout, 0, _IOLBF, 0);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) || (child = fork()) < 0)
        exit(3);
    other = ends[child == 0];
    close(ends[child != 0]);
    return child == 0;
}

static void tell(const void *data, size_t bytes, int descriptor)
{
    union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct iovec part = {(void *)data, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &descriptor, sizeof(int));
    }
    if (sendmsg(other, &message, 0) != (ssize_t)bytes)
        exit(4);
}

/* Waits for what the other process tells; the descriptor that came with it, or -1. */
static int hear(void *data, size_t bytes)
{
    union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct iovec part = {data, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    int descriptor = -1;
    if (recvmsg(other, &message, 0) != (ssize_t)bytes)
        exit(5);
    if (CMSG_FIRSTHDR(&message))
        memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return descriptor;
}

/* True when the other process has ended well. */
static int ended_well(void)
{
    int status = 1;
    return waitpid(child, &status, 0) == child && status == 0;
}
#endif
