/* fronts_file: the fronts in a journal's folder, so that the next process recognises repeats too.
 *
 * The files `fronts.N` have 1,024 slots each. A slot belongs to an origin and has two states, each with a
 * number; the one with the higher number is in force. A state is written over the other one, and its number is
 * stored last.
 *
 * A front must name exactly the samples that the journal has, wherever the process was killed. So before
 * samples are published in a ring of the journal, a state says: these numbers are taken if that ring has been
 * published up to this position. After that, another one says that they are taken. Both, and the ring's tail
 * between them, are stored by one thread, so the files have them in this order. */
#ifndef WR_FRONTS_FILE_H
#define WR_FRONTS_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/front.h"
#include "os/mapped_file.h"

#define WR_FRONTS_KIND "fronts"

/* Numbers that are taken if a ring has been published up to a position. */
struct wr_front_pending {
    struct wr_front_range range; /* from == to: none */
    uint64_t position;
    uint32_t ring; /* the number of its file */
    uint32_t reserved;
};

struct wr_fronts_state {
    _Atomic uint64_t number; /* 0: none, or being written */
    struct wr_front_origin origin;
    int64_t used_ns; /* wall clock */
    struct wr_front front;
    struct wr_front_pending pending;
};

enum { WR_FRONTS_FILE_SLOTS = 1024, WR_FRONTS_FILES_MOST = 128 };

/* All zeros: no folder, and nothing is kept. */
struct wr_fronts_file {
    char *folder;
    struct wr_journal_map maps[WR_FRONTS_FILES_MOST];
    int64_t retry_ns; /* monotonic; when to try again to make a file */
    bool failing;
};

/* Keeps fronts in a folder, which has no such files yet. Returns false if out of memory. */
bool wr_fronts_file_start(struct wr_fronts_file *file, const char *folder);

/* Closes the files. */
void wr_fronts_file_stop(struct wr_fronts_file *file);

/* Makes the file of a slot if it is missing. Returns false if that cannot be done now. */
bool wr_fronts_file_reserve(struct wr_fronts_file *file, uint32_t slot, int64_t now_ns);

bool wr_fronts_file_has(const struct wr_fronts_file *file, uint32_t slot);

/* The state in force of a slot; NULL: none, or its file is not there. */
const struct wr_fronts_state *wr_fronts_file_get(const struct wr_fronts_file *file, uint32_t slot);

/* Sets the state of a slot whose file is there; state->number is not used. */
void wr_fronts_file_put(struct wr_fronts_file *file, uint32_t slot, const struct wr_fronts_state *state);

/* Empties a slot, if its file is there. */
void wr_fronts_file_clear(struct wr_fronts_file *file, uint32_t slot);

/* Reads the states in force in a dead process's folder; what was pending and was published is added to them.
 * Damaged ones are left out. *states: the caller frees them; NULL: none. Returns false if the folder cannot be
 * read, or out of memory. */
bool wr_fronts_file_read(const char *folder, struct wr_fronts_state **states, size_t *count);

#endif
