#include "journal_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <weir/weir.h>

#include "text/buffer.h"
#include "command.h"
#include "config/config.h"
#include "runtime/configure.h"
#include "text/error.h"
#include "journal/journal_reader.h"
#include "os/dir_list.h"
#include "config/parse.h"
#include "os/owner_dir.h"

/* ---- A box ----------------------------------------------------------------------------------- */

static struct journal_read_handler *find_handler(struct journal_read_box *box, struct wr_buffer *handlers,
                                                 const char *name)
{
    struct journal_read_handler *items = (struct journal_read_handler *)handlers->data;
    for (size_t i = 0; i < box->handler_count; i++)
        if (strcmp(items[i].name, name) == 0)
            return &items[i];
    if (!wr_buffer_reserve(handlers, sizeof *items))
        return NULL;
    struct journal_read_handler handler = {.name = strdup(name)};
    if (!handler.name)
        return NULL;
    wr_buffer_put(handlers, &handler, sizeof handler);
    return (struct journal_read_handler *)handlers->data + box->handler_count++;
}

/* *id: of the first of them. */
static uint64_t count_unsettled(const struct wr_journal_reader *reader, const struct wr_segment_file *file,
                                uint32_t slot, struct wr_sample_id *id)
{
    uint32_t first = 0, length, count = wr_journal_reader_count(reader, file);
    uint64_t values = 0;
    for (; (length = wr_journal_reader_unsettled(file, slot, &first, count)); first += length) {
        if (!values)
            *id = wr_sample_id_behind(&file->ids[slot], first);
        values += length;
    }
    return values;
}

/* false: no memory. */
static bool count_segment(struct journal_read_box *box, struct wr_buffer *handlers,
                          const struct wr_journal_reader *reader, const struct wr_segment_file *file)
{
    for (uint32_t slot = 0; slot < file->head->lanes; slot++) {
        struct wr_sample_id first;
        uint64_t values = count_unsettled(reader, file, slot, &first);
        struct journal_read_handler *handler =
            values ? find_handler(box, handlers, wr_segment_file_lane(file, slot)) : NULL;
        if (values && !handler)
            return false;
        if (handler && !handler->values)
            handler->first = first;
        if (handler)
            handler->values += values;
    }
    return true;
}

static bool count_all(struct journal_read_box *box, const struct wr_journal_reader *reader)
{
    struct wr_buffer handlers = {0};
    bool good = true;
    box->pid = reader->head->pid;
    box->created_ns = reader->head->created_ns;
    box->damaged = reader->damaged;
    for (size_t i = 0; i < reader->ring_count; i++)
        box->in_rings += wr_journal_reader_count_ring(&reader->rings[i]);
    for (size_t i = 0; good && i < reader->segment_count; i++)
        good = count_segment(box, &handlers, reader, reader->segments[i]);
    box->handlers = (struct journal_read_handler *)handlers.data;
    return good;
}

static bool is_locked(const char *folder)
{
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/lock", folder);
    const char *text = wr_buffer_text(&path);
    int fd = text ? open(text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    wr_buffer_fini(&path);
    return locked;
}

/* What cannot be opened is damaged, unless a process is just making or deleting it. false: no memory. */
static bool look_into(struct journal_read_box *box, const char *place)
{
    struct wr_journal_reader reader;
    struct wr_buffer path = {0};
    bool good = true;
    wr_buffer_put_format(&path, "%s/%s", place, box->name);
    const char *folder = wr_buffer_text(&path);
    if (folder) {
        box->in_use = is_locked(folder);
        switch (wr_journal_reader_open(&reader, folder, false)) {
        case WR_JOURNAL_READ:
            good = count_all(box, &reader);
            wr_journal_reader_close(&reader);
            break;
        case WR_JOURNAL_NOTHING: break;
        case WR_JOURNAL_OTHER_VERSION: box->other_version = reader.version; /* fallthrough */
        default: box->damaged = true;
        }
    }
    wr_buffer_fini(&path);
    return folder && good;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct journal_read_box *first = a, *second = b;
    if (first->created_ns != second->created_ns)
        return first->created_ns < second->created_ns ? -1 : 1;
    return strcmp(first->name, second->name);
}

static bool add_box(struct wr_buffer *boxes, const char *place, const char *name)
{
    struct journal_read_box box = {.name = strdup(name)};
    bool good = box.name && look_into(&box, place);
    wr_buffer_put(boxes, &box, sizeof box);
    if (!good)
        errno = ENOMEM;
    return good && !boxes->failed;
}

static void free_boxes(struct wr_buffer *list)
{
    struct journal_read_box *boxes = (struct journal_read_box *)list->data;
    for (size_t i = 0; i < list->length / sizeof *boxes; i++) {
        for (size_t j = 0; j < boxes[i].handler_count; j++)
            free((char *)boxes[i].handlers[j].name);
        free(boxes[i].handlers);
        free((char *)boxes[i].name);
    }
    wr_buffer_fini(list);
}

bool journal_read_walk(const char *place, bool (*visit)(const struct journal_read_box *box, void *ctx),
                       void *ctx)
{
    struct wr_buffer list = {0};
    const struct dirent *entry;
    int problem = 0;
    DIR *folder = opendir(place);
    bool good = folder;
    while (good && (entry = wr_dir_list_next(folder, &problem)))
        if (wr_owner_dir_is_name(entry->d_name, WR_JOURNAL_DIR))
            good = add_box(&list, place, entry->d_name);
    if (good && problem) {
        errno = problem;
        good = false;
    }
    problem = errno;
    if (folder)
        closedir(folder);
    struct journal_read_box *boxes = (struct journal_read_box *)list.data;
    size_t count = list.length / sizeof *boxes;
    if (count)
        qsort(boxes, count, sizeof *boxes, compare);
    for (size_t i = 0; good && i < count && visit(&boxes[i], ctx); i++)
        continue;
    free_boxes(&list);
    errno = problem;
    return good;
}

/* ---- Delivering ------------------------------------------------------------------------------ */

static struct wr_config *read_config(const char *file, struct wr_error *error)
{
    const char *text = file ? file : secure_getenv("WEIR_CONFIG");
    if (!text || !*text) {
        wr_error_set(error, WEIR_ERR_CONFIG, "there is no configuration: neither -c nor WEIR_CONFIG is given");
        return NULL;
    }
    if (!file && *text == '{')
        return wr_parse_text("WEIR_CONFIG", text, strlen(text), NULL, error);
    return wr_parse_file(text, NULL, error);
}

/* The configuration with this folder as its journal, whichever it names, is put in force, and taken down again
 * once everything is delivered. */
bool journal_read_replay(const char *place, const char *file, int64_t timeout_ms)
{
    struct wr_error error = {0};
    char *folder = realpath(place, NULL);
    struct wr_config *config = folder ? read_config(file, &error) : NULL;
    struct wr_runtime *runtime = config ? wr_runtime_get() : NULL;
    if (runtime)
        config->settings.journal = wr_config_keep_text(config, folder);
    unsetenv("WEIR_CONFIG"); /* it would count more */
    unsetenv("BENCHMARK_AI");
    bool good = runtime && config->settings.journal && wr_configure_whole(runtime, config, &error) == 0;
    free(folder);
    if (!good) {
        command_fail("%s", error.code ? error.text : strerror(errno));
        return false;
    }
    int result = weir_shutdown(timeout_ms);
    if (result)
        command_fail("%s", weir_last_error());
    return result == 0;
}
