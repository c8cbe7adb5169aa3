/* How the totals are kept.
 *
 * The kernel has two numbers of a process: what it has used itself, and what its children have that it has
 * waited for, with theirs. When a process ends, its own number vanishes, and appears in its parent's second
 * one: not at the same moment for a reader, who reads one file after the other. So sums over the living are no
 * totals: they fall for a while, or count somebody twice.
 *
 * Instead each process of the tree is remembered with what was counted of it, and its growth is added to the
 * totals. Parents are read before their children, so what a child was seen to have is not in its parent's
 * second number yet. When a process has vanished, what was counted of it becomes its parent's credit: by so
 * much the second number may grow without being counted again. If its parent has vanished too, the nearest
 * living ancestor gets the credit, and if it has none, the tree. A process that was seen in the tree stays part
 * of it, also under another parent; then nobody of the tree waits for it, and there is no credit.
 *
 * Bytes of disks are one number, which contains those of children that were waited for. It is treated as the
 * second one. */

#include "process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/array.h"

enum { PATH_ROOM = 4096 };

/* Its number may be used again, so it is identified by its start too. */
struct process_known {
    int64_t pid, parent;
    double started;
    bool is_present;               /* in the present reading */
    double own[PROCESS_TOTALS];    /* its own numbers, as they were counted */
    double waited[PROCESS_TOTALS]; /* those of children that it has waited for */
    double credit[PROCESS_TOTALS];
};

void process_tree_fini(struct process_tree *tree)
{
    process_list_fini(&tree->list);
    free(tree->known);
    tree->known = NULL;
    tree->known_count = tree->known_sorted = tree->known_room = 0;
    tree->was_read = false;
    memset(tree->totals, 0, sizeof tree->totals);
    memset(tree->credit, 0, sizeof tree->credit);
}

bool process_tree_started(struct process_tree *tree, int64_t pid, double *ticks)
{
    struct process_entry entry;
    if (!process_list_stat(&tree->list, pid, &entry))
        return false;
    *ticks = entry.fields[PROCESS_FIELD_STARTED];
    return true;
}

/* ---- What is known of each ------------------------------------------------------------------- */

static int compare_known(const void *a, const void *b)
{
    const struct process_known *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

static struct process_known *find_known(const struct process_tree *tree, int64_t pid)
{
    const struct process_known wanted = {.pid = pid};
    return tree->known_sorted ? bsearch(&wanted, tree->known, tree->known_sorted, sizeof wanted, compare_known)
                              : NULL;
}

static void sort_known(struct process_tree *tree)
{
    tree->known_sorted = tree->known_count;
    if (tree->known_count)
        qsort(tree->known, tree->known_count, sizeof *tree->known, compare_known);
}

static bool is_same(const struct process_known *known, const struct process_entry *entry)
{
    return known && known->started == entry->fields[PROCESS_FIELD_STARTED];
}

/* ---- Totals ---------------------------------------------------------------------------------- */

/* Reads what the kernel has of a process: its own numbers, and those of children it has waited for. io: an
 * errno, or 0. Returns false with errno set. */
static bool read_totals(struct process_tree *tree, const struct process_entry *entry,
                        const struct process_known *known, double *own, double *waited, int *io)
{
    const double *fields = entry->fields;
    const double children = tree->with_children;
    memset(own, 0, PROCESS_TOTALS * sizeof *own);
    memset(waited, 0, PROCESS_TOTALS * sizeof *waited);
    own[PROCESS_USER] = fields[PROCESS_FIELD_USER];
    own[PROCESS_SYSTEM] = fields[PROCESS_FIELD_SYSTEM];
    own[PROCESS_MINOR_FAULTS] = fields[PROCESS_FIELD_MINOR_FAULTS];
    own[PROCESS_MAJOR_FAULTS] = fields[PROCESS_FIELD_MAJOR_FAULTS];
    waited[PROCESS_USER] = children * fields[PROCESS_FIELD_CHILD_USER];
    waited[PROCESS_SYSTEM] = children * fields[PROCESS_FIELD_CHILD_SYSTEM];
    waited[PROCESS_MINOR_FAULTS] = children * fields[PROCESS_FIELD_CHILD_MINOR_FAULTS];
    waited[PROCESS_MAJOR_FAULTS] = children * fields[PROCESS_FIELD_CHILD_MAJOR_FAULTS];
    if (known) {
        waited[PROCESS_READ] = known->waited[PROCESS_READ];
        waited[PROCESS_WRITTEN] = known->waited[PROCESS_WRITTEN];
    }
    if (process_list_read_file(&tree->list, entry->pid, "io")) {
        proc_file_find(tree->list.file.text, "read_bytes:", &waited[PROCESS_READ]);
        proc_file_find(tree->list.file.text, "write_bytes:", &waited[PROCESS_WRITTEN]);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        return false;
    else if (errno != ESRCH && !entry->is_zombie)
        *io = errno;
    return true;
}

/* Adds to the totals what a process has used since it was read before. */
static void count_growth(struct process_tree *tree, struct process_known *known, const double *own,
                         const double *waited)
{
    for (int i = 0; i < PROCESS_TOTALS; i++) {
        double grown_own = own[i] > known->own[i] ? own[i] - known->own[i] : 0;
        double grown = waited[i] > known->waited[i] ? waited[i] - known->waited[i] : 0;
        double from_own = grown < known->credit[i] ? grown : known->credit[i];
        known->credit[i] -= from_own;
        grown -= from_own;
        double from_tree = grown < tree->credit[i] ? grown : tree->credit[i];
        tree->credit[i] -= from_tree;
        tree->totals[i] += grown_own + grown - from_tree;
        known->own[i] = own[i] > known->own[i] ? own[i] : known->own[i];
        known->waited[i] = waited[i] > known->waited[i] ? waited[i] : known->waited[i];
    }
}

/* The nearest ancestor that is still there; NULL: none. *was_in: the parent was part of the tree. */
static struct process_known *find_heir(const struct process_tree *tree, const struct process_known *gone,
                                       bool *was_in)
{
    struct process_known *heir = find_known(tree, gone->parent);
    *was_in = heir;
    for (size_t steps = 0; heir && !heir->is_present; steps++)
        heir = steps < tree->known_count ? find_known(tree, heir->parent) : NULL;
    return heir;
}

static void bequeath(struct process_tree *tree, const struct process_known *gone)
{
    bool was_in;
    struct process_known *heir = find_heir(tree, gone, &was_in);
    double *credit = heir ? heir->credit : tree->credit;
    for (int i = 0; was_in && i < PROCESS_TOTALS; i++)
        credit[i] += gone->own[i] + gone->waited[i] + gone->credit[i];
}

/* Forgets those that have ended, after their credit has gone to others. */
static void forget_ended(struct process_tree *tree)
{
    size_t kept = 0;
    for (size_t i = 0; i < tree->known_count; i++)
        tree->known[i].is_present = false;
    for (size_t i = 0; i < tree->list.count; i++) {
        struct process_known *known = find_known(tree, tree->list.entries[i].pid);
        if (is_same(known, &tree->list.entries[i]))
            known->is_present = true;
    }
    for (size_t i = 0; i < tree->known_count; i++)
        if (!tree->known[i].is_present)
            bequeath(tree, &tree->known[i]);
    for (size_t i = 0; i < tree->known_count; i++)
        if (tree->known[i].is_present)
            tree->known[kept++] = tree->known[i];
    tree->known_count = tree->known_sorted = kept;
}

/* ---- Figures --------------------------------------------------------------------------------- */

/* Returns false with errno set: a lack of resources. */
static bool add_descriptors(struct process_tree *tree, const struct process_entry *entry,
                            struct process_figures *figures)
{
    char path[PATH_ROOM];
    struct dirent *item;
    snprintf(path, sizeof path, "%s/%lld/fd", tree->list.proc, (long long)entry->pid);
    DIR *folder = entry->is_zombie ? NULL : opendir(path);
    if (!folder) {
        if (!entry->is_zombie && errno != ENOENT && errno != ESRCH)
            figures->descriptors_problem = errno;
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    }
    open_fds_note(&tree->list.file.open, dirfd(folder));
    bool is_own = entry->pid == getpid();
    while ((item = readdir(folder)))
        figures->descriptors += item->d_name[0] != '.';
    figures->descriptors -= is_own; /* the folder's */
    open_fds_forget(&tree->list.file.open, dirfd(folder));
    closedir(folder);
    return true;
}

static bool add_levels(struct process_tree *tree, const struct process_entry *entry,
                       struct process_figures *figures)
{
    const double *fields = entry->fields;
    figures->resident_bytes += fields[PROCESS_FIELD_RESIDENT] * (double)sysconf(_SC_PAGESIZE);
    figures->virtual_bytes += fields[PROCESS_FIELD_VIRTUAL];
    figures->threads += fields[PROCESS_FIELD_THREADS];
    figures->processes++;
    return add_descriptors(tree, entry, figures);
}

static void set_totals(const struct process_tree *tree, struct process_figures *figures)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    figures->user_s = tree->totals[PROCESS_USER] * tick;
    figures->system_s = tree->totals[PROCESS_SYSTEM] * tick;
    figures->minor_faults = tree->totals[PROCESS_MINOR_FAULTS];
    figures->major_faults = tree->totals[PROCESS_MAJOR_FAULTS];
    figures->read_bytes = tree->totals[PROCESS_READ];
    figures->written_bytes = tree->totals[PROCESS_WRITTEN];
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* What a reading has found of one process. */
struct reading {
    double own[PROCESS_TOTALS], waited[PROCESS_TOTALS];
};

/* Reads everything before anything is counted, so that a failure changes nothing. */
static bool read_all(struct process_tree *tree, struct reading *readings, struct process_figures *figures)
{
    for (size_t i = 0; i < tree->list.count; i++) {
        const struct process_entry *entry = &tree->list.entries[i];
        const struct process_known *known = find_known(tree, entry->pid);
        known = is_same(known, entry) ? known : NULL;
        if (!read_totals(tree, entry, known, readings[i].own, readings[i].waited, &figures->io_problem) ||
            !add_levels(tree, entry, figures))
            return false;
    }
    return true;
}

static bool reserve_known(struct process_tree *tree)
{
    struct process_known *known = wr_array_reserve(
        tree->known, &tree->known_room, (uint32_t)tree->known_count + tree->list.count, sizeof *known);
    if (known)
        tree->known = known;
    return known;
}

static void count_all(struct process_tree *tree, const struct reading *readings)
{
    bool is_baseline = !tree->was_read && !tree->counts_earlier;
    forget_ended(tree);
    for (size_t i = 0; i < tree->list.count; i++) {
        const struct process_entry *entry = &tree->list.entries[i];
        struct process_known *known = find_known(tree, entry->pid);
        if (!known) {
            known = &tree->known[tree->known_count++];
            *known = (struct process_known){.pid = entry->pid, .started = entry->fields[PROCESS_FIELD_STARTED]};
            if (is_baseline) {
                memcpy(known->own, readings[i].own, sizeof known->own);
                memcpy(known->waited, readings[i].waited, sizeof known->waited);
            }
        }
        known->parent = (int64_t)entry->fields[PROCESS_FIELD_PARENT];
        known->is_present = true;
        count_growth(tree, known, readings[i].own, readings[i].waited);
    }
    sort_known(tree);
    tree->was_read = true;
}

bool process_tree_read(struct process_tree *tree, int64_t pid, double started, struct process_figures *figures)
{
    *figures = (struct process_figures){0};
    if (!process_list_read(&tree->list, pid, started, tree->with_children) || !reserve_known(tree))
        return false;
    struct reading *readings = calloc(tree->list.count + 1, sizeof *readings);
    bool is_read = readings && read_all(tree, readings, figures);
    int problem = errno;
    if (is_read)
        count_all(tree, readings);
    free(readings);
    set_totals(tree, figures);
    bool has_root = find_known(tree, pid);
    errno = is_read ? ESRCH : problem;
    return is_read && has_root;
}
