/* faulty: a handler type that breaks the contract only in the way that its option "fault" names. It appends its
 * samples as lines to the file of its option "path", or their bytes to an anonymous file. With -DNO_FLUSH it
 * has no flush. */

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
    X(waits_in_create) X(crashes_at_exit) X(probe_leaks) X(probe_late) \
    X(slow) X(prints_to_stdout) X(prints_to_stderr) X(prints_in_open) X(replaces_stdout) X(closes_stdin) \
    X(sets_alarm) X(drops_all) X(loses_some) X(writes_wrong_value) \
    X(writes_more_digits) X(writes_exponents) X(writes_name_last) X(writes_one_line) X(rejects_all) \
    X(rejects_large) X(drops_large) X(rejects_in_program) X(repeats_some) X(buffers) X(empties_on_open) \
    X(swaps_values) X(inherits) X(leaks_every_50th) \
    X(static_descriptor) X(static_options) X(thread_per_batch) \
    X(keeps_note) X(keeps_label) X(short_label) X(few_labels) X(short_note) X(small_array) \
    X(crashes_in_stopped_open) X(gives_up_open) \
    X(now_sleeps) X(now_is_deep) X(now_does_nothing)
/* clang-format on */

#define NUMBER(name) FAULT_##name,
#define WORD(name) "|" #name
enum fault { FAULTS(NUMBER) };
static const char words[] = FAULTS(WORD);

struct options {
    int64_t fault;
    const char *token, *path;
};

static const weir_option rows[] = {
    {"fault", WEIR_OPTION_ENUM, 0, "none", words + 1, "what to do wrong", offsetof(struct options, fault)},
    {"token", WEIR_OPTION_STRING, WEIR_OPTION_SECRET, NULL, NULL, "a secret", offsetof(struct options, token)},
    {"path", WEIR_OPTION_STRING, 0, NULL, NULL, "the file", offsetof(struct options, path)},
    {0},
};

struct faulty {
    const weir_host *host;
    enum fault fault;
    const char *token;
    const struct options *options;
    int fd, lost;
    const weir_sample *kept;
    const char *kept_text;
    uint32_t batches, samples;
    char *buffered; /* lines that close writes */
    size_t buffered_length;
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

static void start_detached(void *(*code)(void *ctx), void *ctx)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, code, ctx) == 0)
        pthread_detach(thread);
}

static void start_thread(void)
{
    start_detached(sleep_on, NULL);
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

static const struct options *shared_options;
static int shared_fd = -1;

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
    faulty->options = shared_options = options;
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

/* Never closed. */
static int faulty_null(void)
{
    static int fd = -1;
    return fd >= 0 ? fd : (fd = open("/dev/null", O_WRONLY | O_CLOEXEC));
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
    case FAULT_replaces_stdout: dup2(faulty_null(), 1); break;
    case FAULT_closes_stdin: close(0); break;
    case FAULT_sets_alarm: alarm(3600); break;
    default: break;
    }
}

static void crash_at_exit(void)
{
    crash();
}

/* Takes a while, and is asked to stop meanwhile. Returns whether to go on. */
static bool open_slowly(const struct faulty *faulty)
{
    const weir_host *host = faulty->host;
    for (int i = 0; i < 30; i++) {
        sleep_ms(1);
        if (host->stopping(host) && faulty->fault == FAULT_crashes_in_stopped_open)
            crash();
        if (host->stopping(host) && faulty->fault == FAULT_gives_up_open)
            return false;
    }
    return true;
}

static int open_destination(const struct faulty *faulty)
{
    int flags = faulty->fault == FAULT_inherits ? 0 : O_CLOEXEC;
    if (!faulty->options->path)
        return memfd_create("faulty", flags ? MFD_CLOEXEC : 0);
    flags |= faulty->fault == FAULT_empties_on_open ? O_TRUNC : 0;
    return open(faulty->options->path, O_WRONLY | O_APPEND | O_CREAT | flags, 0600);
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
    case FAULT_prints_in_open: puts("open"); break;
    case FAULT_crashes_in_stopped_open:
    case FAULT_gives_up_open:
        if (!open_slowly(faulty)) {
            outcome->code = WEIR_OUTCOME_RETRY;
            snprintf(outcome->reason, sizeof outcome->reason, "stopped");
            return;
        }
        break;
    default: break;
    }
    faulty->fd = open_destination(faulty);
    shared_fd = faulty->fd;
    if (faulty->fd >= 0 && flock(faulty->fd, LOCK_SH) == 0)
        return;
    outcome->code = WEIR_OUTCOME_RETRY;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", strerror(errno));
    if (faulty->fd >= 0)
        close(faulty->fd);
    faulty->fd = -1;
}

static void close_it(void *self)
{
    struct faulty *faulty = self;
    if (faulty->fault == FAULT_close_hangs)
        hang();
    if (faulty->fault == FAULT_close_crashes)
        crash();
    int fd = faulty->fault == FAULT_static_descriptor ? shared_fd : faulty->fd;
    if (faulty->buffered && write(fd, faulty->buffered, faulty->buffered_length) < 0)
        errno = 0;
    free(faulty->buffered);
    faulty->buffered = NULL;
    faulty->buffered_length = 0;
    if (fd >= 0)
        close(fd);
    if (faulty->fault == FAULT_static_descriptor)
        shared_fd = -1;
    if (faulty->fault == FAULT_closes_stranger)
        close(7);
    if (faulty->fault != FAULT_closes_twice && faulty->fault != FAULT_writes_after_close)
        faulty->fd = -1;
}

static void abandon(void *self)
{
    struct faulty *faulty = self;
    if (faulty->fault == FAULT_abandon_crashes)
        crash();
    if (faulty->fault == FAULT_abandon_writes && write(faulty->fd, "bye", 3) < 0)
        return;
    if (faulty->fd >= 0)
        close(faulty->fd);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Appends name and value as the fault says. */
static void put_value(const struct faulty *faulty, FILE *lines, const weir_series *series, double value)
{
    switch (faulty->fault) {
    case FAULT_writes_exponents: fprintf(lines, "%s.%s=%e\n", series->group, series->name, value); break;
    case FAULT_writes_name_last: fprintf(lines, "%+.2f\t%s.%s\n", value, series->group, series->name); break;
    case FAULT_swaps_values:
    case FAULT_writes_one_line: fprintf(lines, "{\"%s\":%.1f},", series->name, value); break;
    default: fprintf(lines, "%s.%s %.17g\n", series->group, series->name, value); break;
    }
}

static double number_of(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
}

/* Appends one line, or more or less than that. */
static void put_line(const struct faulty *faulty, FILE *lines, const weir_batch *batch, uint32_t i)
{
    const weir_sample *sample = &batch->samples[i];
    const weir_series *series = weir_batch_series(batch, sample);
    double value = number_of(sample);
    uint64_t number = batch->sequence + i;
    if (faulty->fault == FAULT_drops_all || (faulty->fault == FAULT_loses_some && number % 97 == 96))
        return;
    if (faulty->fault == FAULT_swaps_values && (i ^ 1) < batch->count)
        value = number_of(&batch->samples[i ^ 1]);
    if (faulty->fault == FAULT_writes_wrong_value && number % 97 == 96)
        value /= 10;
    if (faulty->fault == FAULT_writes_more_digits && number % 97 == 96)
        value += 3e8;
    put_value(faulty, lines, series, value);
    if (faulty->fault == FAULT_repeats_some && number % 97 == 96)
        put_value(faulty, lines, series, value);
}

/* Returns the lines of a batch; the caller frees them. */
static char *make_lines(const struct faulty *faulty, const weir_batch *batch, size_t *length)
{
    char *text = NULL;
    FILE *lines = open_memstream(&text, length);
    for (uint32_t i = 0; lines && i < batch->count; i++)
        put_line(faulty, lines, batch, i);
    if (!lines || fclose(lines) != 0)
        abort();
    return text;
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

static bool buffer_lines(struct faulty *faulty, char *text, size_t length)
{
    char *grown = realloc(faulty->buffered, faulty->buffered_length + length + 1);
    if (!grown)
        abort();
    memcpy(grown + faulty->buffered_length, text, length);
    faulty->buffered = grown;
    faulty->buffered_length += length;
    free(text);
    return true;
}

static bool write_batch(struct faulty *faulty, const weir_batch *batch)
{
    size_t length;
    int fd = faulty->fault == FAULT_static_descriptor ? shared_fd : faulty->fd;
    const struct options *options = faulty->fault == FAULT_static_options ? shared_options : faulty->options;
    if (!options->path) {
        const char *bytes = (const char *)batch->samples;
        return lseek(fd, 0, SEEK_SET) == 0 && write_all(fd, bytes, batch->count * sizeof *batch->samples);
    }
    char *text = make_lines(faulty, batch, &length);
    if (*options->path != '/')
        abort();
    if (faulty->fault == FAULT_buffers)
        return buffer_lines(faulty, text, length);
    bool written = write_all(fd, text, length);
    free(text);
    return written;
}

/* ---- Delivering ------------------------------------------------------------------------------ */

/* Returns invalid outcomes. */
static void return_invalid_outcome(enum fault fault, const weir_batch *batch, weir_outcome *outcome)
{
    switch (fault) {
    case FAULT_done_beyond: outcome->done = batch->count + 1; break;
    case FAULT_rejected_beyond: outcome->rejected = batch->count + 1; break;
    case FAULT_unknown_code: outcome->code = 17; break;
    case FAULT_nothing_done: outcome->done = 0; break;
    case FAULT_positive_error: outcome->error = 5; break;
    case FAULT_writes_behind_outcome: memset(outcome->reason, 0, sizeof outcome->reason + 8); break;
    case FAULT_garbage: memset(outcome, 0xff, outcome->size); break;
    case FAULT_no_end_of_reason: memset(outcome->reason, 'x', sizeof outcome->reason); break;
    default: break;
    }
}

/* Settles a batch as rejected, without writing it. Returns false if the fault is not that. */
static bool reject(enum fault fault, const weir_batch *batch, weir_outcome *outcome)
{
    bool is_large = batch->count > 3;
    bool in_program = !batch->label_count; /* vet's own batches have labels */
    bool drops = fault == FAULT_drops_large && is_large;
    bool rejects = fault == FAULT_rejects_all || (fault == FAULT_rejects_large && is_large) ||
                   (fault == FAULT_rejects_in_program && in_program);
    outcome->rejected = rejects ? batch->count : 0;
    outcome->done = drops ? 0 : batch->count;
    outcome->code = drops ? WEIR_OUTCOME_DROP : WEIR_OUTCOME_OK;
    if (drops)
        snprintf(outcome->reason, sizeof outcome->reason, "the batch is too large");
    return drops || rejects;
}

/* Two instances share state without a lock. */
static void use_shared_state(void)
{
    if (inside++)
        abort();
    sleep_ms(1);
    inside--;
}

/* Memory of this size that ends at a page which cannot be written. */
static void *before_edge(size_t size)
{
    enum { PAGE = 65536 }; /* a multiple of a page of any machine */
    static char *edge;
    if (!edge) {
        char *pages = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE) != 0)
            abort();
        edge = pages + PAGE;
    }
    return edge - size;
}

/* Arrays that are too small for what the core may pass. */
static void overflow(const struct faulty *faulty, const weir_batch *batch)
{
    enum { SERIES = 1024 };
    static uint64_t by_series[SERIES];
    for (uint32_t i = 0; i < batch->count; i++) {
        enum { TEXT = 256, KEYS = 8 };
        const weir_series *series = weir_batch_series(batch, &batch->samples[i]);
        const char *note = batch->samples[i].note ? batch->notes[batch->samples[i].note] : NULL;
        volatile char *to = before_edge(TEXT);
        const char *volatile *key = before_edge(KEYS * sizeof(char *));
        if (faulty->fault == FAULT_small_array)
            ++*(volatile uint64_t *)&by_series[batch->samples[i].series];
        for (size_t j = 0; j < series->label_count; j++) {
            if (faulty->fault == FAULT_few_labels)
                key[j] = series->labels[j].key;
            for (size_t k = 0; faulty->fault == FAULT_short_label && series->labels[j].value[k]; k++)
                to[k] = series->labels[j].value[k];
        }
        for (size_t k = 0; faulty->fault == FAULT_short_note && note && note[k]; k++)
            to[k] = note[k];
    }
}

/* Reads a text of the previous batch. */
static void keep_text(struct faulty *faulty, const weir_batch *batch)
{
    if (faulty->kept_text && *(const volatile char *)faulty->kept_text == '\x7f')
        abort();
    faulty->kept_text = NULL;
    if (faulty->fault == FAULT_keeps_label && batch->label_count)
        faulty->kept_text = batch->labels[0].value;
    for (uint32_t i = 0; faulty->fault == FAULT_keeps_note && i < batch->count; i++)
        if (batch->samples[i].note)
            faulty->kept_text = batch->notes[batch->samples[i].note];
}

static void touch_batch(struct faulty *faulty, const weir_batch *batch)
{
    overflow(faulty, batch);
    keep_text(faulty, batch);
    if (faulty->fault == FAULT_writes_batch && batch->count)
        ((weir_sample *)(uintptr_t)batch->samples)->note = 0;
    if (faulty->fault != FAULT_keeps_batch)
        return;
    if (faulty->kept && faulty->kept->note == UINT32_MAX)
        abort();
    faulty->kept = batch->count ? batch->samples : NULL;
}

static void *end_soon(void *ctx)
{
    sleep_ms(1);
    return ctx;
}

static void misbehave_in_emit(struct faulty *faulty)
{
    faulty->batches++;
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
    case FAULT_slow: sleep_ms(200); break;
    case FAULT_prints_to_stdout: printf("emit\n"); break;
    case FAULT_prints_to_stderr: fprintf(stderr, "emit\n"); break;
    case FAULT_thread_per_batch: start_detached(end_soon, NULL); break;
    case FAULT_leaks_every_50th:
        if (faulty->batches % 50 == 0)
            faulty->lost = memfd_create("lost", MFD_CLOEXEC);
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
    if (reject(faulty->fault, batch, outcome))
        return;
    if (!write_batch(faulty, batch)) {
        outcome->done = 0;
        outcome->code = WEIR_OUTCOME_REOPEN;
        snprintf(outcome->reason, sizeof outcome->reason, "%s", strerror(errno));
        return;
    }
    return_invalid_outcome(faulty->fault, batch, outcome);
}

#ifndef NO_FLUSH
static void flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct faulty *faulty = self;
    (void)outcome;
    if (faulty->fault == FAULT_flush_hangs)
        hang();
    if (faulty->fault == FAULT_flush_late && timeout_ms >= 0)
        sleep_ms(timeout_ms + 2500);
}
#endif

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

static __attribute__((noinline)) void use_stack(void)
{
    volatile char room[16 * 1024];
    for (size_t i = 0; i < sizeof room; i += 64)
        room[i] = 0;
}

static void emit_now(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    const struct faulty *faulty = self;
    (void)batch;
    outcome->done = 0;
    outcome->code = WEIR_OUTCOME_NOT_NOW;
    switch (faulty->fault) {
    case FAULT_now_sleeps: sleep_ms(1); break;
    case FAULT_now_is_deep: use_stack(); break;
    case FAULT_now_does_nothing: outcome->code = WEIR_OUTCOME_OK; break;
    default: break;
    }
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
#ifndef NO_FLUSH
    .flush = flush,
#endif
    .close = close_it,
    .destroy = destroy,
    .wake = wake,
    .abandon = abandon,
    .probe = probe,
    .emit_now = emit_now,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &type : NULL;
}
