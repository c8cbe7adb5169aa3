/* weir spool: what handlers have on disk. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "spool_read.h"

/* ---- list ------------------------------------------------------------------------------------ */

static void print_time(int64_t time_ns)
{
    struct tm parts;
    time_t seconds = (time_t)(time_ns / 1000000000);
    char text[32] = "?";
    if (time_ns && gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    printf("since %s", text);
}

static bool list_box(const struct spool_read_box *box, void *ctx)
{
    uint64_t waiting = 0, bytes = 0;
    (void)ctx;
    for (size_t i = 0; i < box->file_count; i++) {
        waiting += box->files[i].good + box->files[i].lost;
        bytes += box->files[i].bytes;
    }
    printf("%s: handler \"%s\", process %" PRIu32 "%s, %" PRIu64 " values in %zu files, %" PRIu64 " bytes, ",
           box->name, box->handler, box->pid, box->in_use ? " (running)" : "", waiting, box->file_count, bytes);
    print_time(box->created_ns);
    putchar('\n');
    return true;
}

/* ---- verify ---------------------------------------------------------------------------------- */

/* A process that runs may just be writing. */
static bool verify_box(const struct spool_read_box *box, void *ctx)
{
    bool *sound = ctx;
    for (size_t i = 0; i < box->file_count; i++) {
        const struct spool_read_file *file = &box->files[i];
        bool damaged = file->damaged && !(box->in_use && i + 1 == box->file_count);
        if (file->other_version) {
            printf("%s/%s: format %" PRIu32 ", which this version of weir does not read\n", box->name,
                   file->name, file->other_version);
            *sound = false;
            continue;
        }
        printf("%s/%s: %" PRIu64 " values", box->name, file->name, file->good);
        if (file->good) {
            char origin[WR_ORIGIN_TEXT];
            wr_origin_put_text(&file->first.origin, origin);
            printf(", from %s %" PRIu64 " on", origin, file->first.sequence);
        }
        if (file->settled)
            printf(", %" PRIu32 " more are delivered", file->settled);
        if (damaged && file->lost)
            printf(", %" PRIu64 " lost", file->lost);
        puts(damaged ? ", damaged" : "");
        *sound &= !damaged;
    }
    return true;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int list(const char *folder)
{
    return spool_read_walk(folder, list_box, NULL) ? EXIT_GOOD
                                                   : command_fail("%s: %s", folder, strerror(errno));
}

static int verify(const char *folder)
{
    bool sound = true;
    if (!spool_read_walk(folder, verify_box, &sound))
        return command_fail("%s: %s", folder, strerror(errno));
    return sound ? EXIT_GOOD : EXIT_NEGATIVE;
}

static int replay(const char *folder)
{
    bool written = true;
    if (!spool_read_walk(folder, spool_read_print, &written))
        return command_fail("%s: %s", folder, strerror(errno));
    return written ? EXIT_GOOD : EXIT_NEGATIVE;
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option != 'h')
            return command_show_usage(command);
        command_print_help(command, stdout);
        return EXIT_GOOD;
    }
    if (argc - optind != 2)
        return command_refuse(command, "list, verify or replay is expected, and a folder");
    const char *verb = argv[optind], *folder = argv[optind + 1];
    if (strcmp(verb, "list") == 0)
        return list(folder);
    if (strcmp(verb, "verify") == 0)
        return verify(folder);
    if (strcmp(verb, "replay") == 0)
        return replay(folder);
    return command_refuse(command, "\"%s\" is not allowed; allowed: list, verify, replay", verb);
}

const struct command command_spool = {
    .name = "spool",
    .arguments = "list|verify|replay FOLDER",
    .summary = "Shows what handlers have on disk in a folder, checks it, or prints its values.",
    .help = "\n  list    who left what\n"
            "  verify  each file, and whether it is sound\n"
            "  replay  the values that are not delivered yet, in order, as lines of JSON\n\n"
            "  -h, --help  this text\n\n"
            "Nothing is changed. Exit status 1: something is damaged or cannot be read.\n",
    .run = run,
};
