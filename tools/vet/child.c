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
    int process, errors; /* a pidfd, or -1; what it writes on standard error */
    struct vet_page *page;
    struct vet_result *result;
    size_t heard;
};

/* ---- In the child ---------------------------------------------------------------------------- */

/* A handler that keeps a batch, or writes into one, meets a page that it may not touch. */
static void note_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    atomic_store(&vet_page->batch_touched, vet_batches_place(info->si_addr));
    signal(number, SIG_DFL);
    raise(number);
}

static void become_subject(int errors)
{
    struct sigaction on_fault = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    int nowhere = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(nowhere, 0);
    dup2(nowhere, 1);
    dup2(errors, 2);
    close(nowhere);
    close(errors);
    sigaction(SIGSEGV, &on_fault, NULL);
    sigaction(SIGBUS, &on_fault, NULL);
}

static _Noreturn void run(const struct vet_check *check, const struct vet_subject *subject, int errors)
{
    become_subject(errors);
    check->run(subject);
    if (check->exits)
        exit(0);
    _exit(0);
}

/* ---- Waiting for it -------------------------------------------------------------------------- */

static void listen_to(struct child *child)
{
    char bytes[256];
    ssize_t got;
    struct vet_result *result = child->result;
    const size_t room = sizeof result->heard - 1;
    if (child->errors < 0)
        return;
    while ((got = read(child->errors, bytes, sizeof bytes)) > 0) {
        size_t length = (size_t)got;
        if (child->heard + length > room) { /* the end is what counts */
            size_t cut = child->heard + length - room;
            memmove(result->heard, result->heard + cut, child->heard - cut);
            child->heard -= cut;
        }
        memcpy(result->heard + child->heard, bytes, length);
        child->heard += length;
    }
    result->heard[child->heard] = '\0';
    if (got == 0) { /* closed: there is nothing to wait for any more */
        close(child->errors);
        child->errors = -1;
    }
}

/* Whether it has ended; it is not reaped yet, so that its process group stays its own. */
static bool has_ended(const struct child *child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child->pid;
}

static bool wait_until(struct child *child, int64_t end_ms)
{
    enum { LOOK_MS = 5 };
    int64_t left_ms;
    while (!has_ended(child) && (left_ms = end_ms - vet_now_ms()) > 0) {
        struct pollfd sources[] = {{.fd = child->process, .events = POLLIN},
                                   {.fd = child->errors, .events = POLLIN}};
        bool looks = child->process < 0 && left_ms > LOOK_MS;
        poll(sources, 2, looks ? LOOK_MS : (int)left_ms);
        listen_to(child);
    }
    listen_to(child);
    return has_ended(child);
}

static void ask_stop(struct vet_page *page)
{
    atomic_store(&page->stop, 1);
    syscall(SYS_futex, &page->stop, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- The verdict ----------------------------------------------------------------------------- */

static void conclude(struct vet_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void conclude(struct vet_result *result, const char *format, ...)
{
    va_list arguments;
    result->verdict = VET_FAIL;
    va_start(arguments, format);
    vsnprintf(result->words, sizeof result->words, format, arguments);
    va_end(arguments);
}

static const char *place(const struct vet_page *page)
{
    return *page->doing ? page->doing : "code between two calls (a thread of its own, or vet itself)";
}

static void conclude_crash(const struct child *child, int signal_number)
{
    static const char *const touched[] = {"", ": it writes into the batch, which is the core's",
                                          ": it touches a batch after the call that brought it"};
    struct vet_page *page = child->page;
    child->result->broken = atomic_load(&page->call);
    if (atomic_load(&page->verdict) == VET_OK)
        conclude(child->result, "killed by %s when the program ends, after main has returned",
                 strsignal(signal_number));
    else
        conclude(child->result, "killed by %s in %s%s", strsignal(signal_number), place(page),
                 touched[atomic_load(&page->batch_touched)]);
}

static void conclude_hang(const struct child *child, const struct vet_subject *subject)
{
    struct vet_page *page = child->page;
    const char *said = page->said;
    child->result->broken = atomic_load(&page->call);
    if (atomic_load(&page->verdict) == VET_OK)
        conclude(child->result, "does not end: something keeps the program from exiting");
    else
        conclude(
            child->result,
            "%s does not return within %lld ms, nor when a stop was asked after half of that; it asked for "
            "that %llu times (host->wait, host->stopping)%s%s",
            place(page), (long long)subject->deadline_ms, (unsigned long long)atomic_load(&page->waits),
            *said ? "; it said: " : "", said);
}

static void conclude_end(const struct child *child, int status)
{
    struct vet_page *page = child->page;
    struct vet_result *result = child->result;
    int verdict = atomic_load(&page->verdict);
    if (WIFSIGNALED(status)) {
        conclude_crash(child, WTERMSIG(status));
    } else if (verdict == VET_NONE || WEXITSTATUS(status)) {
        result->broken = atomic_load(&page->call);
        conclude(result, "ended the program with status %d in %s", WEXITSTATUS(status), place(page));
    } else {
        result->verdict = verdict;
        result->broken = atomic_load(&page->uncreatable) ? VET_CREATE : VET_NOTHING;
        memcpy(result->words, page->words, sizeof result->words);
        result->heard[0] = '\0';
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void supervise(struct child *child, const struct vet_subject *subject)
{
    int status = 0;
    int64_t begin_ms = vet_now_ms();
    child->page->stop_deadline_ms = begin_ms + subject->deadline_ms;
    bool ended = wait_until(child, begin_ms + subject->deadline_ms / 2);
    if (!ended) {
        ask_stop(child->page);
        ended = wait_until(child, begin_ms + subject->deadline_ms);
    }
    kill(-child->pid, SIGKILL); /* and what it may have left behind */
    kill(child->pid, SIGKILL);
    waitpid(child->pid, &status, 0);
    listen_to(child);
    if (ended)
        conclude_end(child, status);
    else
        conclude_hang(child, subject);
}

void vet_child_run(const struct vet_check *check, const struct vet_subject *subject, struct vet_page *page,
                   struct vet_result *result)
{
    int errors[2];
    struct child child = {.page = page, .result = result};
    *result = (struct vet_result){.name = check->name};
    if (pipe2(errors, O_CLOEXEC) != 0 || fcntl(errors[0], F_SETFL, O_NONBLOCK) != 0) {
        conclude(result, "vet itself: no pipe: %s", strerror(errno));
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
        conclude(result, "vet itself: no process: %s", strerror(errno));
    } else {
        child.process = (int)syscall(SYS_pidfd_open, child.pid, 0);
        supervise(&child, subject);
        if (child.process >= 0)
            close(child.process);
    }
    if (child.errors >= 0)
        close(child.errors);
}
