/* faulty_source: a source type that breaks the contract only in the way that its option "fault" names. It adds
 * a value for each line of its standard input. With -DWRONG_... its description is wrong. */

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/source.h>

/* clang-format off */
#define FAULTS(X) \
    X(none) X(create_crashes) X(create_opens_file) X(create_starts_thread) \
    X(create_refuses_without_reason) X(odd_refusal) X(waits_in_create) X(open_crashes) \
    X(open_without_reason) X(changes_umask) X(changes_mask) X(changes_locale) X(changes_signal) \
    X(create_changes_mask) X(run_changes_mask) X(close_changes_mask) X(destroy_changes_locale) \
    X(changes_folder) X(prints_in_open) X(unknown_code) X(garbage) X(writes_behind_outcome) \
    X(ignores_stop) X(never_waits) X(open_hangs) X(spins) X(spins_full) X(adds_forever) X(loses_full) \
    X(repeats_refused) X(static_state) X(leaks_descriptor) X(inherits) X(closes_twice) \
    X(leaves_thread) X(leaks_memory) X(abandon_leaves) \
    X(abandon_writes) X(abandon_crashes) X(wrong_thread) X(empty_record) X(odd_kind) X(odd_mark) \
    X(logs_secret) X(crashes_at_stop) X(many_descriptors) X(odd_descriptor) X(slow_to_stop) \
    X(early_stop) X(crashes_at_exit) X(drops) X(probe_leaks) X(probe_hangs)
/* clang-format on */

#define NUMBER(name) FAULT_##name,
#define WORD(name) #name,
enum fault { FAULTS(NUMBER) };
static const char *const words[] = {FAULTS(WORD)};

struct options {
    const char *fault, *token;
};

#ifdef WRONG_HELP
#define HELP ""
#else
#define HELP "what to do wrong"
#endif

static const weir_option rows[] = {
    {"fault", WEIR_OPTION_STRING, 0, "none", NULL, HELP, offsetof(struct options, fault)},
    {"token", WEIR_OPTION_STRING, WEIR_OPTION_SECRET, NULL, NULL, "a secret", offsetof(struct options, token)},
    {0},
};

struct source {
    const weir_host *host;
    const weir_intake *intake;
    const char *token;
    enum fault fault;
    int fd;
    char *text;
    size_t length; /* of what was read and is not added yet */
    bool is_full, at_end;
};

static struct source *shared; /* static_state */

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

static void unblock_hangup(void)
{
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &hangup, NULL);
}

static void block_hangup(void)
{
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &hangup, NULL);
}

/* ---- Creating -------------------------------------------------------------------------------- */

/* Returns whether create succeeds. */
static bool misbehave_in_create(const weir_host *host, enum fault fault)
{
    switch (fault) {
    case FAULT_create_crashes: crash(); break;
    case FAULT_create_opens_file: close(open("/tmp", O_RDONLY | O_CLOEXEC)); break;
    case FAULT_create_starts_thread: start_thread(); break;
    case FAULT_create_refuses_without_reason: return false;
    case FAULT_odd_refusal: host->refuse(host, "no_such_option", "no"); return false;
    case FAULT_create_changes_mask: block_hangup(); break;
    case FAULT_waits_in_create: host->wait(host, 1); break;
    default: break;
    }
    return true;
}

static enum fault find_fault(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return (enum fault)i;
    return FAULT_none;
}

enum { TEXT_ROOM = 4096 };

static void *create(const weir_host *host, const void *given)
{
    const struct options *options = given;
    struct source *source = calloc(1, sizeof *source);
    if (!source || !misbehave_in_create(host, find_fault(options->fault))) {
        free(source);
        return NULL;
    }
    source->host = host;
    source->intake = host->service(host, WEIR_SERVICE_INTAKE);
    source->token = options->token;
    source->fault = find_fault(options->fault);
    source->fd = -1;
    source->text = malloc(TEXT_ROOM);
    shared = source;
    return source;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void misbehave_in_open(struct source *source, weir_outcome *outcome)
{
    switch (source->fault) {
    case FAULT_open_crashes: crash(); break;
    case FAULT_open_without_reason: outcome->code = WEIR_OUTCOME_RETRY; break;
    case FAULT_open_hangs: hang(); break;
    case FAULT_changes_umask: umask(0); break;
    case FAULT_changes_mask: unblock_hangup(); break;
    case FAULT_changes_locale: setlocale(LC_ALL, "C.UTF-8"); break;
    case FAULT_changes_signal: signal(SIGPIPE, SIG_IGN); break;
    case FAULT_changes_folder: (void)!chdir("/usr"); break;
    case FAULT_prints_in_open: (void)!write(1, "x", 1); break;
    case FAULT_leaks_descriptor: memfd_create("lost", MFD_CLOEXEC); break;
    case FAULT_leaves_thread: start_thread(); break;
    case FAULT_logs_secret: source->host->log(source->host, WEIR_LOG_INFO, "with %s", source->token); break;
    case FAULT_early_stop: source->host->wait(source->host, 50); break;
    case FAULT_crashes_at_exit: atexit(crash); break;
    default: break;
    }
}

static void open_source(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    source->at_end = source->is_full = false;
    source->length = 0;
    source->fd = source->fault == FAULT_inherits ? memfd_create("faulty", 0) : memfd_create("own", MFD_CLOEXEC);
    misbehave_in_open(source, outcome);
}

static void close_source(void *self)
{
    struct source *source = self;
    close(source->fd);
    if (source->fault != FAULT_closes_twice)
        source->fd = -1;
    if (source->fault == FAULT_close_changes_mask)
        unblock_hangup();
}

static void destroy(void *self)
{
    struct source *source = self;
    if (source->fault == FAULT_destroy_changes_locale)
        uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    if (source->fd >= 0)
        close(source->fd);
    if (shared == source)
        shared = NULL;
    if (source->fault != FAULT_leaks_memory)
        free(source->text);
    free(source);
}

/* ---- Running --------------------------------------------------------------------------------- */

static int add_one(const struct source *source, double number)
{
    weir_typed_value value = {"line", WEIR_DOUBLE(number)};
    weir_record record = {.size = sizeof record, .values = &value, .count = 1};
    if (source->fault == FAULT_empty_record)
        record.count = 0;
    if (source->fault == FAULT_odd_kind)
        value.number.kind = 77;
    return source->intake->add(source->host, &record);
}

static void *add_elsewhere(void *ctx)
{
    add_one(ctx, 1);
    return NULL;
}

static void add_from_thread(struct source *source)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, add_elsewhere, source) == 0)
        pthread_join(thread, NULL);
}

/* Returns what became of the first line. */
static int add_line(struct source *source)
{
    int result;
    do
        result = add_one(source, (double)source->length);
    while ((result == WEIR_ADD_FULL && source->fault == FAULT_adds_forever) ||
           (result == WEIR_ADD_REFUSED && source->fault == FAULT_repeats_refused));
    if (source->fault == FAULT_loses_full)
        return WEIR_ADD_TAKEN;
    if (source->fault == FAULT_odd_mark)
        source->intake->settled(source->host, source->intake->mark(source->host) + 1);
    return result;
}

/* Adds the lines that were read. */
static void add_lines(struct source *source)
{
    char *newline;
    source->is_full = false;
    while ((newline = memchr(source->text, '\n', source->length))) {
        if (add_line(source) == WEIR_ADD_FULL) {
            source->is_full = true;
            return;
        }
        source->length -= (size_t)(newline + 1 - source->text);
        memmove(source->text, newline + 1, source->length);
    }
}

static void read_more(struct source *source)
{
    ssize_t length = read(0, source->text + source->length, TEXT_ROOM - source->length);
    source->at_end = length == 0;
    if (length > 0 && (source->fault != FAULT_static_state || shared))
        source->length += (size_t)length;
    add_lines(source);
}

static unsigned wait_for(struct source *source)
{
    enum { TOO_MANY = 1025 };
    struct pollfd fds[TOO_MANY] = {{0, POLLIN, 0},
                                   {source->fault == FAULT_odd_descriptor ? 999 : -1, POLLIN, 0}};
    size_t count = source->fault == FAULT_many_descriptors ? TOO_MANY
                   : source->fault == FAULT_odd_descriptor ? 2
                   : source->at_end                        ? 0
                   : source->fault == FAULT_spins_full     ? 1
                   : source->is_full                       ? 0
                                                           : 1;
    unsigned woke = source->intake->wait(source->host, fds, count, source->fault == FAULT_spins ? 0 : -1);
    return fds[0].revents && count ? woke : woke & ~(unsigned)WEIR_WAIT_READY;
}

static void misbehave_in_run(struct source *source, weir_outcome *outcome)
{
    switch (source->fault) {
    case FAULT_unknown_code: outcome->code = 17; break;
    case FAULT_drops: outcome->code = WEIR_OUTCOME_DROP; break;
    case FAULT_garbage: outcome->size = 1; break;
    case FAULT_writes_behind_outcome: memset(outcome->reason, 0, sizeof outcome->reason + 8); break;
    case FAULT_run_changes_mask: unblock_hangup(); break;
    case FAULT_crashes_at_stop: crash(); break;
    case FAULT_slow_to_stop: hang(); break;
    default: break;
    }
}

static void run(void *self, weir_outcome *outcome)
{
    struct source *source = self;
    bool stops = source->host->stopping(source->host);
    if (source->fault == FAULT_never_waits || (source->fault == FAULT_early_stop && stops))
        hang();
    if (source->fault == FAULT_wrong_thread)
        add_from_thread(source);
    for (;;) {
        unsigned woke = wait_for(source);
        if (woke & WEIR_WAIT_STOP && source->fault != FAULT_ignores_stop)
            break;
        if (source->is_full)
            add_lines(source);
        else if (woke & WEIR_WAIT_READY)
            read_more(source);
    }
    misbehave_in_run(source, outcome);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static void abandon(void *self)
{
    struct source *source = self;
    if (source->fault == FAULT_abandon_writes)
        (void)!write(source->fd, "x", 1);
    if (source->fault == FAULT_abandon_crashes)
        crash();
    if (source->fault != FAULT_abandon_leaves)
        close(source->fd);
}

static void probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    const struct source *source = self;
    (void)timeout_ms, (void)outcome;
    if (source->fault == FAULT_probe_hangs)
        hang();
    if (source->fault == FAULT_probe_leaks)
        memfd_create("lost", MFD_CLOEXEC);
}

#ifdef WRONG_DEFAULT
static const weir_default defaults[] = {{"no_such_option", "1"}, {0}};
#endif

static const weir_source_type type = {
    .size = sizeof(weir_source_type),
    .abi = WEIR_SOURCE_ABI,
#ifdef WRONG_FLAGS
    .flags = 0x80,
#endif
#ifdef WRONG_DEFAULT
    .defaults = defaults,
#endif
    .name = "faulty_source",
    .summary = "for tests",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct options),
    .create = create,
    .open = open_source,
    .run = run,
    .close = close_source,
    .destroy = destroy,
#ifndef WRONG_ABANDON
    .abandon = abandon,
#endif
    .probe = probe,
};

const weir_source_type *weir_source_type_at(uint32_t index)
{
#ifdef WRONG_END
    (void)index;
    return &type;
#else
    return index == 0 ? &type : NULL;
#endif
}
