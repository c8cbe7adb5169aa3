/* process_list: which processes are those of a tree, and what /proc/PID/stat says of each. */
#ifndef WEIR_PLUGINS_PROCESS_LIST_H
#define WEIR_PLUGINS_PROCESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sampling/proc_file.h"

/* The numbers of /proc/PID/stat behind the state, from field 4: proc_pid_stat(5). */
enum process_field {
    PROCESS_FIELD_PARENT = 0,
    PROCESS_FIELD_MINOR_FAULTS = 6,
    PROCESS_FIELD_CHILD_MINOR_FAULTS,
    PROCESS_FIELD_MAJOR_FAULTS,
    PROCESS_FIELD_CHILD_MAJOR_FAULTS,
    PROCESS_FIELD_USER,
    PROCESS_FIELD_SYSTEM,
    PROCESS_FIELD_CHILD_USER,
    PROCESS_FIELD_CHILD_SYSTEM,
    PROCESS_FIELD_THREADS = 16,
    PROCESS_FIELD_STARTED = 18,
    PROCESS_FIELD_VIRTUAL,
    PROCESS_FIELD_RESIDENT,
    PROCESS_FIELDS
};

struct process_entry {
    int64_t pid;
    size_t depth;     /* how many ancestors it has in the tree */
    bool is_included; /* it is part of the tree */
    bool is_read;     /* the fields are */
    bool is_zombie;
    double fields[PROCESS_FIELDS];
};

/* A process of the previous reading. Its number may be used again, so it is identified by its start too. */
struct process_member {
    int64_t pid;
    double started;
    bool is_listed; /* in the present reading */
};

/* All zeros, but the first. */
struct process_list {
    const char *proc;              /* where proc is mounted */
    struct proc_file file;         /* the one that was read last */
    struct process_entry *entries; /* the processes of the tree, parents before their children */
    uint32_t count, room;
    struct process_member *members; /* those of the previous reading, sorted by their numbers */
    size_t member_count;
    uint32_t member_room;
    size_t machine_count; /* the processes of the machine when all were read; 0: not yet */
};

void process_list_fini(struct process_list *list);

/* Reads proc/PID/NAME into list->file. Returns false with errno set; ESRCH: there is no such process. */
bool process_list_read_file(struct process_list *list, int64_t pid, const char *name);

/* Reads what there is of one process. Returns false as the one above. */
bool process_list_stat(struct process_list *list, int64_t pid, struct process_entry *entry);

/* Reads the process that was started then, if it is still there, and with_descendants those that were in the
 * list before, also under another parent, and all descendants of these. Returns false with errno set. */
bool process_list_read(struct process_list *list, int64_t pid, double started, bool with_descendants);

#endif
