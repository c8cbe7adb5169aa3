/* The smallest program: one stream, one value. Where the value goes is decided by WEIR_CONFIG. */
#include <weir/weir.h>

int main(void)
{
    weir_stream *stream = weir_get_stream("my_app");
    weir_add_value(stream, "calculate_latency", 12.375);
    return 0;
}
