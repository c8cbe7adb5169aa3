/* faulty: a handler type that breaks the contract only in the way that its option "fault" names. It appends its
 * samples' bytes to an anonymous file. */

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>

/* clang-format off */
#define FAULTS(X) \
    X(none) X(create_crashes) X(create_opens_file) X(create_makes_socket) X(create_starts_thread) \
    X(create_sleeps) X(create_hangs) X(create_refuses_without_reason) X(create_changes_umask) \
    X(open_hangs) X(open_crashes) X(open_without_reason) X(emit_hangs) X(emit_crashes) X(emit_exits) \
    X(emit_ignores_stop) X(done_beyond) X(rejected_beyond) X(unknown_code) X(nothing_done) \
    X(positive_error) X(garbage) X(no_end_of_reason) X(writes_batch) X(keeps_batch) \
    X(writes_behind_outcome) X(leaks_descriptor) X(leaks_memory) X(leaks_instance) X(leaves_thread) \
    X(leaves_process) X(changes_locale) X(changes_mask) X(changes_umask) X(changes_folder) \
    X(changes_environment) X(changes_signal) X(closes_twice) X(closes_stranger) X(writes_after_close) \
    X(flush_hangs) X(flush_late) X(close_hangs) X(close_crashes) X(destroy_crashes) X(wake_crashes) \
    X(abandon_writes) X(abandon_crashes) X(logs_secret) X(shares_state) X(odd_refusal) \
    X(waits_in_create) X(crashes_at_exit) X(probe_leaks) X(probe_late)
/* clang-format on */

#define NUMBER(name) FAULT_##name,
#define WORD(name) "|" #name
enum fault { FAULTS(NUMBER) };
static const char words[] = FAULTS(WORD);

struct options {
    int64_t fault;
    const char *token;
};

static const weir_option rows[] = {
    {"fault", WEIR_OPTION_ENUM, 0, "none", words + 1, "what to do wrong", offsetof(struct options, fault)},
    {"token", WEIR_OPTION_STRING, WEIR_OPTION_SECRET, NULL, NULL, "a secret", offsetof(struct options, token)},
    {0},
};

struct faulty {
    const weir_host *host;
    enum fault fault;
    const char *token;
    int fd, lost;
    const weir_sample *kept;
};

static _Atomic int inside;

static void crash(void)
{
    volatile int *nowhere = NULL;
    *nowhere = 1;
}

static void hang(void)
{
    for (;;)
        pause();
}

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *sleep_on(void *ctx)
{
    (void)ctx;
    hang();
    return NULL;
}

static void start_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_on, NULL) == 0)
        pthread_detach(thread);
}

/* ---- Creating -------------------------------------------------------------------------------- */

/* Returns whether create succeeds. */
static bool misbehave_in_create(const weir_host *host, enum fault fault)
{
    switch (fault) {
    case FAULT_create_crashes: crash(); break;
    case FAULT_create_opens_file: close(open("/tmp", O_RDONLY | O_CLOEXEC)); break;
    case FAULT_create_makes_socket: close(socket(AF_INET, SOCK_STREAM, 0)); break;
    case FAULT_create_starts_thread: start_thread(); break;
    case FAULT_create_sleeps: sleep_ms(1); break;
    case FAULT_create_hangs: hang(); break;
    case FAULT_create_changes_umask: umask(0); break;
    case FAULT_waits_in_create: host->wait(host, 0); break;
    case FAULT_odd_refusal: host->refuse(host, "no_such_option", "is wrong"); return false;
    case FAULT_create_refuses_without_reason: return false;
    default: break;
    }
    return true;
}

static void *create(const weir_host *host, const void *given)
{
    const struct options *options = given;
    struct faulty *faulty = calloc(1, sizeof *faulty);
    if (!faulty) {
        host->refuse(host, "", "no memory");
        return NULL;
    }
    faulty->host = host;
    faulty->fault = (enum fault)options->fault;
    faulty->token = options->token;
    faulty->fd = -1;
    if (misbehave_in_create(host, faulty->fault))
        return faulty;
    free(faulty);
    return NULL;
}

static void destroy(void *self)
{
    struct faulty *faulty = self;
    if (faulty->fault == FAULT_destroy_crashes)
        crash();
    if (faulty->fault == FAULT_closes_twice)
        close(faulty->fd);
    if (faulty->fault == FAULT_writes_after_close && write(faulty->fd, "bye", 3) < 0)
        errno = 0;
    if (faulty->fault != FAULT_leaks_instance)
        free(faulty);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void leave_process(void)
{
    if (fork() == 0)
        hang();
}

static void change_process_state(enum fault fault)
{
    sigset_t set;
    sigemptyset(&set);
    switch (fault) {
    case FAULT_changes_locale: setlocale(LC_ALL, "C.UTF-8"); break;
    case FAULT_changes_mask: pthread_sigmask(SIG_SETMASK, &set, NULL); break;
    case FAULT_changes_umask: umask(0); break;
    case FAULT_changes_folder:
        if (chdir("/usr") != 0)
            abort();
        break;
    case FAULT_changes_environment: setenv("FAULTY", "1", 1); break;
    case FAULT_changes_signal: signal(SIGPIPE, SIG_IGN); break;
    default: break;
    }
}

static void crash_at_exit(void)
{
    crash();
}

static void open_it(void *self, weir_outcome *outcome)
{
    struct faulty *faulty = self;
    change_process_state(faulty->fault);
    switch (faulty->fault) {
    case FAULT_open_hangs: hang(); break;
    case FAULT_open_crashes: crash(); break;
    case FAULT_open_without_reason: outcome->code = WEIR_OUTCOME_RETRY; return;
    case FAULT_leaves_thread: start_thread(); break;
    case FAULT_leaves_process: leave_process(); break;
    case FAULT_leaks_descriptor: faulty->lost = memfd_create("lost", MFD_CLOEXEC); break;
    case FAULT_crashes_at_exit: atexit(crash_at_exit); break;
    default: break;
    }
    faulty->fd = memfd_create("faulty", MFD_CLOEXEC);
    if (faulty->fd < 0) {
        outcome->code = WEIR_OUTCOME_RETRY;
        snprintf(outcome->reason, sizeof outcome->reason, "%s", strerror(errno));
    }
}

static void close_it(void *self)
{
    struct faulty *faulty = self;
    if (faulty->fault == FAULT_close_hangs)
        hang();
    if (faulty->fault == FAULT_close_crashes)
        crash();
    int fd = faulty->fd;
    if (fd >= 0)
        close(fd);
    if (faulty->fault == FAULT_closes_stranger)
        close(7);
    if (faulty->fault != FAULT_closes_twice && faulty->fault != FAULT_writes_after_close)
        faulty->fd = -1;
}

static void abandon(void *self)
{
    const struct faulty *faulty = self;
    if (faulty->fault == FAULT_abandon_crashes)
        crash();
    if (faulty->fault == FAULT_abandon_writes && write(faulty->fd, "bye", 3) < 0)
        return;
    if (faulty->fd >= 0)
        close(faulty->fd);
}

/* ---- Delivering ------------------------------------------------------------------------------ */

/* Returns invalid outcomes. */
static void return_invalid_outcome(enum fault fault, const weir_batch *batch, weir_outcome *outcome)
{
    switch (fault) {
    case FAULT_done_beyond: outcome->done = batch->count + 1; break;
    case FAULT_rejected_beyond: outcome->rejected = outcome->done + 1; break;
    case FAULT_unknown_code: outcome->code = 17; break;
    case FAULT_nothing_done: outcome->done = 0; break;
    case FAULT_positive_error: outcome->error = 5; break;
    case FAULT_writes_behind_outcome: outcome->error = 0; break;
    case FAULT_garbage: memset(outcome, 0xff, outcome->size); break;
    case FAULT_no_end_of_reason: memset(outcome->reason, 'x', sizeof outcome->reason); break;
    default: break;
    }
}

/* Two instances share state without a lock. */
static void use_shared_state(void)
{
    if (inside++)
        abort();
    sleep_ms(1);
    inside--;
}

static void touch_batch(struct faulty *faulty, const weir_batch *batch)
{
    if (faulty->fault == FAULT_writes_batch && batch->count)
        ((weir_sample *)(uintptr_t)batch->samples)->note = 0;
    if (faulty->fault != FAULT_keeps_batch)
        return;
    if (faulty->kept && faulty->kept->note == UINT32_MAX)
        abort();
    faulty->kept = batch->count ? batch->samples : NULL;
}

static void misbehave_in_emit(struct faulty *faulty)
{
    const weir_host *host = faulty->host;
    switch (faulty->fault) {
    case FAULT_emit_hangs: hang(); break;
    case FAULT_emit_crashes: crash(); break;
    case FAULT_emit_exits: _exit(3);
    case FAULT_emit_ignores_stop:
        for (;;)
            if (!host->wait(host, 10))
                sleep_ms(10);
    case FAULT_leaks_memory:
        if (!malloc(100))
            abort();
        break;
    case FAULT_logs_secret:
        host->log(host, 2, "logged in with %s", faulty->token ? faulty->token : "nothing");
        break;
    case FAULT_shares_state: use_shared_state(); break;
    default: break;
    }
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct faulty *faulty = self;
    misbehave_in_emit(faulty);
    touch_batch(faulty, batch);
    if (pwrite(faulty->fd, batch->samples, batch->count * sizeof *batch->samples, 0) < 0) {
        outcome->done = 0;
        outcome->code = WEIR_OUTCOME_REOPEN;
        snprintf(outcome->reason, sizeof outcome->reason, "%s", strerror(errno));
        return;
    }
    return_invalid_outcome(faulty->fault, batch, outcome);
}

static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct faulty *faulty = self;
    (void)outcome;
    if (faulty->fault == FAULT_flush_hangs)
        hang();
    if (faulty->fault == FAULT_flush_late && timeout_ms >= 0)
        sleep_ms(timeout_ms + 2500);
}

static void wake(void *self, int why, weir_outcome *outcome)
{
    const struct faulty *faulty = self;
    (void)why;
    (void)outcome;
    if (faulty->fault == FAULT_wake_crashes)
        crash();
}

static void probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct faulty *faulty = self;
    (void)outcome;
    if (faulty->fault == FAULT_probe_leaks)
        memfd_create("lost", MFD_CLOEXEC);
    if (faulty->fault == FAULT_probe_late)
        sleep_ms(timeout_ms + 2500);
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "faulty",
    .summary = "breaks the contract, for tests",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = create,
    .open = open_it,
    .emit = emit,
    .flush = flush,
    .close = close_it,
    .destroy = destroy,
    .wake = wake,
    .abandon = abandon,
    .probe = probe,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
