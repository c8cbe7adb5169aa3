/* weir spool: what handlers have left on disk. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "common/command.h"
#include "spool_read.h"

/* ---- list and verify ------------------------------------------------------------------------- */

/* Returns whether the folder cannot be read. */
static bool put_problem(struct owner_folder_listing *listing, const struct spool_read_box *box)
{
    if (!box->problem)
        return false;
    command_put_text(&listing->out, box->folder.name);
    wr_buffer_put_format(&listing->out, ": it cannot be read: %s\n", strerror(box->problem));
    listing->damaged = true;
    return true;
}

static void list_box(struct owner_folder_listing *listing, const void *listed)
{
    const struct spool_read_box *box = listed;
    struct wr_buffer *out = &listing->out;
    uint64_t values = 0, bytes = 0;
    if (put_problem(listing, box))
        return;
    for (size_t i = 0; i < box->file_count; i++) {
        values += box->files[i].readable + box->files[i].damaged;
        bytes += box->files[i].bytes;
    }
    command_put_text(out, box->folder.name);
    wr_buffer_put_format(out, ": handler %s\"", box->is_altered ? "like " : "");
    command_put_text(out, box->handler);
    wr_buffer_put_format(out, "\", process %" PRIu32 "%s, %" PRIu64 " values in %zu files, %" PRIu64 " bytes, ",
                         box->folder.pid, box->folder.in_use ? " (running)" : "", values, box->file_count,
                         bytes);
    owner_folder_put_time(out, box->folder.created_ns);
    wr_buffer_put_char(out, '\n');
}

static void verify_box(struct owner_folder_listing *listing, const void *listed)
{
    const struct spool_read_box *box = listed;
    struct wr_buffer *out = &listing->out;
    put_problem(listing, box);
    for (size_t i = 0; i < box->file_count; i++) {
        const struct spool_read_file *file = &box->files[i];
        command_put_text(out, box->folder.name);
        listing->damaged |= file->is_damaged;
        if (file->other_version) {
            wr_buffer_put_format(out, "/%s: format %" PRIu32 ", which this version of weir cannot read\n",
                                 file->name, file->other_version);
            continue;
        }
        wr_buffer_put_format(out, "/%s: %" PRIu64 " values", file->name, file->readable);
        if (file->readable) {
            char origin[WR_ORIGIN_TEXT];
            wr_origin_put_text(&file->first.origin, origin);
            wr_buffer_put_format(out, ", from %s %" PRIu64 " on", origin, file->first.sequence);
        }
        if (file->settled)
            wr_buffer_put_format(out, ", %" PRIu32 " more already delivered", file->settled);
        if (file->is_damaged && file->damaged)
            wr_buffer_put_format(out, ", %" PRIu64 " lost", file->damaged);
        wr_buffer_put_text(out, file->is_damaged ? ", damaged\n" : "\n");
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

static int replay(const char *folder)
{
    bool complete = true;
    size_t count;
    struct spool_read_box *boxes = owner_folder_read(folder, &spool_read_kind, &count);
    if (!boxes)
        return command_fail("%s: %s", folder, strerror(errno));
    for (size_t i = 0; i < count && spool_read_print(&boxes[i], &complete); i++)
        continue;
    owner_folder_free(boxes, count, &spool_read_kind);
    return complete ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option != 'h')
            return command_show_usage(command);
        return command_print_help(command, stdout);
    }
    if (argc - optind != 2)
        return command_refuse(command, "expected list, verify or replay, and a FOLDER");
    const char *verb = argv[optind], *folder = argv[optind + 1];
    if (strcmp(verb, "list") == 0)
        return owner_folder_print(folder, &spool_read_kind, list_box);
    if (strcmp(verb, "verify") == 0)
        return owner_folder_print(folder, &spool_read_kind, verify_box);
    if (strcmp(verb, "replay") == 0)
        return replay(folder);
    return command_refuse(command, "\"%s\" is not allowed; allowed: list, verify, replay", verb);
}

const struct command command_spool = {
    .name = "spool",
    .arguments = "list|verify|replay FOLDER",
    .summary = "Lists, verifies or prints what handlers have left on disk.",
    .help = "\n  list    the processes that left values, and how many\n"
            "  verify  each file, and whether it is damaged\n"
            "  replay  the undelivered values, in order, as lines of JSON\n\n"
            "  -h, --help  this text\n\n"
            "Nothing is modified. Exit status 1: something is damaged or cannot be read.\n",
    .run = run,
};
