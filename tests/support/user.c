/* user: a library that uses weir, loaded and unloaded by a program that does not use weir. */

#include <weir/weir.h>

__attribute__((visibility("default"))) int use_weir(int count);

int use_weir(int count)
{
    weir_stream *stream = weir_get_stream("library");
    for (int i = 0; i < count; i++)
        weir_add_int(stream, "n", i);
    return weir_flush(-1);
}
