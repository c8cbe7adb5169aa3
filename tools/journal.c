/* weir journal: what processes have left in a journal. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "journal_read.h"
#include "text/units.h"

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

static bool list_box(const struct journal_read_box *box, void *ctx)
{
    (void)ctx;
    printf("%s: process %" PRIu32 "%s, ", box->name, box->pid, box->in_use ? " (running)" : "");
    print_time(box->created_ns);
    if (box->other_version) {
        printf(", format %" PRIu32 ", which this version of weir does not read\n", box->other_version);
        return true;
    }
    printf(", %" PRIu64 " values in rings", box->in_rings);
    for (size_t i = 0; i < box->handler_count; i++) {
        const struct journal_read_handler *handler = &box->handlers[i];
        char origin[WR_ORIGIN_TEXT];
        wr_origin_put_text(&handler->first.origin, origin);
        printf(", %" PRIu64 " for \"%s\" (from %s %" PRIu64 " on)", handler->values, handler->name, origin,
               handler->first.sequence);
    }
    putchar('\n');
    return true;
}

static int list(const char *folder)
{
    return journal_read_walk(folder, list_box, NULL) ? EXIT_GOOD
                                                     : command_fail("%s: %s", folder, strerror(errno));
}

/* ---- verify ---------------------------------------------------------------------------------- */

/* A process that runs may just be writing. */
static bool verify_box(const struct journal_read_box *box, void *ctx)
{
    bool *sound = ctx, damaged = box->damaged && !box->in_use;
    printf("%s: %s\n", box->name,
           box->other_version ? "of another version"
           : damaged          ? "damaged"
           : box->in_use      ? "running"
                              : "sound");
    *sound &= !damaged;
    return true;
}

static int verify(const char *folder)
{
    bool sound = true;
    if (!journal_read_walk(folder, verify_box, &sound))
        return command_fail("%s: %s", folder, strerror(errno));
    return sound ? EXIT_GOOD : EXIT_NEGATIVE;
}

/* ---- replay ---------------------------------------------------------------------------------- */

static bool find_left(const struct journal_read_box *box, void *ctx)
{
    bool *left = ctx;
    *left |= !box->in_use && (box->damaged || box->in_rings || box->handler_count);
    return true;
}

static int replay(const char *folder, const char *file, int64_t timeout_ms)
{
    bool left = false;
    if (!journal_read_walk(folder, find_left, &left))
        return command_fail("%s: %s", folder, strerror(errno));
    if (left && !journal_read_replay(folder, file, timeout_ms))
        return EXIT_NEGATIVE;
    left = false;
    if (!journal_read_walk(folder, find_left, &left))
        return command_fail("%s: %s", folder, strerror(errno));
    return left ? command_fail("%s: not everything could be delivered; `weir journal list` shows what is left",
                               folder)
                : EXIT_GOOD;
}

/* ---- The command ----------------------------------------------------------------------------- */

struct request {
    const char *file;
    int64_t timeout_ms; /* -1: none */
};

static int run_verb(const struct command *command, const char *verb, const char *folder,
                    const struct request *request)
{
    if (strcmp(verb, "replay") == 0)
        return replay(folder, request->file, request->timeout_ms);
    if (request->file || request->timeout_ms >= 0)
        return command_refuse(command, "--config and --timeout are for replay");
    if (strcmp(verb, "list") == 0)
        return list(folder);
    if (strcmp(verb, "verify") == 0)
        return verify(folder);
    return command_refuse(command, "\"%s\" is not allowed; allowed: list, verify, replay", verb);
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct request request = {.timeout_ms = -1};
    int64_t timeout_ns;
    for (int option; (option = getopt_long(argc, argv, "c:t:h", options, NULL)) != -1;) {
        switch (option) {
        case 'c': request.file = optarg; break;
        case 't':
            if (!wr_units_parse_duration(optarg, &timeout_ns))
                return command_refuse(command, "--timeout: \"%s\" is not " WR_UNITS_DURATION_HINT, optarg);
            request.timeout_ms = timeout_ns / 1000000;
            break;
        case 'h': command_print_help(command, stdout); return EXIT_GOOD;
        default: return command_show_usage(command);
        }
    }
    if (argc - optind != 2)
        return command_refuse(command, "list, verify or replay is expected, and a folder");
    return run_verb(command, argv[optind], argv[optind + 1], &request);
}

const struct command command_journal = {
    .name = "journal",
    .arguments = "list|verify|replay FOLDER [-c FILE] [-t TIME]",
    .summary = "Shows what programs have left in a journal, checks it, or delivers it.",
    .help =
        "\n  list    who left what, or still has it\n"
        "  verify  whether what is there is sound\n"
        "  replay  delivers what processes that have ended left, as the configuration says\n\n"
        "  -c, --config FILE   the configuration for replay; without it that of WEIR_CONFIG\n"
        "  -t, --timeout TIME  how long replay tries; without it until all is delivered, or it is interrupted\n"
        "  -h, --help          this text\n\n"
        "What belongs to a running process is left alone. Exit status 1: something is damaged, or was not "
        "delivered.\n",
    .run = run,
};
