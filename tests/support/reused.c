/* reused TIMES: adds label sets whose values are their numbers, some hundred at a time, and waits each time
 * until the streams of those before can be reused, TIMES times. Prints how many label sets there were. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/weir.h>

#include "registry/reuse.h"
#include "runtime/runtime.h"

enum { AT_A_TIME = 300 };

static void add(weir_stream *stream, int number)
{
    char text[16];
    snprintf(text, sizeof text, "s%d", number);
    const weir_label label = {"set", text};
    const weir_sample_spec spec = {
        .size = sizeof spec, .name = "plain", .value = number, .labels = &label, .label_count = 1};
    if (weir_add_value_labeled(stream, "level", number, &label, 1) ||
        weir_add_value_labeled(stream, "size", number, &label, 1) || weir_add(stream, &spec)) {
        fprintf(stderr, "%s\n", weir_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1, number = 0;
    weir_stream *stream = weir_get_stream("churn");
    weir_metric_spec spec = {.size = sizeof spec, .instrument = WEIR_GAUGE};
    weir_declare(stream, "level", &spec);
    spec.instrument = WEIR_HISTOGRAM;
    weir_declare(stream, "size", &spec);
    for (int time = 0; time < times; time++) {
        uint64_t before = wr_reuse_releases(&wr_runtime_get()->registry);
        for (int i = 0; i < AT_A_TIME; i++)
            add(stream, number++);
        while (wr_reuse_releases(&wr_runtime_get()->registry) == before)
            usleep(2000);
    }
    printf("%d\n", number);
    return weir_shutdown(-1) != 0;
}
