#include "owner_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "os/dir_list.h"
#include "os/owner_dir.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static bool is_in_use(const char *parent, const char *name)
{
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s/lock", parent, name);
    const char *text = command_text(&path);
    int fd = open(text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    wr_buffer_fini(&path);
    return locked;
}

static void add(struct wr_buffer *boxes, const struct owner_folder_kind *kind, const char *place,
                const char *name)
{
    if (!wr_buffer_reserve(boxes, kind->size) || !boxes->data)
        command_out_of_memory();
    struct owner_folder *box = memset(boxes->data + boxes->length, 0, kind->size);
    boxes->length += kind->size;
    box->name = command_must(strdup(name));
    box->in_use = is_in_use(place, name);
    kind->read(box, place);
}

static int compare(const void *a, const void *b)
{
    const struct owner_folder *first = a, *second = b;
    if (first->created_ns != second->created_ns)
        return first->created_ns < second->created_ns ? -1 : 1;
    return strcmp(first->name, second->name);
}

void *owner_folder_read(const char *place, const struct owner_folder_kind *kind, size_t *count)
{
    struct wr_buffer boxes = {0};
    const struct dirent *entry;
    int problem;
    DIR *folder = opendir(place);
    if (!folder)
        return NULL;
    if (!wr_buffer_reserve(&boxes, kind->size)) /* not NULL without a box either */
        command_out_of_memory();
    while ((entry = wr_dir_list_next(folder, &problem)))
        if (wr_owner_dir_is_name(entry->d_name, kind->handler))
            add(&boxes, kind, place, entry->d_name);
    closedir(folder);
    *count = boxes.length / kind->size;
    if (problem) {
        owner_folder_free(boxes.data, *count, kind);
        errno = problem;
        return NULL;
    }
    qsort(boxes.data, *count, kind->size, compare);
    return boxes.data;
}

void owner_folder_free(void *boxes, size_t count, const struct owner_folder_kind *kind)
{
    for (size_t i = 0; i < count; i++) {
        struct owner_folder *box = (void *)((char *)boxes + i * kind->size);
        kind->fini(box);
        free((char *)box->name);
    }
    free(boxes);
}

/* ---- Printing -------------------------------------------------------------------------------- */

int owner_folder_print(const char *place, const struct owner_folder_kind *kind,
                       void (*put)(struct owner_folder_listing *listing, const void *box))
{
    struct owner_folder_listing listing = {0};
    size_t count;
    char *boxes = owner_folder_read(place, kind, &count);
    if (!boxes)
        return command_fail("%s: %s", place, strerror(errno));
    for (size_t i = 0; i < count; i++)
        put(&listing, boxes + i * kind->size);
    owner_folder_free(boxes, count, kind);
    return command_finish(&listing.out, listing.damaged ? EXIT_FAILURE : EXIT_SUCCESS);
}

void owner_folder_put_time(struct wr_buffer *out, int64_t created_ns)
{
    struct tm parts;
    time_t seconds = (time_t)(created_ns / 1000000000);
    char text[32] = "?";
    if (created_ns && gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    wr_buffer_put_format(out, "since %s", text);
}
