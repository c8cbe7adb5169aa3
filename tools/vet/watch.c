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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text/common.h"
#include "vet.h"

/* ---- System calls ---------------------------------------------------------------------------- */

struct call {
    int number;
    unsigned kinds; /* that monitor it */
    const char *name, *description;
};

enum { IO = 1, CALLS = 2, NOW = 4 };

/* sendmsg is missing: it passes the descriptor to the parent. */
static const struct call calls[] = {
    {SYS_openat, IO | CALLS, "openat", "opens a file"},
    {SYS_socket, IO | CALLS, "socket", "creates a socket"},
    {SYS_socketpair, IO | CALLS, "socketpair", "creates sockets"},
    {SYS_connect, IO | CALLS | NOW, "connect", "connects"},
    {SYS_bind, IO | CALLS, "bind", "binds a socket"},
    {SYS_sendto, IO | CALLS, "sendto", "sends"},
    {SYS_write, IO | CALLS, "write", "writes"},
    {SYS_writev, IO | CALLS, "writev", "writes"},
    {SYS_pwrite64, IO | CALLS, "pwrite", "writes"},
    {SYS_pipe2, IO | CALLS, "pipe2", "creates a pipe"},
    {SYS_mkdirat, IO | CALLS, "mkdirat", "creates a directory"},
    {SYS_mknodat, IO | CALLS, "mknodat", "creates a named pipe or device"},
    {SYS_unlinkat, IO | CALLS, "unlinkat", "deletes a file or directory"},
    {SYS_renameat2, IO | CALLS, "renameat2", "renames a file or directory"},
    {SYS_clone, IO | CALLS | NOW, "clone", "starts a thread or a process"},
    {SYS_clone3, IO | CALLS | NOW, "clone3", "starts a thread or a process"},
    {SYS_execve, IO | CALLS | NOW, "execve", "runs a program"},
    {SYS_nanosleep, IO | CALLS | NOW, "nanosleep", "sleeps"},
    {SYS_clock_nanosleep, IO | CALLS | NOW, "clock_nanosleep", "sleeps"},
    {SYS_ppoll, IO | CALLS | NOW, "ppoll", "waits"},
    {SYS_epoll_create1, IO | CALLS, "epoll_create1", "creates an epoll descriptor"},
    {SYS_eventfd2, IO | CALLS, "eventfd2", "creates an event descriptor"},
    {SYS_flock, IO | CALLS, "flock", "locks a file"},
    {SYS_exit, CALLS, "exit", "ends a thread"},
    {SYS_lseek, CALLS, "lseek", "positions"},
    {SYS_ftruncate, CALLS, "ftruncate", "truncates"},
    {SYS_fchmod, CALLS, "fchmod", "changes permissions"},
    {SYS_epoll_pwait, CALLS | NOW, "epoll_pwait", "waits"},
    {SYS_pselect6, CALLS | NOW, "pselect6", "waits"},
    {SYS_fsync, NOW, "fsync", "waits for the disk"},
    {SYS_fdatasync, NOW, "fdatasync", "waits for the disk"},
    {SYS_mmap, NOW, "mmap", "allocates memory"},
    {SYS_mremap, NOW, "mremap", "allocates memory"},
    {SYS_brk, NOW, "brk", "allocates memory"},
    {SYS_munmap, NOW, "munmap", "frees memory"},
/* older calls, which not every architecture has */
#ifdef SYS_open
    {SYS_open, IO | CALLS, "open", "opens a file"},
    {SYS_creat, IO | CALLS, "creat", "creates a file"},
    {SYS_pipe, IO | CALLS, "pipe", "creates a pipe"},
    {SYS_mkdir, IO | CALLS, "mkdir", "creates a directory"},
    {SYS_mknod, IO | CALLS, "mknod", "creates a named pipe or device"},
    {SYS_unlink, IO | CALLS, "unlink", "deletes a file or directory"},
    {SYS_rename, IO | CALLS, "rename", "renames a file or directory"},
    {SYS_fork, IO | CALLS | NOW, "fork", "starts a process"},
    {SYS_vfork, IO | CALLS | NOW, "vfork", "starts a process"},
    {SYS_poll, IO | CALLS, "poll", "waits"},
    {SYS_select, IO | CALLS | NOW, "select", "waits"},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, CALLS | NOW, "epoll_wait", "waits"},
#endif
};

/* Never monitored. */
static const int own_calls[] = {SYS_close, SYS_exit_group, SYS_sendmsg};

enum { MAX_RULES = 2 * (WR_COUNT_OF(calls) + WR_COUNT_OF(own_calls)) + 2 };

static unsigned short add_rule(struct sock_filter *rules, unsigned short used, int number, uint32_t action)
{
    rules[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    return used;
}

static unsigned bit_of(enum vet_watch_kind kind)
{
    return kind == VET_WATCH_NOW ? NOW : kind == VET_WATCH_CALLS ? CALLS : IO;
}

/* For each listed call a jump and its action, then the default action. */
static struct sock_fprog make_filter(enum vet_watch_kind kind, struct sock_filter rules[MAX_RULES])
{
    unsigned short used = 0;
    bool all = kind == VET_WATCH_ALL_BUT_CLOSE;
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; all && i < WR_COUNT_OF(own_calls); i++)
        used = add_rule(rules, used, own_calls[i], SECCOMP_RET_ALLOW);
    for (size_t i = 0; !all && i < WR_COUNT_OF(calls); i++)
        if (calls[i].kinds & bit_of(kind))
            used = add_rule(rules, used, calls[i].number, SECCOMP_RET_USER_NOTIF);
    rules[used++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, all ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
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

bool vet_watch_is_system_read(const struct vet_watch_call *call)
{
    char path[256] = "";
    if (call->number != SYS_openat)
        return false;
    read_text(call->thread, call->args[1], path, sizeof path);
    return is_system_read(path, call->args[2]);
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

struct description {
    char *text; /* "": nothing was found yet */
    size_t size;
};

/* NULL: not one of these kinds. */
static const struct call *find_call(int number, unsigned kinds)
{
    for (size_t i = 0; i < WR_COUNT_OF(calls); i++)
        if (calls[i].number == number && calls[i].kinds & kinds)
            return &calls[i];
    return NULL;
}

static void describe_waiting(void *ctx, struct vet_watch_call *call)
{
    const struct description *description = ctx;
    const struct call *known = find_call(call->number, NOW);
    if (known && !*description->text)
        snprintf(description->text, description->size, "%s (%s)", known->description, known->name);
}

static void describe_io(void *ctx, struct vet_watch_call *call)
{
    char path[256] = "";
    const struct description *description = ctx;
    const struct call *known = find_call(call->number, IO);
    if (*description->text || !known || vet_watch_is_system_read(call))
        return;
    if (call->number != SYS_openat) {
        snprintf(description->text, description->size, "%s (%s)", known->description, known->name);
        return;
    }
    read_text(call->thread, call->args[1], path, sizeof path);
    snprintf(description->text, description->size, "opens %.200s (openat)", path);
}

/* In the check of abandon each allocation has pages of its own, so that free(3) shows as a system call. */
static void describe_any(void *ctx, struct vet_watch_call *call)
{
    const struct description *description = ctx;
    const struct call *known = find_call(call->number, IO);
    if (*description->text)
        return;
    if (known)
        snprintf(description->text, description->size, "calls %s", known->name);
    else if (call->number == SYS_munmap)
        snprintf(description->text, description->size, "frees memory");
    else if (call->number == SYS_mmap || call->number == SYS_brk)
        snprintf(description->text, description->size, "allocates memory");
    else
        snprintf(description->text, description->size, "makes system call number %d", call->number);
}

/* ---- Running --------------------------------------------------------------------------------- */

struct watcher {
    enum vet_watch_kind kind;
    void (*on_call)(void *ctx, struct vet_watch_call *call);
    void *on_call_ctx;
};

static void react(const struct watcher *watcher, const struct seccomp_notif *request,
                  struct seccomp_notif_resp *response)
{
    uint64_t args[6];
    memcpy(args, request->data.args, sizeof args);
    struct vet_watch_call call = {.thread = (pid_t)request->pid, .number = request->data.nr, .args = args};
    watcher->on_call(watcher->on_call_ctx, &call);
    response->id = request->id;
    response->flags = call.made_up ? 0 : (uint32_t)SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    if (call.made_up && call.result < 0)
        response->error = (int32_t)call.result;
    else if (call.made_up)
        response->val = call.result;
}

/* Returns false if the kernel does not support SECCOMP_USER_NOTIF_FLAG_CONTINUE. */
static bool monitor(int listener, const struct watcher *watcher)
{
    struct pollfd source = {.fd = listener, .events = POLLIN};
    for (;;) {
        struct seccomp_notif request;
        struct seccomp_notif_resp response = {0};
        if (poll(&source, 1, -1) < 0 && errno != EINTR)
            return false;
        if (!(source.revents & POLLIN))
            return true; /* the monitored process has exited */
        memset(&request, 0, sizeof request);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
            continue; /* the process was killed */
        react(watcher, &request, &response);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0 && errno == EINVAL)
            return false;
    }
}

static bool watch(const struct watcher *watcher, void (*code)(void *ctx), void *ctx, char *text, size_t size)
{
    int ends[2], status = 0;
    *text = '\0';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        snprintf(text, size, "socketpair: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        run_watched(watcher->kind, ends[1], code, ctx);
    close(ends[1]);
    int listener = pid > 0 ? receive_descriptor(ends[0]) : -1;
    close(ends[0]);
    bool watched = listener >= 0 && monitor(listener, watcher);
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

bool vet_watch(enum vet_watch_kind kind, void (*code)(void *ctx), void *ctx, char *text, size_t size)
{
    struct description description = {text, size};
    void (*describe)(void *, struct vet_watch_call *) = kind == VET_WATCH_IO    ? describe_io
                                                        : kind == VET_WATCH_NOW ? describe_waiting
                                                                                : describe_any;
    struct watcher watcher = {kind, describe, &description};
    return watch(&watcher, code, ctx, text, size);
}

bool vet_watch_calls(void (*on_call)(void *call_ctx, struct vet_watch_call *call), void *call_ctx,
                     void (*code)(void *ctx), void *ctx, char *text, size_t size)
{
    struct watcher watcher = {VET_WATCH_CALLS, on_call, call_ctx};
    return watch(&watcher, code, ctx, text, size);
}

void *vet_watch_share(size_t size)
{
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        vet_skip("vet itself: out of memory");
    return page;
}

void vet_watch_exit_if_decided(void)
{
    if (atomic_load(&vet_page->verdict))
        _exit(0);
}
