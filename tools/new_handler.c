/* weir new-handler: creates a folder with a new handler or source type that builds and passes its tests. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/command.h"
#include "handler/plugin.h"
#include "text/buffer.h"
#include "text/error.h"

/* Pairs of a file name and one of its lines, ending with NULL. Generated from tools/new_handler/ and
 * tools/new_source/ by the build. */
extern const char *const new_handler_lines[], *const new_source_lines[];

/* What is created. */
struct project {
    const char *name; /* the new type's name */
    bool is_source;
    const char *const *lines;
};

/* Appends the value of the placeholder at the beginning of the text. Returns its length; 0: there is none. */
static size_t put_placeholder(struct wr_buffer *out, const char *text, const struct project *project)
{
    const struct {
        const char *text, *value, *suffix;
    } known[] = {
        {"@NAME@", project->name, ""},
        {"@KIND@", project->is_source ? "source" : "handler", ""},
        {"@PLUGIN@", project->name, project->is_source ? ".source.so" : ".so"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].text);
        if (strncmp(text, known[i].text, length) != 0)
            continue;
        wr_buffer_put_text(out, known[i].value);
        wr_buffer_put_text(out, known[i].suffix);
        return length;
    }
    return 0;
}

static void put_line(struct wr_buffer *out, const char *line, const struct project *project)
{
    while (*line) {
        size_t length = *line == '@' ? put_placeholder(out, line, project) : 0;
        if (!length)
            wr_buffer_put_char(out, *line);
        line += length ? length : 1;
    }
    wr_buffer_put_char(out, '\n');
}

static bool write_file(const char *path, const struct wr_buffer *text)
{
    FILE *file = fopen(path, "wx");
    if (!file)
        return false;
    bool written = !text->failed && fwrite(text->data, 1, text->length, file) == text->length;
    return fclose(file) == 0 && written;
}

/* Writes the file whose first line is *line. Returns the first line of the next file, or NULL on failure. */
static const char *const *make_file(const char *const *line, const struct project *project)
{
    struct wr_buffer path = {0}, text = {0};
    const char *file = *line, *name = project->name;
    bool is_script = strcmp(file, "check.sh") == 0, is_code = strcmp(file + strlen(file) - 2, ".c") == 0;
    if (is_code)
        wr_buffer_put_format(&path, "%s/%s.c", name, name);
    else
        wr_buffer_put_format(&path, "%s/%s", name, file);
    for (; *line && strcmp(*line, file) == 0; line += 2)
        put_line(&text, line[1], project);
    const char *to = wr_buffer_text(&path);
    bool made = to && write_file(to, &text) && (!is_script || chmod(to, 0755) == 0);
    if (made)
        printf("%s\n", to);
    else
        command_fail("%s: %s", to ? to : name, strerror(errno));
    wr_buffer_fini(&path);
    wr_buffer_fini(&text);
    return made ? line : NULL;
}

static int make_folder(const struct project *project)
{
    const char *const *line = project->lines;
    const char *name = project->name;
    if (mkdir(name, 0755) != 0)
        return command_fail("%s: %s%s", name, strerror(errno),
                            errno == EEXIST ? "; nothing is overwritten" : "");
    while (line && *line)
        line = make_file(line, project);
    if (!line)
        return EXIT_FAILURE;
    printf("\nNext: cd %s && make check\n", name);
    return EXIT_SUCCESS;
}

/* A plugin hides one of the same name that is found later, which is rarely intended. */
static bool is_taken(const struct project *project)
{
    struct wr_error error = {0};
    const struct wr_plugins_kind *kind = project->is_source ? &wr_plugins_sources : &wr_plugins_handlers;
    const struct wr_type *type = wr_plugins_find(command_plugins(), kind, project->name, NULL, &error);
    if (type)
        command_fail("\"%s\": a %s of this name exists already (%s)", project->name, kind->noun,
                     type->path ? type->path : "built in");
    return type;
}

static int make(const struct command *command, struct project *project)
{
    if (!wr_plugins_is_type_name(project->name))
        return command_refuse(command,
                              "\"%s\" is not a valid name; allowed: a-z, then a-z, 0-9 and _, at most 63",
                              project->name);
    project->lines = project->is_source ? new_source_lines : new_handler_lines;
    return is_taken(project) ? EXIT_FAILURE : make_folder(project);
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"source", no_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct project project = {0};
    for (int option; (option = getopt_long(argc, argv, "sh", options, NULL)) != -1;) {
        if (option == 'h')
            return command_print_help(command, stdout);
        if (option != 's')
            return command_show_usage(command);
        project.is_source = true;
    }
    if (argc - optind != 1)
        return command_refuse(command, "expected one NAME, of the new type");
    project.name = argv[optind];
    return make(command, &project);
}

const struct command command_new_handler = {
    .name = "new-handler",
    .arguments = "NAME [-s]",
    .summary = "Creates a folder with a new handler or source type, ready to build.",
    .help =
        "\n  -s, --source  a source type, which reads values, in place of a handler type\n"
        "  -h, --help    this text\n\n"
        "The folder NAME is created in the working directory, with a C file, a Makefile, a test and a README.\n"
        "It builds with the weir that pkg-config finds. Existing files are not overwritten.\n",
    .run = run,
};
