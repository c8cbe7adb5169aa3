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
#include "thread.h"
#include "vet.h"

/* ---- System calls ---------------------------------------------------------------------------- */

struct call {
    int number;
    unsigned kinds; /* that monitor it */
    const char *name, *description;
};

enum { IO = 1, NOW = 2, THREADS = 4 };

/* sendmsg is missing: it passes the descriptor to the parent. */
static const struct call calls[] = {
    {SYS_openat, IO, "openat", "opens a file"},
    {SYS_socket, IO, "socket", "creates a socket"},
    {SYS_socketpair, IO, "socketpair", "creates sockets"},
    {SYS_connect, IO | NOW, "connect", "connects"},
    {SYS_bind, IO, "bind", "binds a socket"},
    {SYS_sendto, IO, "sendto", "sends"},
    {SYS_write, IO, "write", "writes"},
    {SYS_writev, IO, "writev", "writes"},
    {SYS_pwrite64, IO, "pwrite", "writes"},
    {SYS_pipe2, IO, "pipe2", "creates a pipe"},
    {SYS_mkdirat, IO, "mkdirat", "creates a directory"},
    {SYS_mknodat, IO, "mknodat", "creates a named pipe or device"},
    {SYS_unlinkat, IO, "unlinkat", "deletes a file or directory"},
    {SYS_renameat2, IO, "renameat2", "renames a file or directory"},
    {SYS_clone, IO | NOW | THREADS, "clone", "starts a thread or a process"},
    {SYS_clone3, IO | NOW | THREADS, "clone3", "starts a thread or a process"},
    {SYS_execve, IO | NOW, "execve", "runs a program"},
    {SYS_nanosleep, IO | NOW, "nanosleep", "sleeps"},
    {SYS_clock_nanosleep, IO | NOW, "clock_nanosleep", "sleeps"},
    {SYS_ppoll, IO | NOW, "ppoll", "waits"},
    {SYS_epoll_create1, IO, "epoll_create1", "creates an epoll descriptor"},
    {SYS_eventfd2, IO, "eventfd2", "creates an event descriptor"},
    {SYS_flock, IO, "flock", "locks a file"},
    {SYS_epoll_pwait, NOW, "epoll_pwait", "waits"},
    {SYS_pselect6, NOW, "pselect6", "waits"},
    {SYS_exit, THREADS, "exit", "ends a thread"},
    {SYS_fsync, NOW, "fsync", "waits for the disk"},
    {SYS_fdatasync, NOW, "fdatasync", "waits for the disk"},
/* older calls, which not every architecture has */
#ifdef SYS_open
    {SYS_open, IO, "open", "opens a file"},
    {SYS_creat, IO, "creat", "creates a file"},
    {SYS_pipe, IO, "pipe", "creates a pipe"},
    {SYS_mkdir, IO, "mkdir", "creates a directory"},
    {SYS_mknod, IO, "mknod", "creates a named pipe or device"},
    {SYS_unlink, IO, "unlink", "deletes a file or directory"},
    {SYS_rename, IO, "rename", "renames a file or directory"},
    {SYS_fork, IO | NOW, "fork", "starts a process"},
    {SYS_vfork, IO | NOW, "vfork", "starts a process"},
    {SYS_poll, IO, "poll", "waits"},
    {SYS_select, IO | NOW, "select", "waits"},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, NOW, "epoll_wait", "waits"},
#endif
};

/* Never monitored: what vet itself calls, and malloc, whose calls depend on what it has in reserve. */
static const int ignored_calls[] = {SYS_close,  SYS_exit_group, SYS_sendmsg,  SYS_brk,    SYS_mmap,
                                    SYS_mremap, SYS_munmap,     SYS_mprotect, SYS_madvise};

enum { MAX_RULES = 2 * (WR_COUNT_OF(calls) + WR_COUNT_OF(ignored_calls)) + 2 };

static unsigned short add_rule(struct sock_filter *rules, unsigned short used, int number, uint32_t action)
{
    rules[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    return used;
}

static unsigned bit_of(enum vet_watch_kind kind)
{
    return kind == VET_WATCH_NOW ? NOW : kind == VET_WATCH_THREADS ? THREADS : IO;
}

/* For each listed call a jump and its action, then the default action. */
static struct sock_fprog make_filter(enum vet_watch_kind kind, struct sock_filter rules[MAX_RULES])
{
    unsigned short used = 0;
    bool all = kind == VET_WATCH_ALL_BUT_CLOSE;
    rules[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; all && i < WR_COUNT_OF(ignored_calls); i++)
        used = add_rule(rules, used, ignored_calls[i], SECCOMP_RET_ALLOW);
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

static void describe_io(const struct seccomp_notif *request, const struct description *description)
{
    char path[256] = "";
    const struct call *known = find_call(request->data.nr, IO);
    if (known && request->data.nr != SYS_openat)
        snprintf(description->text, description->size, "%s (%s)", known->description, known->name);
    if (request->data.nr != SYS_openat)
        return;
    read_text((pid_t)request->pid, request->data.args[1], path, sizeof path);
    if (!is_system_read(path, request->data.args[2]))
        snprintf(description->text, description->size, "opens %.200s (openat)", path);
}

static bool is_fstat(const struct seccomp_data *call)
{
#ifdef SYS_fstat
    if (call->nr == SYS_fstat)
        return true;
#endif
#ifdef SYS_newfstatat
    if (call->nr == SYS_newfstatat && call->args[3] & AT_EMPTY_PATH)
        return true;
#endif
    return call->nr == SYS_statx && call->args[2] & AT_EMPTY_PATH;
}

static void describe_any(const struct seccomp_notif *request, const struct description *description)
{
    const struct call *known = find_call(request->data.nr, IO);
    if (is_fstat(&request->data))
        return;
    if (known)
        snprintf(description->text, description->size, "calls %s", known->name);
    else
        snprintf(description->text, description->size, "makes system call number %d", request->data.nr);
}

static void describe_waiting(const struct seccomp_notif *request, const struct description *description)
{
    const struct call *known = find_call(request->data.nr, NOW);
    if (known)
        snprintf(description->text, description->size, "%s (%s)", known->description, known->name);
}

/* Delays the end of threads, once emit has started one, so that one that outlives its emit is still there when
 * emit returns. */
static void delay_end(const struct seccomp_notif *request, const struct description *description)
{
    static bool started;
    (void)description;
    if (request->data.nr != SYS_exit)
        started = started || atomic_load(&vet_page->call) == VET_EMIT;
    else if (started)
        vet_thread_sleep_ms(100);
}

/* By enum vet_watch_kind; called until there is a text. */
static void (*const reactions[])(const struct seccomp_notif *request, const struct description *description) = {
    describe_io,
    describe_any,
    describe_waiting,
    delay_end,
};

/* ---- Running --------------------------------------------------------------------------------- */

/* Returns false if the kernel does not support SECCOMP_USER_NOTIF_FLAG_CONTINUE. */
static bool monitor(int listener, enum vet_watch_kind kind, const struct description *description)
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
        if (!*description->text)
            reactions[kind](&request, description);
        response.id = request.id;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0 && errno == EINVAL)
            return false;
    }
}

bool vet_watch(enum vet_watch_kind kind, void (*code)(void *ctx), void *ctx, char *text, size_t size)
{
    const struct description description = {text, size};
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
    bool watched = listener >= 0 && monitor(listener, kind, &description);
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
    vet_watch_exit_if_decided();
    return watched;
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
