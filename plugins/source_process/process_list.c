/* Two ways lead to the descendants.
 *
 * proc/PID/task/TID/children has the children of one thread, so that only the tree is read. It needs a kernel
 * with CONFIG_PROC_CHILDREN, and a file for each thread of the tree. Such a file may leave out a child while
 * others end: it is found by the next reading, and what it has used by then is counted in it or in its parent.
 *
 * The other way reads all processes of the machine. It is taken by the first reading, where the kernel lacks
 * these files, and for a tree that has more threads than the machine has processes. */

#include "process_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/array.h"

enum { PATH_ROOM = 4096 };

void process_list_fini(struct process_list *list)
{
    proc_file_fini(&list->file);
    free(list->entries);
    free(list->members);
    *list = (struct process_list){.proc = list->proc};
}

/* ---- One process ----------------------------------------------------------------------------- */

bool process_list_read_file(struct process_list *list, int64_t pid, const char *name)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%lld/%s", (long long)pid, name);
    if (proc_file_read_in(&list->file, list->proc, path))
        return true;
    if (errno == ENOENT)
        errno = ESRCH;
    return false;
}

/* The name, in brackets, may contain anything. */
bool process_list_stat(struct process_list *list, int64_t pid, struct process_entry *entry)
{
    if (!process_list_read_file(list, pid, "stat"))
        return false;
    const char *name_end = strrchr(list->file.text, ')');
    *entry = (struct process_entry){.pid = pid, .is_read = true};
    if (name_end && strlen(name_end) > 4 &&
        proc_file_numbers(name_end + 3, entry->fields, PROCESS_FIELDS) == PROCESS_FIELDS) {
        entry->is_zombie = name_end[2] == 'Z';
        return true;
    }
    errno = EPROTO;
    return false;
}

/* ---- Members --------------------------------------------------------------------------------- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_members(const void *a, const void *b)
{
    const struct process_member *one = a, *other = b;
    return compare_numbers(one->pid, other->pid);
}

static struct process_member *find_member(const struct process_list *list, int64_t pid)
{
    const struct process_member wanted = {.pid = pid};
    return list->member_count
               ? bsearch(&wanted, list->members, list->member_count, sizeof wanted, compare_members)
               : NULL;
}

static bool is_member(const struct process_list *list, const struct process_entry *entry)
{
    const struct process_member *member = find_member(list, entry->pid);
    return member && member->started == entry->fields[PROCESS_FIELD_STARTED];
}

static bool remember_members(struct process_list *list)
{
    struct process_member *members =
        wr_array_reserve(list->members, &list->member_room, list->count, sizeof *members);
    if (!members)
        return false;
    list->members = members;
    for (size_t i = 0; i < list->count; i++)
        list->members[i] = (struct process_member){.pid = list->entries[i].pid,
                                                   .started = list->entries[i].fields[PROCESS_FIELD_STARTED]};
    list->member_count = list->count;
    if (list->member_count)
        qsort(list->members, list->member_count, sizeof *list->members, compare_members);
    return true;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static bool add_entry(struct process_list *list, const struct process_entry *entry)
{
    struct process_entry *entries =
        wr_array_reserve(list->entries, &list->room, list->count + 1, sizeof *entries);
    if (!entries)
        return false;
    list->entries = entries;
    list->entries[list->count++] = *entry;
    return true;
}

/* Processes that end meanwhile are left out, and those of others that a mount of proc hides. Any other failure
 * would make a process look as if it had ended. Returns false after one; *is_there: the entry was read. */
static bool read_entry(struct process_list *list, int64_t pid, struct process_entry *entry, bool *is_there)
{
    *is_there = process_list_stat(list, pid, entry);
    bool is_hidden = (errno == EACCES || errno == EPERM) && !find_member(list, pid);
    return *is_there || errno == ESRCH || is_hidden;
}

/* Calls `use` for each number that a folder has as a name. Returns false with errno set. */
static bool each_number(struct process_list *list, const char *path,
                        bool (*use)(struct process_list *list, int64_t number, int64_t pid), int64_t pid)
{
    struct dirent *item;
    DIR *folder = opendir(path);
    bool is_good = folder;
    open_fds_note(&list->file.open, folder ? dirfd(folder) : -1);
    errno = folder ? 0 : errno;
    while (is_good && (item = readdir(folder))) {
        char *end;
        long long number = strtoll(item->d_name, &end, 10);
        if (number > 0 && !*end)
            is_good = use(list, number, pid);
        errno = is_good ? 0 : errno;
    }
    int problem = errno;
    if (folder) {
        open_fds_forget(&list->file.open, dirfd(folder));
        closedir(folder);
    }
    errno = problem;
    return is_good && !problem;
}

static int compare_entries(const void *a, const void *b)
{
    const struct process_entry *one = a, *other = b;
    return compare_numbers(one->pid, other->pid);
}

static int compare_depths(const void *a, const void *b)
{
    const struct process_entry *one = a, *other = b;
    return (one->depth > other->depth) - (one->depth < other->depth);
}

static void sort_entries(struct process_list *list)
{
    if (list->count)
        qsort(list->entries, list->count, sizeof *list->entries, compare_entries);
}

/* The parent, if it is part of the tree; NULL: it is not. The entries are sorted by their numbers. */
static struct process_entry *find_parent(const struct process_list *list, const struct process_entry *entry)
{
    const struct process_entry wanted = {.pid = (int64_t)entry->fields[PROCESS_FIELD_PARENT]};
    struct process_entry *parent = bsearch(&wanted, list->entries, list->count, sizeof wanted, compare_entries);
    return parent && parent->is_included ? parent : NULL;
}

/* Leaves those that are included, each once, parents before their children. The entries are sorted by their
 * numbers. A process may be there twice since its parent ended meanwhile. */
static void order_included(struct process_list *list)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].is_included && !(kept && list->entries[kept - 1].pid == list->entries[i].pid))
            list->entries[kept++] = list->entries[i];
    list->count = kept;
    for (size_t i = 0; i < kept; i++) {
        const struct process_entry *above = &list->entries[i];
        while (list->entries[i].depth < kept && (above = find_parent(list, above)))
            list->entries[i].depth++;
    }
    if (kept)
        qsort(list->entries, kept, sizeof *list->entries, compare_depths);
}

/* ---- All processes of the machine ------------------------------------------------------------ */

static bool add_process(struct process_list *list, int64_t number, int64_t unused)
{
    struct process_entry entry;
    bool is_there;
    (void)unused;
    return read_entry(list, number, &entry, &is_there) && (!is_there || add_entry(list, &entry));
}

/* The process itself, members, and all descendants. Children usually have higher numbers than their parents, so
 * that few passes are needed. */
static void include_descendants(struct process_list *list, int64_t pid, double started)
{
    for (size_t i = 0; i < list->count; i++) {
        struct process_entry *entry = &list->entries[i];
        entry->is_included =
            is_member(list, entry) || (entry->pid == pid && entry->fields[PROCESS_FIELD_STARTED] == started);
    }
    for (bool has_more = true; has_more;) {
        has_more = false;
        for (size_t i = 0; i < list->count; i++) {
            struct process_entry *entry = &list->entries[i];
            if (!entry->is_included && find_parent(list, entry))
                entry->is_included = has_more = true;
        }
    }
}

static bool search_machine(struct process_list *list, int64_t pid, double started)
{
    if (!each_number(list, list->proc, add_process, 0))
        return false;
    list->machine_count = list->count;
    sort_entries(list);
    include_descendants(list, pid, started);
    return true;
}

/* ---- The children of each -------------------------------------------------------------------- */

/* Adds their numbers alone: reading a process here would overwrite the text with the next ones. */
static bool add_children_of_thread(struct process_list *list, int64_t thread, int64_t pid)
{
    char name[64];
    snprintf(name, sizeof name, "task/%lld/children", (long long)thread);
    if (!process_list_read_file(list, pid, name))
        return errno == ESRCH; /* it has ended */
    char *rest = list->file.text;
    for (char *word; (word = proc_file_word(&rest));) {
        int64_t child = strtoll(word, NULL, 10);
        const struct process_member *member = find_member(list, child);
        bool is_listed = member && member->is_listed;
        if (!is_listed && !add_entry(list, &(struct process_entry){.pid = child}))
            return false;
    }
    return true;
}

static bool add_children(struct process_list *list, int64_t pid, double threads)
{
    char path[PATH_ROOM];
    if (threads <= 1)
        return add_children_of_thread(list, pid, pid);
    if ((size_t)snprintf(path, sizeof path, "%s/%lld/task", list->proc, (long long)pid) >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    return each_number(list, path, add_children_of_thread, pid) || errno == ENOENT || errno == ESRCH;
}

static bool add_if_same(struct process_list *list, int64_t pid, double started, bool *is_added)
{
    struct process_entry entry;
    bool is_there;
    if (!read_entry(list, pid, &entry, &is_there))
        return false;
    *is_added = entry.is_included = is_there && entry.fields[PROCESS_FIELD_STARTED] == started;
    return !*is_added || add_entry(list, &entry);
}

static bool add_members(struct process_list *list)
{
    for (size_t i = 0; i < list->member_count; i++) {
        struct process_member *member = &list->members[i];
        if (!add_if_same(list, member->pid, member->started, &member->is_listed))
            return false;
    }
    return true;
}

/* Each entry is followed by those of its children, in the end. */
static bool follow_children(struct process_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct process_entry entry = list->entries[i];
        bool is_there = true;
        if (!entry.is_read && !read_entry(list, entry.pid, &entry, &is_there))
            return false;
        if (is_there && !add_children(list, entry.pid, entry.fields[PROCESS_FIELD_THREADS]))
            return false;
        entry.is_included = is_there;
        list->entries[i] = entry;
    }
    sort_entries(list);
    return true;
}

static bool has_children_files(struct process_list *list, int64_t pid)
{
    char path[PATH_ROOM];
    return (size_t)snprintf(path, sizeof path, "%s/%lld/task/%lld/children", list->proc, (long long)pid,
                            (long long)pid) < sizeof path &&
           access(path, R_OK) == 0;
}

/* Before the children of anything are searched, the members are in the list. */
static bool search_tree(struct process_list *list, int64_t pid, double started, bool *is_found)
{
    bool is_listed = false;
    const struct process_member *root = find_member(list, pid);
    if (!add_members(list) || !((root && root->is_listed) || add_if_same(list, pid, started, &is_listed)))
        return false;
    double threads = 0;
    for (size_t i = 0; i < list->count; i++)
        threads += list->entries[i].fields[PROCESS_FIELD_THREADS];
    *is_found = threads <= (double)list->machine_count;
    return !*is_found || follow_children(list);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool find_tree(struct process_list *list, int64_t pid, double started)
{
    bool is_found = false;
    if (list->machine_count && has_children_files(list, pid) && !search_tree(list, pid, started, &is_found))
        return false;
    if (is_found)
        return true;
    list->count = 0;
    return search_machine(list, pid, started);
}

/* Reads the processes again, in this order: see process_tree.c. One that has ended meanwhile is left out. */
static bool read_again(struct process_list *list)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct process_entry entry;
        if (process_list_stat(list, list->entries[i].pid, &entry)) {
            if (entry.fields[PROCESS_FIELD_STARTED] == list->entries[i].fields[PROCESS_FIELD_STARTED])
                list->entries[kept++] = entry;
        } else if (errno != ESRCH)
            return false;
    }
    list->count = kept;
    return true;
}

bool process_list_read(struct process_list *list, int64_t pid, double started, bool with_descendants)
{
    bool is_there;
    list->count = 0;
    if (!with_descendants)
        return add_if_same(list, pid, started, &is_there);
    if (!find_tree(list, pid, started))
        return false;
    order_included(list);
    return (list->count == 1 || read_again(list)) && remember_members(list);
}
