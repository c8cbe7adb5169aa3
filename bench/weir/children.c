/* children: measures forked children that add one value and end. The parent has delivered a value before.
 *
 *     children CONFIG COUNT */

#include <stdio.h>

#include <weir/weir.h>

#include "../support/children.h"

static weir_stream *stream;

static void add_one(void)
{
    weir_add_value(stream, "latency", 0.001);
}

int main(int argc, char **argv)
{
    int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1)
        measure_fail("usage: children CONFIG COUNT");
    if (weir_configure_file(argv[1]) != 0)
        measure_fail("%s", weir_last_error());
    stream = weir_get_stream("my_app");
    add_one();
    if (weir_flush(-1) != 0)
        measure_fail("the first value was not delivered");
    printf("{\"child_us\":%.1f}\n", children_measure(count, add_one));
    return 0;
}
