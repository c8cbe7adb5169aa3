/* owner_folder: the folders that processes have in a spool or journal, see os/owner_dir.h. */
#ifndef WEIR_TOOLS_OWNER_FOLDER_H
#define WEIR_TOOLS_OWNER_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/buffer.h"

/* The folder of one process. */
struct owner_folder {
    const char *name; /* in the place where all are */
    uint32_t pid;
    int64_t created_ns; /* 0: not known */
    bool in_use;        /* the process is running: it holds the lock */
};

/* What is known of the folders of a spool or of a journal. */
struct owner_folder_kind {
    size_t size;         /* of a box: a struct that begins with a struct owner_folder */
    const char *handler; /* as with wr_owner_dir_is_name */
    /* reads the folder of a box, of which only the name and in_use are set */
    void (*read)(void *box, const char *place);
    void (*fini)(void *box);
};

/* Returns the boxes of all folders in a place, oldest first; NULL with errno if the place cannot be read. */
void *owner_folder_read(const char *place, const struct owner_folder_kind *kind, size_t *count);

void owner_folder_free(void *boxes, size_t count, const struct owner_folder_kind *kind);

struct owner_folder_listing {
    struct wr_buffer out;
    bool damaged;
};

/* Prints what `put` appends for each box. Returns EXIT_SUCCESS, or EXIT_FAILURE if the place cannot be read or
 * something is damaged. */
int owner_folder_print(const char *place, const struct owner_folder_kind *kind,
                       void (*put)(struct owner_folder_listing *listing, const void *box));

/* Appends "since 2026-11-21T10:20:30Z"; 0: "since ?" */
void owner_folder_put_time(struct wr_buffer *out, int64_t created_ns);

#endif
