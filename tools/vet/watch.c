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
    const char *name, *does;
};

static const struct call io_calls[] = {
    {SYS_openat, "openat", "opens a file"},
    {SYS_socket, "socket", "makes a socket"},
    {SYS_socketpair, "socketpair", "makes sockets"},
    {SYS_connect, "connect", "connects"},
    {SYS_bind, "bind", "binds a socket"},
    {SYS_sendto, "sendto", "sends"},
    {SYS_write, "write", "writes"},
    {SYS_writev, "writev", "writes"},
    {SYS_pwrite64, "pwrite", "writes"},
    {SYS_pipe2, "pipe2", "makes a pipe"},
    {SYS_mkdirat, "mkdirat", "makes a folder"},
    {SYS_mknodat, "mknodat", "makes a named pipe or device"},
    {SYS_unlinkat, "unlinkat", "deletes something"},
    {SYS_renameat2, "renameat2", "renames something"},
    {SYS_clone, "clone", "starts a thread or a process"},
    {SYS_clone3, "clone3", "starts a thread or a process"},
    {SYS_execve, "execve", "runs a program"},
    {SYS_nanosleep, "nanosleep", "sleeps"},
    {SYS_clock_nanosleep, "clock_nanosleep", "sleeps"},
    {SYS_ppoll, "ppoll", "waits"},
    {SYS_epoll_create1, "epoll_create1", "prepares to wait"},
    {SYS_eventfd2, "eventfd2", "makes an event descriptor"},
    {SYS_flock, "flock", "locks a file"},
/* older ways of the same, which not every machine has */
#ifdef SYS_open
    {SYS_open, "open", "opens a file"},
    {SYS_creat, "creat", "creates a file"},
    {SYS_pipe, "pipe", "makes a pipe"},
    {SYS_mkdir, "mkdir", "makes a folder"},
    {SYS_mknod, "mknod", "makes a named pipe or device"},
    {SYS_unlink, "unlink", "deletes something"},
    {SYS_rename, "rename", "renames something"},
    {SYS_fork, "fork", "starts a process"},
    {SYS_vfork, "vfork", "starts a process"},
    {SYS_poll, "poll", "waits"},
    {SYS_select, "select", "waits"},
#endif
};

static const struct call own_calls[] = {
    {SYS_close, "close", ""}, {SYS_exit_group, "exit_group", ""}, {SYS_sendmsg, "sendmsg", ""}};

enum { MOST_RULES = 2 * WR_COUNT_OF(io_calls) + 4 };

/* A jump for each distinguished call, its action, and the default action. */
static struct sock_fprog make_filter(enum vet_watch_kind kind, struct sock_filter rules[MOST_RULES])
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
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    return sendmsg(through, &message, 0) == 1;
}

static _Noreturn void run_watched(enum vet_watch_kind kind, int through, void (*code)(void *ctx), void *ctx)
{
    struct sock_filter rules[MOST_RULES];
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

/* -1: the child could not be put under watch. */
static int receive_descriptor(int through)
{
    char byte;
    int fd = -1;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
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

/* A text of the child's, as far as it can be read. */
static void read_text(pid_t pid, uint64_t address, char *text, size_t room)
{
    struct iovec here = {text, room - 1}, there = {(void *)(uintptr_t)address, room - 1};
    memset(text, 0, room);
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) > 0)
        return;
    there.iov_len = here.iov_len = 64; /* the page may end there */
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0)
        snprintf(text, room, "a file");
}

/* What libraries read when they are first used (an OpenSSL its configuration, the C library its own) is not the
 * handler's doing. */
static bool is_reading_of_system(const char *path, uint64_t flags)
{
    static const char *const folders[] = {"/etc/", "/usr/", "/lib", "/proc/", "/sys/", "/dev/urandom"};
    if ((flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT)
        return false;
    for (size_t i = 0; i < WR_COUNT_OF(folders); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

/* Describes the call; leaves "" if it is allowed. */
static void describe(const struct seccomp_notif *request, enum vet_watch_kind kind, char *words, size_t room)
{
    char path[256] = "";
    const struct seccomp_data *data = &request->data;
    if (kind != VET_WATCH_IO) {
        snprintf(words, room, "makes the system call number %d", data->nr);
        for (size_t i = 0; i < WR_COUNT_OF(io_calls); i++)
            if (io_calls[i].number == data->nr)
                snprintf(words, room, "calls %s", io_calls[i].name);
        return;
    }
    if (data->nr == SYS_openat) {
        read_text((pid_t)request->pid, data->args[1], path, sizeof path);
        if (!is_reading_of_system(path, data->args[2]))
            snprintf(words, room, "opens %.200s (openat)", path);
        return;
    }
    for (size_t i = 0; i < WR_COUNT_OF(io_calls); i++)
        if (io_calls[i].number == data->nr)
            snprintf(words, room, "%s (%s)", io_calls[i].does, io_calls[i].name);
}

/* Lets every call continue, and describes the first one that is not allowed. Returns false if the kernel is too
 * old to let calls continue. */
static bool follow(int listener, enum vet_watch_kind kind, char *words, size_t room)
{
    struct pollfd source = {.fd = listener, .events = POLLIN};
    for (;;) {
        struct seccomp_notif request;
        struct seccomp_notif_resp response = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (poll(&source, 1, -1) < 0 && errno != EINTR)
            return false;
        if (!(source.revents & POLLIN))
            return true; /* the watched process has closed its end */
        memset(&request, 0, sizeof request);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
            continue; /* it was killed in the meantime */
        if (!*words)
            describe(&request, kind, words, room);
        response.id = request.id;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0 && errno == EINVAL)
            return false;
    }
}

bool vet_watch(enum vet_watch_kind kind, void (*code)(void *ctx), void *ctx, char *words, size_t room)
{
    int ends[2], status = 0;
    *words = '\0';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        snprintf(words, room, "no sockets: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        run_watched(kind, ends[1], code, ctx);
    close(ends[1]);
    int listener = pid > 0 ? receive_descriptor(ends[0]) : -1;
    close(ends[0]);
    bool watched = listener >= 0 && follow(listener, kind, words, room);
    if (listener >= 0)
        close(listener);
    if (!watched) {
        snprintf(words, room, "this system does not let system calls be watched (seccomp)");
        if (pid > 0)
            kill(pid, SIGKILL);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (watched && WIFSIGNALED(status)) { /* dies in the same way where it is seen */
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return watched;
}
