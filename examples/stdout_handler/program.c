/* program: adds two values. With -DREGISTER the handler type is part of the program, which registers it;
 * otherwise it is loaded as a plugin. In both cases the configuration routes values to it. */

#include <stdio.h>

#include <weir/weir.h>

#ifdef REGISTER
#include <weir/handler.h>
#endif

int main(void)
{
#ifdef REGISTER
    if (weir_register_handler_type(weir_handler_type_at(0), NULL)) {
        fprintf(stderr, "program: %s\n", weir_last_error());
        return 1;
    }
#endif
    weir_stream *stream = weir_get_stream("my_app");
    weir_add_value(stream, "latency", 12.5);
    weir_add_int(stream, "requests", 3);
    return weir_flush(5000) ? 1 : 0;
}
