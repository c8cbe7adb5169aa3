/* weir new-handler: writes the folder of a new handler type, which builds, passes its tests, and is there to be
 * changed. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "text/buffer.h"
#include "common/command.h"
#include "text/error.h"
#include "handler/plugin.h"

/* Pairs of a file's name and one of its lines, ending with NULL; made from tools/new_handler when weir is
 * built. */
extern const char *const new_handler_lines[];

/* Where a template has the new type's name. */
static const char place_of_name[] = "@NAME@";

static void put_line(struct wr_buffer *out, const char *line, const char *name)
{
    const char *place;
    while ((place = strstr(line, place_of_name))) {
        wr_buffer_put(out, line, (size_t)(place - line));
        wr_buffer_put_text(out, name);
        line = place + strlen(place_of_name);
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

/* Writes the file whose first line is at `line`; answers where the next file begins, or NULL. */
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
        return EXIT_NEGATIVE;
    printf("\nNext: cd %s && make check\n", name);
    return EXIT_GOOD;
}

/* A plugin takes the place of one of its name that is found later, and few would mean that. */
static bool is_taken(const char *name)
{
    struct wr_error error = {0};
    const struct wr_type *type = wr_plugins_find(command_plugins(), name, NULL, &error);
    if (type)
        command_fail("\"%s\": there is a handler type of this name already (%s)", name,
                     type->path ? type->path : "built in");
    return type;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *name;
    int status = command_read_name(command, argc, argv, 1, &name);
    if (status != COMMAND_GOES_ON)
        return status;
    if (!name)
        return command_refuse(command, "one NAME is expected: the handler type's");
    if (!wr_plugins_is_type_name(name))
        return command_refuse(
            command, "\"%s\" is not a type's name; allowed: a-z, then a-z, 0-9 and _, at most 63", name);
    return is_taken(name) ? EXIT_NEGATIVE : make_folder(name);
}

const struct command command_new_handler = {
    .name = "new-handler",
    .arguments = "NAME",
    .summary = "Writes a folder with a new handler type, ready to be built.",
    .help = "\n  -h, --help  this text\n\nThe folder NAME is made in the working folder: a C file, a Makefile, "
            "a test, a "
            "README.\nIt builds with the weir that pkg-config finds; nothing is overwritten.\n",
    .run = run,
};
