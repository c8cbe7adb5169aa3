/* vet: shared by the parts of `weir vet`: the subject, the checks and their verdicts.
 *
 * Each check runs in its own child process, so that a plugin that crashes or hangs ends only that check. The
 * child reports the result in a page that it shares with the parent.
 *
 * Time: a call of the plugin may take deadline_ms; a stop is requested after half of that. Checks repeat calls
 * only as long as vet_has_time, so that a slow handler gets fewer repetitions instead of a failed check. */
#ifndef WEIR_TOOLS_VET_H
#define WEIR_TOOLS_VET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { VET_MESSAGE_SIZE = 1200, VET_TYPES = 16, VET_TYPE_NAME = 64, VET_GUIDE_SIZE = 64 };

/* The most that a check may take, and after which time it is stopped, in deadlines of a call. */
enum { VET_CHECK_STOP = 3, VET_CHECK_MOST = 4 };

enum vet_verdict { VET_NONE, VET_OK, VET_FAIL, VET_SKIPPED };

/* The plugin's callback that is running; bits of vet_check.calls. */
enum vet_call {
    VET_NOTHING = 0,
    VET_LOAD = 1u << 0,
    VET_CREATE = 1u << 1,
    VET_OPEN = 1u << 2,
    VET_EMIT = 1u << 3,
    VET_FLUSH = 1u << 4,
    VET_WAKE = 1u << 5,
    VET_CLOSE = 1u << 6,
    VET_DESTROY = 1u << 7,
    VET_ABANDON = 1u << 8,
    VET_PROBE = 1u << 9,
    VET_PREPARE = 1u << 10,
    VET_RUN = 1u << 11, /* of a source */
    VET_MAKE = VET_PREPARE | VET_CREATE | VET_DESTROY,
    VET_SOURCE_LIFE = VET_CREATE | VET_OPEN | VET_RUN | VET_CLOSE | VET_DESTROY,
    VET_LIFE = VET_PREPARE | VET_CREATE | VET_OPEN | VET_EMIT | VET_CLOSE | VET_DESTROY,
};

/* The handler or source type under test. */
struct vet_subject {
    const char *path;
    bool is_source;
    const char *type;    /* the type's name; NULL: not yet known */
    const char *options; /* JSON, or NULL */
    const char *read;    /* a shell command that prints what the destination has received, or NULL */
    const char *write;   /* of a source: a shell command that sends values to it, or NULL */
    int64_t deadline_ms; /* of one call; a stop is requested after half of it */
    bool fuzz;
    uint64_t seed;
};

/* Shared by the child that runs a check and the parent. */
struct vet_page {
    _Atomic int verdict; /* enum vet_verdict */
    char message[VET_MESSAGE_SIZE];
    char guide[VET_GUIDE_SIZE];       /* set by vet_see; "": the check's section */
    _Atomic bool cannot_create;       /* no handler can be created with these options */
    _Atomic unsigned broken;          /* bits of vet_call: what further checks must not call */
    _Atomic unsigned call;            /* enum vet_call: the callback that the child is in */
    char operation[160];              /* the same as text: "emit of 7 samples" */
    _Atomic uint64_t progress;        /* counts calls that began or returned */
    int64_t began_ms;                 /* CLOCK_MONOTONIC: when the check began */
    int64_t deadline_ms;              /* of a call */
    char last_log[256];               /* the last message that the handler logged */
    _Atomic uint32_t stop;            /* a futex; 1: a stop is requested */
    _Atomic int64_t stop_deadline_ms; /* CLOCK_MONOTONIC: when the child is killed */
    _Atomic uint64_t waits;           /* calls of host->wait and host->stopping */
    _Atomic int batch_touched; /* a fault at the address of a batch; 1: writing to it, 2: after its call */
    int sender_status;         /* of the command of --write, if it failed; of waitpid(2) */
    uint32_t type_count;
    char types[VET_TYPES][VET_TYPE_NAME];
};

typedef void vet_check_run(const struct vet_subject *subject);

struct vet_check {
    const char *name;
    vet_check_run *run;
    const char *guide; /* the section of the guide that explains what is checked, as an anchor */
    unsigned calls;    /* bits of vet_call; the check is skipped if one of them hung or crashed before */
    bool exits;        /* the child ends with exit(), as programs do */
};

/* The checks, in the order in which they are run. */
extern const struct vet_check vet_check_load, vet_checks_of_type[], vet_checks_of_source[], vet_check_read,
    vet_check_fuzz;

/* The page of the check that this process runs, or NULL. */
extern struct vet_page *vet_page;

/* End the check, from any thread. */
_Noreturn void vet_end(enum vet_verdict verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define vet_pass(...) vet_end(VET_OK, __VA_ARGS__)
#define vet_fail(...) vet_end(VET_FAIL, __VA_ARGS__)
#define vet_skip(...) vet_end(VET_SKIPPED, __VA_ARGS__)

/* Sets the section of the guide that the verdict refers to, if it is not the check's own. */
void vet_see(const char *guide);

/* Whether the check may repeat its calls once more: a quarter of the deadline has not passed since it began. */
bool vet_has_time(void);

/* vet_fail if no handler can be created, so that the checks that need one are skipped. */
#define vet_fail_to_create(...) (atomic_store(&vet_page->cannot_create, true), vet_fail(__VA_ARGS__))

/* Records that the check has passed, and returns; for checks that end with exit(). */
void vet_note_pass(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Record which call the child is in, for the verdict on a crash or a hang. */
void vet_enter(enum vet_call call, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vet_leave(void);

int64_t vet_now_ms(void);

/* The checks of both kinds of types. */
vet_check_run vet_check_create, vet_check_state, vet_check_threads, vet_check_memory;

/* The checks of a handler type. */
vet_check_run vet_check_type, vet_check_options, vet_check_prepare, vet_check_values, vet_check_life,
    vet_check_batches, vet_check_names, vet_check_series, vet_check_numbers, vet_check_formats, vet_check_flush,
    vet_check_wake, vet_check_now, vet_check_probe, vet_check_stop, vet_check_instances, vet_check_descriptors,
    vet_check_abandon, vet_check_program, vet_check_exit, vet_check_fork;

/* Parts of those of threads and memory: what a handler leaves behind with each batch. */
vet_check_run vet_probe_check_threads, vet_probe_check_memory;

/* The checks of a source type. */
vet_check_run vet_check_source_type, vet_check_source_options, vet_check_source_values, vet_check_source_life,
    vet_check_source_idle, vet_check_source_full, vet_check_source_refused, vet_check_source_stop,
    vet_check_source_reload, vet_check_source_descriptors, vet_check_source_abandon, vet_check_source_probe,
    vet_check_source_program;

/* Calls probe, of a handler or a source. It must return in time and leave no descriptor open. */
typedef void vet_probe_call(void *ctx, int64_t timeout_ms);
void vet_check_probe_within(vet_probe_call *call, void *ctx, int64_t timeout_ms);

#endif
