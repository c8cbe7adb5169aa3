#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batches.h"

struct child {
    pid_t pid;
    int process, errors; /* a pidfd, or -1; the read end of its standard error, or -1 */
    struct vet_page *page;
    struct vet_result *result;
    size_t stderr_length; /* of result->stderr_tail */
};

/* ---- In the child ---------------------------------------------------------------------------- */

/* A handler that writes to a batch, or keeps it after the call, accesses a protected page. */
static void on_fault_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    atomic_store(&vet_page->batch_touched, vet_batches_place(info->si_addr));
    signal(number, SIG_DFL);
    raise(number);
}

static void set_up_child(int errors)
{
    struct sigaction on_fault = {.sa_sigaction = on_fault_signal,
                                 .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    int null_fd = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null_fd, 0);
    dup2(null_fd, 1);
    dup2(errors, 2);
    close(null_fd);
    close(errors);
    sigaction(SIGSEGV, &on_fault, NULL);
    sigaction(SIGBUS, &on_fault, NULL);
}

static _Noreturn void run(const struct vet_check *check, const struct vet_subject *subject, int errors)
{
    set_up_child(errors);
    check->run(subject);
    if (check->exits)
        exit(0);
    _exit(0);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static void read_stderr(struct child *child)
{
    char bytes[256];
    ssize_t got;
    struct vet_result *result = child->result;
    const size_t size = sizeof result->stderr_tail - 1;
    if (child->errors < 0)
        return;
    while ((got = read(child->errors, bytes, sizeof bytes)) > 0) {
        size_t length = (size_t)got;
        if (child->stderr_length + length > size) { /* keep the end */
            size_t cut = child->stderr_length + length - size;
            memmove(result->stderr_tail, result->stderr_tail + cut, child->stderr_length - cut);
            child->stderr_length -= cut;
        }
        memcpy(result->stderr_tail + child->stderr_length, bytes, length);
        child->stderr_length += length;
    }
    result->stderr_tail[child->stderr_length] = '\0';
    if (got == 0) { /* end of file */
        close(child->errors);
        child->errors = -1;
    }
}

/* Does not reap the child, so that its process group ID is not reused. */
static bool has_ended(const struct child *child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child->pid;
}

static bool wait_until(struct child *child, int64_t end_ms)
{
    enum { POLL_MS = 5 };
    int64_t left_ms;
    while (!has_ended(child) && (left_ms = end_ms - vet_now_ms()) > 0) {
        struct pollfd sources[] = {{.fd = child->process, .events = POLLIN},
                                   {.fd = child->errors, .events = POLLIN}};
        bool polls = child->process < 0 && left_ms > POLL_MS;
        poll(sources, 2, polls ? POLL_MS : (int)left_ms);
        read_stderr(child);
    }
    read_stderr(child);
    return has_ended(child);
}

static void request_stop(struct vet_page *page)
{
    atomic_store(&page->stop, 1);
    syscall(SYS_futex, &page->stop, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- The verdict ----------------------------------------------------------------------------- */

static void set_failure(struct vet_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void set_failure(struct vet_result *result, const char *format, ...)
{
    va_list arguments;
    result->verdict = VET_FAIL;
    va_start(arguments, format);
    vsnprintf(result->message, sizeof result->message, format, arguments);
    va_end(arguments);
}

static const char *current_operation(const struct vet_page *page)
{
    return *page->operation ? page->operation
                            : "code between two calls (a thread of the plugin, or vet itself)";
}

static void report_crash(const struct child *child, int signal_number)
{
    static const char *const touched[] = {"", ": it writes into the batch, which is read-only",
                                          ": it accesses a batch after the call that received it"};
    struct vet_page *page = child->page;
    child->result->broken = atomic_load(&page->call);
    if (atomic_load(&page->verdict) == VET_OK)
        set_failure(child->result, "killed by %s when the program ends, after main has returned",
                    strsignal(signal_number));
    else
        set_failure(child->result, "killed by %s in %s%s", strsignal(signal_number), current_operation(page),
                    touched[atomic_load(&page->batch_touched)]);
}

static void report_hang(const struct child *child, const struct vet_subject *subject)
{
    struct vet_page *page = child->page;
    const char *last_log = page->last_log;
    child->result->broken = atomic_load(&page->call);
    if (atomic_load(&page->verdict) == VET_OK)
        set_failure(child->result, "the program does not exit after main has returned");
    else
        set_failure(
            child->result,
            "%s does not return within %lld ms, although a stop was requested after half of that; it called "
            "host->wait or host->stopping %llu times%s%s",
            current_operation(page), (long long)subject->deadline_ms,
            (unsigned long long)atomic_load(&page->waits), *last_log ? "; last log message: " : "", last_log);
}

static void report_end(const struct child *child, int status)
{
    struct vet_page *page = child->page;
    struct vet_result *result = child->result;
    int verdict = atomic_load(&page->verdict);
    if (WIFSIGNALED(status)) {
        report_crash(child, WTERMSIG(status));
    } else if (verdict == VET_NONE || WEXITSTATUS(status)) {
        result->broken = atomic_load(&page->call);
        set_failure(result, "ended the program with status %d in %s", WEXITSTATUS(status),
                    current_operation(page));
    } else {
        result->verdict = verdict;
        result->broken = atomic_load(&page->cannot_create) ? VET_CREATE : VET_NOTHING;
        memcpy(result->message, page->message, sizeof result->message);
        result->stderr_tail[0] = '\0';
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

static void supervise(struct child *child, const struct vet_subject *subject)
{
    int status = 0;
    int64_t begin_ms = vet_now_ms();
    child->page->stop_deadline_ms = begin_ms + subject->deadline_ms;
    bool ended = wait_until(child, begin_ms + subject->deadline_ms / 2);
    if (!ended) {
        request_stop(child->page);
        ended = wait_until(child, begin_ms + subject->deadline_ms);
    }
    kill(-child->pid, SIGKILL); /* also processes that it has left */
    kill(child->pid, SIGKILL);
    waitpid(child->pid, &status, 0);
    read_stderr(child);
    if (ended)
        report_end(child, status);
    else
        report_hang(child, subject);
}

void vet_child_run(const struct vet_check *check, const struct vet_subject *subject, struct vet_page *page,
                   struct vet_result *result)
{
    int errors[2];
    struct child child = {.page = page, .result = result};
    *result = (struct vet_result){.name = check->name};
    if (pipe2(errors, O_CLOEXEC) != 0 || fcntl(errors[0], F_SETFL, O_NONBLOCK) != 0) {
        set_failure(result, "vet itself: cannot create a pipe: %s", strerror(errno));
        return;
    }
    fflush(stdout);
    vet_page = page;
    child.pid = fork();
    if (child.pid == 0)
        run(check, subject, errors[1]);
    vet_page = NULL;
    close(errors[1]);
    child.errors = errors[0];
    if (child.pid < 0) {
        set_failure(result, "vet itself: cannot start a process: %s", strerror(errno));
    } else {
        child.process = (int)syscall(SYS_pidfd_open, child.pid, 0);
        supervise(&child, subject);
        if (child.process >= 0)
            close(child.process);
    }
    if (child.errors >= 0)
        close(child.errors);
}
