#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text/common.h"

/* ---- System calls ---------------------------------------------------------------------------- */

struct call {
    int number;
    const char *name, *description;
};

static const struct call io_calls[] = {
    {SYS_openat, "openat", "opens a file"},
    {SYS_socket, "socket", "creates a socket"},
    {SYS_socketpair, "socketpair", "creates sockets"},
    {SYS_connect, "connect", "connects"},
    {SYS_bind, "bind", "binds a socket"},
    {SYS_sendto, "sendto", "sends"},
    {SYS_write, "write", "writes"},
    {SYS_writev, "writev", "writes"},
    {SYS_pwrite64, "pwrite", "writes"},
    {SYS_pipe2, "pipe2", "creates a pipe"},
    {SYS_mkdirat, "mkdirat", "creates a directory"},
    {SYS_mknodat, "mknodat", "creates a named pipe or device"},
    {SYS_unlinkat, "unlinkat", "deletes a file or directory"},
    {SYS_renameat2, "renameat2", "renames a file or directory"},
    {SYS_clone, "clone", "starts a thread or a process"},
    {SYS_clone3, "clone3", "starts a thread or a process"},
    {SYS_execve, "execve", "runs a program"},
    {SYS_nanosleep, "nanosleep", "sleeps"},
    {SYS_clock_nanosleep, "clock_nanosleep", "sleeps"},
    {SYS_ppoll, "ppoll", "waits"},
    {SYS_epoll_create1, "epoll_create1", "creates an epoll descriptor"},
    {SYS_eventfd2, "eventfd2", "creates an event descriptor"},
    {SYS_flock, "flock", "locks a file"},
/* older calls, which not every architecture has */
#ifdef SYS_open
    {SYS_open, "open", "opens a file"},
    {SYS_creat, "creat", "creates a file"},
    {SYS_pipe, "pipe", "creates a pipe"},
    {SYS_mkdir, "mkdir", "creates a directory"},
    {SYS_mknod, "mknod", "creates a named pipe or device"},
    {SYS_unlink, "unlink", "deletes a file or directory"},
    {SYS_rename, "rename", "renames a file or directory"},
    {SYS_fork, "fork", "starts a process"},
    {SYS_vfork, "vfork", "starts a process"},
    {SYS_poll, "poll", "waits"},
    {SYS_select, "select", "waits"},
#endif
};

static const struct call own_calls[] = {
    {SYS_close, "close", ""}, {SYS_exit_group, "exit_group", ""}, {SYS_sendmsg, "sendmsg", ""}};

enum { MAX_RULES = 2 * WR_COUNT_OF(io_calls) + 4 };

/* For each listed call a jump and its action, then the default action. */
static struct sock_fprog make_filter(enum vet_watch_kind kind, struct sock_filter rules[MAX_RULES])
{
    const struct call *calls = kind == VET_WATCH_IO ? io_calls : own_calls;
    size_t count = kind == VET_WATCH_IO ? WR_COUNT_OF(io_calls) : WR_COUNT_OF(own_calls);
    uint32_t listed = kind == VET_WATCH_IO ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
    uint32_t others = kind == VET_WATCH_IO ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF;
    unsigned short used = 0;
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        rules[used++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number, 0, 1);
        rules[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    }
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
    return (struct sock_fprog){used, rules};
}

/* ---- In the child ---------------------------------------------------------------------------- */

static bool send_descriptor(int through, int fd)
{
    char byte = 0;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    return sendmsg(through, &message, 0) == 1;
}

static _Noreturn void run_watched(enum vet_watch_kind kind, int through, void (*code)(void *ctx), void *ctx)
{
    struct sock_filter rules[MAX_RULES];
    const struct sock_fprog filter = make_filter(kind, rules);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int listener =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    if (listener < 0 || !send_descriptor(through, listener))
        _exit(1);
    close(listener);
    close(through);
    code(ctx);
    _exit(0);
}

/* ---- In the parent --------------------------------------------------------------------------- */

/* Returns -1 if the child cannot be monitored. */
static int receive_descriptor(int through)
{
    char byte;
    int fd = -1;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(through, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

/* Reads a string from the child's memory, as much of it as is readable. */
static void read_text(pid_t pid, uint64_t address, char *text, size_t size)
{
    struct iovec here = {text, size - 1}, there = {(void *)(uintptr_t)address, size - 1};
    memset(text, 0, size);
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) > 0)
        return;
    there.iov_len = here.iov_len = 64; /* the string may be near the end of the last mapped page */
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0)
        snprintf(text, size, "a file");
}

/* Libraries read system files on first use, for example OpenSSL its configuration; this is allowed. */
static bool is_system_read(const char *path, uint64_t flags)
{
    static const char *const folders[] = {"/etc/", "/usr/", "/lib", "/proc/", "/sys/", "/dev/urandom"};
    if ((flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT)
        return false;
    for (size_t i = 0; i < WR_COUNT_OF(folders); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

/* Writes a description of the call; leaves the text unchanged if the call is allowed. */
static void describe(const struct seccomp_notif *request, enum vet_watch_kind kind, char *text, size_t size)
{
    char path[256] = "";
    const struct seccomp_data *data = &request->data;
    if (kind != VET_WATCH_IO) {
        snprintf(text, size, "makes system call number %d", data->nr);
        for (size_t i = 0; i < WR_COUNT_OF(io_calls); i++)
            if (io_calls[i].number == data->nr)
                snprintf(text, size, "calls %s", io_calls[i].name);
        return;
    }
    if (data->nr == SYS_openat) {
        read_text((pid_t)request->pid, data->args[1], path, sizeof path);
        if (!is_system_read(path, data->args[2]))
            snprintf(text, size, "opens %.200s (openat)", path);
        return;
    }
    for (size_t i = 0; i < WR_COUNT_OF(io_calls); i++)
        if (io_calls[i].number == data->nr)
            snprintf(text, size, "%s (%s)", io_calls[i].description, io_calls[i].name);
}

/* Continues every call and describes the first one that is not allowed. Returns false if the kernel does not
 * support SECCOMP_USER_NOTIF_FLAG_CONTINUE. */
static bool monitor(int listener, enum vet_watch_kind kind, char *text, size_t size)
{
    struct pollfd source = {.fd = listener, .events = POLLIN};
    for (;;) {
        struct seccomp_notif request;
        struct seccomp_notif_resp response = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (poll(&source, 1, -1) < 0 && errno != EINTR)
            return false;
        if (!(source.revents & POLLIN))
            return true; /* the monitored process has exited */
        memset(&request, 0, sizeof request);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
            continue; /* the process was killed */
        if (!*text)
            describe(&request, kind, text, size);
        response.id = request.id;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0 && errno == EINVAL)
            return false;
    }
}

bool vet_watch(enum vet_watch_kind kind, void (*code)(void *ctx), void *ctx, char *text, size_t size)
{
    int ends[2], status = 0;
    *text = '\0';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        snprintf(text, size, "socketpair: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        run_watched(kind, ends[1], code, ctx);
    close(ends[1]);
    int listener = pid > 0 ? receive_descriptor(ends[0]) : -1;
    close(ends[0]);
    bool watched = listener >= 0 && monitor(listener, kind, text, size);
    if (listener >= 0)
        close(listener);
    if (!watched) {
        snprintf(text, size, "system calls cannot be monitored on this system (seccomp)");
        if (pid > 0)
            kill(pid, SIGKILL);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (watched && WIFSIGNALED(status)) { /* raise the same signal in the check's process, for its verdict */
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return watched;
}
