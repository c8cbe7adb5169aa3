/* events: emits the events that a file describes.
 *
 * usage: events FILE
 *
 * A line is an event: NAME=BITS NAME=BITS ..., the name's bytes and the double's bits, both in hexadecimal, so
 * that no conversion changes them. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

enum { LONGEST_LINE = 20000, MOST_VALUES = 64, NAME_ROOM = 256 };

static void read_name(const char *hex, size_t digits, char name[NAME_ROOM])
{
    for (size_t i = 0; i + 1 < digits && i / 2 + 1 < NAME_ROOM; i += 2) {
        const char byte[3] = {hex[i], hex[i + 1], '\0'};
        name[i / 2] = (char)strtoul(byte, NULL, 16);
        name[i / 2 + 1] = '\0';
    }
}

static int emit_line(weir_stream *stream, char *line)
{
    static char names[MOST_VALUES][NAME_ROOM];
    weir_value values[MOST_VALUES];
    size_t count = 0;
    for (char *part = strtok(line, " \n"); part && count < MOST_VALUES; part = strtok(NULL, " \n")) {
        const char *equals = strchr(part, '=');
        if (!equals)
            return WEIR_ERR_ARGUMENT;
        read_name(part, (size_t)(equals - part), names[count]);
        uint64_t bits = strtoull(equals + 1, NULL, 16);
        values[count].name = names[count];
        memcpy(&values[count++].value, &bits, sizeof bits);
    }
    return weir_emit(stream, values, count);
}

int main(int argc, char **argv)
{
    static char line[LONGEST_LINE];
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!file)
        return 2;
    weir_stream *stream = weir_get_stream("my_app");
    while (fgets(line, sizeof line, file))
        if (emit_line(stream, line)) {
            fprintf(stderr, "events: %s\n", weir_last_error());
            return 1;
        }
    fclose(file);
    return 0;
}
