/* weir journal: what processes have left in a journal. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include <weir/weir.h>

#include "common/command.h"
#include "config/config.h"
#include "journal_read.h"
#include "runtime/configure.h"
#include "text/error.h"
#include "text/units.h"

/* ---- list and verify ------------------------------------------------------------------------- */

static void list_box(struct owner_folder_listing *listing, const void *listed)
{
    const struct journal_read_box *box = listed;
    struct wr_buffer *out = &listing->out;
    command_put_text(out, box->folder.name);
    wr_buffer_put_format(out, ": process %" PRIu32 "%s, ", box->folder.pid,
                         box->folder.in_use ? " (running)" : "");
    owner_folder_put_time(out, box->folder.created_ns);
    if (box->other_version) {
        wr_buffer_put_format(out, ", format %" PRIu32 ", which this version of weir cannot read\n",
                             box->other_version);
        return;
    }
    wr_buffer_put_format(out, ", %" PRIu64 " values in rings and cells", box->in_rings);
    for (size_t i = 0; i < box->handler_count; i++) {
        const struct journal_read_handler *handler = &box->handlers[i];
        char origin[WR_ORIGIN_TEXT];
        wr_origin_put_text(&handler->first.origin, origin);
        wr_buffer_put_format(out, ", %" PRIu64 " for \"", handler->values);
        command_put_text(out, handler->name);
        wr_buffer_put_format(out, "\" (from %s %" PRIu64 " on)", origin, handler->first.sequence);
    }
    wr_buffer_put_char(out, '\n');
}

/* The files of a running process may be incomplete because they are being written. */
static void verify_box(struct owner_folder_listing *listing, const void *listed)
{
    const struct journal_read_box *box = listed;
    bool damaged = box->damaged && !box->folder.in_use;
    command_put_text(&listing->out, box->folder.name);
    wr_buffer_put_format(&listing->out, ": %s\n",
                         box->other_version   ? "of another version"
                         : damaged            ? "damaged"
                         : box->folder.in_use ? "running"
                                              : "sound");
    listing->damaged |= damaged;
}

/* ---- replay ---------------------------------------------------------------------------------- */

struct request {
    const char *file;
    int64_t timeout_ms; /* -1: none */
};

/* Sets *found if a process that has ended left undelivered values. Returns the exit code. */
static int check(const char *folder, bool *found)
{
    size_t count;
    struct journal_read_box *boxes = owner_folder_read(folder, &journal_read_kind, &count);
    *found = false;
    if (!boxes)
        return command_fail("%s: %s", folder, strerror(errno));
    for (size_t i = 0; i < count; i++)
        *found |= !boxes[i].folder.in_use && (boxes[i].damaged || boxes[i].in_rings || boxes[i].handler_count);
    owner_folder_free(boxes, count, &journal_read_kind);
    return EXIT_SUCCESS;
}

/* Applies the configuration with `folder` as its journal, so that the library recovers and delivers its values,
 * and shuts down. WEIR_CONFIG and BENCHMARK_AI would take precedence. */
static bool apply(struct wr_config *config, const char *folder, struct wr_error *error)
{
    struct wr_runtime *runtime = wr_runtime_get();
    config->settings.journal = wr_config_keep_text(config, folder);
    unsetenv("WEIR_CONFIG");
    unsetenv("BENCHMARK_AI");
    if (!runtime || !config->settings.journal)
        return wr_error_refuse(error, WEIR_ERR_MEMORY, "out of memory");
    return wr_configure_whole(runtime, config, error) == 0;
}

static int deliver(const char *place, const struct request *request)
{
    struct wr_error error = {0};
    char *folder = realpath(place, NULL); /* the setting has to be absolute */
    if (!folder)
        return command_fail("%s: %s", place, strerror(errno));
    struct wr_config *config = command_read_config(request->file, NULL, &error);
    bool applied = config && apply(config, folder, &error);
    free(folder);
    if (!applied)
        return command_fail("%s", error.text);
    return weir_shutdown(request->timeout_ms) ? command_fail("%s", weir_last_error()) : EXIT_SUCCESS;
}

static int replay(const char *folder, const struct request *request)
{
    bool found;
    int result = check(folder, &found);
    if (result == EXIT_SUCCESS && found)
        result = deliver(folder, request);
    if (result == EXIT_SUCCESS)
        result = check(folder, &found);
    if (result == EXIT_SUCCESS && found)
        result = command_fail("%s: some values could not be delivered, see `weir journal list`", folder);
    return result;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run_verb(const struct command *command, const char *verb, const char *folder,
                    const struct request *request)
{
    if (strcmp(verb, "replay") == 0)
        return replay(folder, request);
    if (request->file || request->timeout_ms >= 0)
        return command_refuse(command, "--config and --timeout are only allowed with replay");
    if (strcmp(verb, "list") == 0)
        return owner_folder_print(folder, &journal_read_kind, list_box);
    if (strcmp(verb, "verify") == 0)
        return owner_folder_print(folder, &journal_read_kind, verify_box);
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
            if (!wr_units_read_duration(optarg, &timeout_ns))
                return command_refuse(command, "--timeout: \"%s\" is not " WR_UNITS_DURATION_HINT, optarg);
            request.timeout_ms = timeout_ns / 1000000;
            break;
        case 'h': return command_print_help(command, stdout);
        default: return command_show_usage(command);
        }
    }
    if (argc - optind != 2)
        return command_refuse(command, "expected list, verify or replay, and a FOLDER");
    return run_verb(command, argv[optind], argv[optind + 1], &request);
}

const struct command command_journal = {
    .name = "journal",
    .arguments = "list|verify|replay FOLDER [-c FILE] [-t TIME]",
    .summary = "Lists, verifies or delivers what programs have left in a journal.",
    .help = "\n  list    the processes that left values or are running, and how many values\n"
            "  verify  each process's files, and whether they are damaged\n"
            "  replay  delivers what ended processes left, by the configuration\n\n"
            "  -c, --config FILE   the configuration for replay; default: WEIR_CONFIG\n"
            "  -t, --timeout TIME  how long replay may take; default: until all is delivered\n"
            "  -h, --help          this text\n\n"
            "Files of running processes are not modified. Exit status 1: something is damaged or was not "
            "delivered.\n",
    .run = run,
};
