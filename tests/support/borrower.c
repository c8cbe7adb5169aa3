/* borrower: adds values by names in fresh heap memory that is freed right after the call, as the API allows. */

#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

static void add(weir_stream *stream, size_t length, size_t offset)
{
    char *memory = malloc(offset + length + 1), *name = memory + offset;
    if (!memory)
        exit(1);
    memset(name, 'a', length);
    name[length] = '\0';
    for (int i = 0; i < 3; i++)
        weir_add_value(stream, name, i);
    free(memory);
}

int main(void)
{
    weir_stream *stream = weir_get_stream("my_app");
    for (size_t length = 1; length < 40; length++)
        for (size_t offset = 0; offset < 8; offset++)
            add(stream, length, offset);
    weir_stats stats;
    return weir_shutdown(-1) || weir_get_stats(&stats, sizeof stats) || stats.added != 3 * 8 * 39;
}
