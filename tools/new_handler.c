/* weir new-handler: creates a folder with a new handler type that builds and passes its tests. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/command.h"
#include "handler/plugin.h"
#include "text/buffer.h"
#include "text/error.h"

/* Pairs of a file name and one of its lines, ending with NULL. Generated from tools/new_handler/ by the build.
 */
extern const char *const new_handler_lines[];

/* What a template has instead of the new type's name. */
static const char placeholder[] = "@NAME@";

static void put_line(struct wr_buffer *out, const char *line, const char *name)
{
    const char *found;
    while ((found = strstr(line, placeholder))) {
        wr_buffer_put(out, line, (size_t)(found - line));
        wr_buffer_put_text(out, name);
        line = found + strlen(placeholder);
    }
    wr_buffer_put_text(out, line);
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
static const char *const *make_file(const char *const *line, const char *name)
{
    struct wr_buffer path = {0}, text = {0};
    const char *file = *line;
    bool is_script = strcmp(file, "check.sh") == 0;
    if (strcmp(file, "handler.c") == 0)
        wr_buffer_put_format(&path, "%s/%s.c", name, name);
    else
        wr_buffer_put_format(&path, "%s/%s", name, file);
    for (; *line && strcmp(*line, file) == 0; line += 2)
        put_line(&text, line[1], name);
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

static int make_folder(const char *name)
{
    const char *const *line = new_handler_lines;
    if (mkdir(name, 0755) != 0)
        return command_fail("%s: %s%s", name, strerror(errno),
                            errno == EEXIST ? "; nothing is overwritten" : "");
    while (line && *line)
        line = make_file(line, name);
    if (!line)
        return EXIT_FAILURE;
    printf("\nNext: cd %s && make check\n", name);
    return EXIT_SUCCESS;
}

/* A plugin hides one of the same name that is found later, which is rarely intended. */
static bool is_taken(const char *name)
{
    struct wr_error error = {0};
    const struct wr_type *type = wr_plugins_find(command_plugins(), name, NULL, &error);
    if (type)
        command_fail("\"%s\": a handler type of this name exists already (%s)", name,
                     type->path ? type->path : "built in");
    return type;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *name;
    int status = command_read_name(command, argc, argv, 1, &name);
    if (status != COMMAND_CONTINUE)
        return status;
    if (!name)
        return command_refuse(command, "expected one NAME, of the handler type");
    if (!wr_plugins_is_type_name(name))
        return command_refuse(
            command, "\"%s\" is not a valid name; allowed: a-z, then a-z, 0-9 and _, at most 63", name);
    return is_taken(name) ? EXIT_FAILURE : make_folder(name);
}

const struct command command_new_handler = {
    .name = "new-handler",
    .arguments = "NAME",
    .summary = "Creates a folder with a new handler type, ready to build.",
    .help =
        "\n  -h, --help  this text\n\n"
        "The folder NAME is created in the working directory, with a C file, a Makefile, a test and a README.\n"
        "It builds with the weir that pkg-config finds. Existing files are not overwritten.\n",
    .run = run,
};
