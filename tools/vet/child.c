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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batches.h"

struct child {
    pid_t pid;
    int process, errors; /* a pidfd, or -1; the file that is its standard error */
    struct vet_page *page;
    struct vet_result *result;
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

/* Standard output and error are files, so that the child can measure what is written to them. */
static void set_up_child(int errors)
{
    struct sigaction on_fault = {.sa_sigaction = on_fault_signal,
                                 .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    int null_fd = open("/dev/null", O_RDWR), output = memfd_create("vet stdout", 0);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null_fd, 0);
    dup2(output < 0 ? null_fd : output, 1);
    dup2(errors, 2);
    close(null_fd);
    if (output >= 0)
        close(output);
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

/* Reads the end of what the child has written to its standard error. */
static void read_stderr(const struct child *child)
{
    struct stat status;
    struct vet_result *result = child->result;
    const size_t size = sizeof result->stderr_tail - 1;
    if (fstat(child->errors, &status) != 0)
        return;
    off_t begin = status.st_size > (off_t)size ? status.st_size - (off_t)size : 0;
    ssize_t got = pread(child->errors, result->stderr_tail, size, begin);
    result->stderr_tail[got > 0 ? got : 0] = '\0';
}

/* Does not reap the child, so that its process group ID is not reused. */
static bool has_ended(const struct child *child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child->pid;
}

/* Waits a short time for the child to end. Returns whether it has. */
static bool wait_shortly(const struct child *child)
{
    enum { SHORT_MS = 50, POLL_MS = 5 };
    struct pollfd source = {.fd = child->process, .events = POLLIN};
    if (!has_ended(child))
        poll(&source, 1, child->process < 0 ? POLL_MS : SHORT_MS);
    return has_ended(child);
}

static void request_stop(struct vet_page *page, int64_t deadline_ms)
{
    atomic_store(&page->stop_deadline_ms, deadline_ms);
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
    if (atomic_load(&page->batch_touched))
        snprintf(page->guide, sizeof page->guide, "batches-and-done");
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
    snprintf(page->guide, sizeof page->guide, subject->is_source ? "waiting" : "waiting-and-stopping");
    if (atomic_load(&page->verdict) == VET_OK)
        set_failure(child->result, "the program does not exit after main has returned");
    else if (vet_now_ms() - page->began_ms >= VET_CHECK_MOST * subject->deadline_ms)
        set_failure(child->result, "takes more than %lld ms in all, last for %s",
                    (long long)(VET_CHECK_MOST * subject->deadline_ms), current_operation(page));
    else
        set_failure(
            child->result,
            "%s does not return within %lld ms, although a stop was requested after half of that; it called "
            "%s %llu times%s%s",
            current_operation(page), (long long)subject->deadline_ms,
            subject->is_source ? "host->wait, host->stopping or weir_intake.wait"
                               : "host->wait or host->stopping",
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
        result->broken =
            (atomic_load(&page->cannot_create) ? VET_CREATE : VET_NOTHING) | atomic_load(&page->broken);
        memcpy(result->message, page->message, sizeof result->message);
        result->stderr_tail[0] = '\0';
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Waits until the child has ended, a call has taken the whole deadline, or the check as a whole too long.
 * Requests a stop before. Returns whether the child has ended. */
static bool wait_for_end(const struct child *child, int64_t deadline_ms)
{
    struct vet_page *page = child->page;
    uint64_t progress = 0;
    int64_t call_began_ms = page->began_ms, now_ms;
    do {
        if (wait_shortly(child))
            return true;
        now_ms = vet_now_ms();
        if (atomic_load(&page->progress) != progress) {
            progress = atomic_load(&page->progress);
            call_began_ms = now_ms;
        }
        bool late = now_ms - call_began_ms >= deadline_ms / 2 ||
                    now_ms - page->began_ms >= VET_CHECK_STOP * deadline_ms;
        if (late && !atomic_load(&page->stop))
            request_stop(page, now_ms + deadline_ms / 2);
    } while (now_ms - call_began_ms < deadline_ms && now_ms - page->began_ms < VET_CHECK_MOST * deadline_ms);
    return false;
}

static void supervise(struct child *child, const struct vet_subject *subject)
{
    int status = 0;
    bool ended = wait_for_end(child, subject->deadline_ms);
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
    struct child child = {.page = page, .result = result, .errors = memfd_create("vet stderr", MFD_CLOEXEC)};
    *result = (struct vet_result){.name = check->name};
    snprintf(result->guide, sizeof result->guide, "%s", check->guide);
    if (child.errors < 0) {
        set_failure(result, "vet itself: cannot create a file: %s", strerror(errno));
        return;
    }
    fflush(stdout);
    vet_page = page;
    page->began_ms = vet_now_ms();
    page->deadline_ms = subject->deadline_ms;
    atomic_store(&page->stop_deadline_ms, page->began_ms + subject->deadline_ms);
    child.pid = fork();
    if (child.pid == 0)
        run(check, subject, child.errors);
    vet_page = NULL;
    if (child.pid < 0) {
        set_failure(result, "vet itself: cannot start a process: %s", strerror(errno));
    } else {
        child.process = (int)syscall(SYS_pidfd_open, child.pid, 0);
        supervise(&child, subject);
        if (child.process >= 0)
            close(child.process);
    }
    close(child.errors);
    if (*page->guide)
        memcpy(result->guide, page->guide, sizeof result->guide);
}
