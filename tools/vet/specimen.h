/* specimen: a source under test. Runs it as the core does, on a thread of its own, takes what it adds in place
 * of the core, and ends the check at the first violation of the contract. */
#ifndef WEIR_TOOLS_VET_SPECIMEN_H
#define WEIR_TOOLS_VET_SPECIMEN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/source.h>

#include "source/source.h"
#include "tested.h"
#include "vet.h"

struct wr_error;

/* The standard input of this process becomes a pipe, whose other end the command of --write writes to. */
struct vet_sender {
    bool is_open;
    int pipe;  /* -1: closed */
    int input; /* what was standard input before */
    pid_t command;
};

/* What becomes of the records that are added. */
enum vet_intake {
    VET_INTAKE_TAKES,
    VET_INTAKE_IS_TIGHT, /* each record is full once: it is taken after the next wait */
    VET_INTAKE_IS_FULL,  /* there is never room */
    VET_INTAKE_REFUSES,  /* every second one is refused */
};

/* Counted while it runs; read by any thread. */
struct vet_tally {
    _Atomic uint64_t waits, stop_waits; /* calls of wait, and of those that reported a stop */
    _Atomic uint64_t adds;              /* calls of add */
    _Atomic uint64_t added, refused;    /* values */
    _Atomic uint64_t full;              /* records */
};

struct vet_specimen {
    struct vet_tested tested;
    struct wr_source *source; /* holds its host and options */
    struct wr_document *document;
    const weir_source_type *type;
    const struct vet_subject *subject;
    void *self; /* NULL: not created */

    pthread_t thread;
    _Atomic(pthread_t) runner; /* the same, set by itself; 0: none */
    int wake_fd;               /* an eventfd: a stop, or room */
    pthread_mutex_t gate;      /* for is_waiting */
    bool is_waiting;           /* it is in wait */
    _Atomic int intake;
    _Atomic bool stops, is_open, has_ended;
    _Atomic bool settles_nothing; /* marks stay pending */
    struct vet_tally tally;
    struct vet_sender sender; /* open while it runs */
    uint64_t expected;        /* a life waits for so many values; 0: until no more come */

    /* the source's thread */
    bool is_full;          /* something found no room since wait reported room */
    bool has_room;         /* tight: the next record is taken */
    uint64_t full_in_row;  /* records that were full without a wait between them */
    uint64_t same_in_row;  /* calls of add with the record that was refused, without a wait between them */
    uint64_t refused_hash; /* of that record; 0: none */
    uint64_t last_mark;
    uint64_t asked; /* calls of settled */
    int code;       /* of its last callback */
    char reason[256];
};

/* Prepares a source with the options of --options; the check fails if they are refused. */
void vet_specimen_make(struct vet_specimen *specimen, const struct vet_subject *subject);

/* Calls create. Returns false with the error set if it refuses. */
bool vet_specimen_try_create(struct vet_specimen *specimen, struct wr_error *error);

/* The same; the check fails if it refuses. */
void vet_specimen_create(struct vet_specimen *specimen, const struct vet_subject *subject);
void vet_specimen_finish_create(struct vet_specimen *specimen);

/* Calls destroy, if it is created, and frees the rest. */
void vet_specimen_destroy(struct vet_specimen *specimen);

/* Starts its thread, and waits until run waits or adds. The check is skipped if it does not open. */
void vet_specimen_start(struct vet_specimen *specimen);

/* The same without waiting. */
void vet_specimen_launch(struct vet_specimen *specimen);

/* Waits until a condition holds or it has ended, for at most limit_ms. Returns whether the condition holds. */
bool vet_specimen_await(struct vet_specimen *specimen, bool (*is_met)(const struct vet_specimen *specimen),
                        int64_t limit_ms);
bool vet_specimen_has_added(const struct vet_specimen *specimen);

/* Changes what becomes of records; makes room if that is more than before. */
void vet_specimen_set_intake(struct vet_specimen *specimen, enum vet_intake intake);

/* Requests a stop and waits for the thread; the check fails if it does not end in time. when: for the message,
 * such as "while there is no room". */
void vet_specimen_stop(struct vet_specimen *specimen, const char *when);

/* Returns while the source is in weir_intake.wait, and keeps it there until vet_specimen_go_on: so a child that
 * is forked meanwhile inherits what the source holds while it waits. Returns false if it does not wait. */
bool vet_specimen_pause(struct vet_specimen *specimen);
void vet_specimen_go_on(struct vet_specimen *specimen);

/* Runs a script on a thread as the source's own, and joins it. */
void vet_specimen_on_thread(void (*script)(struct vet_specimen *specimen), struct vet_specimen *specimen);

/* [source] One call each. */
bool vet_specimen_open(struct vet_specimen *specimen);
void vet_specimen_probe(struct vet_specimen *specimen, int64_t timeout_ms);
void vet_specimen_close(struct vet_specimen *specimen);

/* A life from start to stop, during which values are sent to it. Returns how many values it has added. */
uint64_t vet_specimen_live(struct vet_specimen *specimen);

/* Creates a source, runs it for such a life, and destroys it. The same result. */
uint64_t vet_specimen_whole(const struct vet_subject *subject);

/* For vet_specimen_make: gives it vet's functions. */
void vet_specimen_attach(struct vet_specimen *specimen);

/* ---- What is sent to it: --write ------------------------------------------------------------- */

/* Before the source is started. */
void vet_sender_open(struct vet_sender *sender);

/* Starts the command, if there is one. */
void vet_sender_start(struct vet_sender *sender, const struct vet_subject *subject);

/* Whether the command has ended, or there is none. */
bool vet_sender_has_ended(struct vet_sender *sender);

/* Kills the command if it runs; standard input is as before. */
void vet_sender_close(struct vet_sender *sender);

#endif
