#include "summary_input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/command.h"
#include "parse/parser.h"
#include "report_document.h"
#include "statistics.h"
#include "summary_database.h"
#include "text/buffer.h"
#include "text/error.h"

struct reading {
    const char *path;
    struct statistics *statistics;
    struct report_documents *documents;
    struct summary_faults *faults;
};

static bool take(void *context, const struct wr_parse_record *record)
{
    const struct reading *reading = context;
    statistics_add(reading->statistics, record, NULL);
    return true;
}

static void refuse(void *context, const struct wr_parse_fault *fault)
{
    const struct reading *reading = context;
    struct summary_faults *faults = reading->faults;
    if (fault->is_value)
        faults->values++;
    else
        faults->lines++;
    if (!faults->has_message)
        command_fail("%s:%" PRIu64 ":%u: %s; further ones are only counted", reading->path, fault->line,
                     fault->column, fault->text);
    faults->has_message = true;
}

static bool has_ending(const char *path, const char *ending)
{
    return command_has_ending(path, strlen(path), ending);
}

static const struct wr_parser_type *choose_type(const char *path)
{
    bool is_json = has_ending(path, ".json") || has_ending(path, ".jsonl") || has_ending(path, ".ndjson");
    return wr_parser_type_find(is_json ? "json" : has_ending(path, ".csv") ? "csv" : "auto");
}

/* Files that are not lines of text. Returns what to do instead; NULL: they may be. */
static const char *find_remedy(const char *bytes, ssize_t length)
{
    static const struct {
        const char *beginning, *remedy;
        ssize_t length;
    } known[] = {
        {"\x1f\x8b", "is compressed; use: zcat FILE | weir summary -", 2},
        {"\x28\xb5\x2f\xfd", "is compressed; use: zstdcat FILE | weir summary -", 4},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (length >= known[i].length && memcmp(bytes, known[i].beginning, (size_t)known[i].length) == 0)
            return known[i].remedy;
    return NULL;
}

/* Reads until there are so many bytes, or the input ends. Returns 0 or an errno. */
static int read_until(int fd, struct wr_buffer *bytes, size_t most)
{
    enum { STEP = 64 * 1024 };
    while (bytes->length < most) {
        if (!wr_buffer_reserve(bytes, STEP))
            command_out_of_memory();
        ssize_t got = read(fd, bytes->data + bytes->length, STEP);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return errno;
        bytes->length += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static bool fail(const char *path, int problem)
{
    command_fail("%s: %s", path, wr_error_system_text(problem));
    return false;
}

/* Returns false after printing why not. */
static bool read_rest(const struct reading *reading, int fd, struct wr_parser *parser)
{
    for (;;) {
        size_t room;
        char *to = wr_parser_room(parser, &room);
        if (!to)
            command_out_of_memory();
        ssize_t got = read(fd, to, room);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(reading->path, errno);
        if (got == 0)
            return wr_parser_end(parser);
        wr_parser_add(parser, (size_t)got);
    }
}

static bool read_lines(const struct reading *reading, const struct wr_parser_type *type, int fd,
                       const struct wr_buffer *beginning)
{
    const struct wr_parser_sink sink = {take, refuse, (void *)(uintptr_t)reading};
    const struct wr_parser_options options = {0};
    struct wr_parser *parser = wr_parser_new(type, &options, &sink);
    size_t used = 0;
    if (!parser)
        command_out_of_memory();
    if (beginning->length && !wr_parser_put(parser, beginning->data, beginning->length, &used))
        command_out_of_memory();
    bool is_read = read_rest(reading, fd, parser);
    wr_parser_free(parser);
    return is_read;
}

static bool read_report(const struct reading *reading, int fd, struct wr_buffer *beginning)
{
    int problem = read_until(fd, beginning, SIZE_MAX);
    return problem
               ? fail(reading->path, problem)
               : report_document_read(reading->documents, reading->path, beginning->data, beginning->length);
}

/* SQLite opens it by its path. */
static bool read_database(const struct reading *reading, int fd)
{
    if (fd != STDIN_FILENO)
        return summary_database_read(reading->path, reading->statistics);
    command_fail("stdin: a database cannot be read from a pipe; name the file");
    return false;
}

static bool read_all(const struct reading *reading, const struct wr_parser_type *type, int fd)
{
    enum { BEGINNING = 16 * 1024 };
    struct wr_buffer beginning = {0};
    int problem = read_until(fd, &beginning, BEGINNING);
    const char *remedy = problem ? NULL : find_remedy(beginning.data, (ssize_t)beginning.length);
    bool is_read = false;
    if (problem || remedy)
        command_fail("%s%s %s", reading->path, remedy ? "" : ":",
                     remedy ? remedy : wr_error_system_text(problem));
    else if (reading->statistics && summary_database_is(beginning.data, beginning.length))
        is_read = read_database(reading, fd);
    else if (!type && beginning.length && report_document_is(beginning.data, beginning.length))
        is_read = read_report(reading, fd, &beginning);
    else if (reading->statistics)
        is_read = read_lines(reading, type ? type : choose_type(reading->path), fd, &beginning);
    else
        command_fail("%s: is not a report, as the handler type report and weir run --report write",
                     reading->path);
    wr_buffer_fini(&beginning);
    return is_read;
}

bool summary_input_read(const char *path, const struct wr_parser_type *type, struct statistics *statistics,
                        struct report_documents *documents, struct summary_faults *faults)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const struct reading reading = {is_stdin ? "stdin" : path, statistics, documents, faults};
    size_t first = documents->count;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail(path, errno);
    bool is_read = read_all(&reading, type, fd);
    if (!is_stdin)
        close(fd);
    if (is_read && statistics && documents->count > first)
        report_document_add(documents, first, statistics);
    return is_read;
}
