/* adding: adds values with weir: way=name, handle, labeled_handle (of a label set), emit or labeled (labels of
 * the call); counter, gauge, histogram or labeled_counter: by the handle of such an instrument. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "../support/measure.h"
#include "../support/values.h"

/* The state of one thread. */
struct state {
    weir_stream *stream;
    weir_metric *metric;
    const char *name;
    const char **names;
    long name_count, next;
    weir_label *labels; /* two for each name */
    weir_value *event;
    size_t event_length;
};

static void (*add_values)(struct state *state, const double *values, size_t count);

/* ---- The loops ------------------------------------------------------------------------------- */

static void add_by_name(struct state *state, const double *values, size_t count)
{
    weir_stream *stream = state->stream;
    const char *name = state->name;
    for (size_t i = 0; i < count; i++)
        weir_add_value(stream, name, values[i]);
}

static void add_by_names_in_turn(struct state *state, const double *values, size_t count)
{
    weir_stream *stream = state->stream;
    long next = state->next;
    for (size_t i = 0; i < count; i++) {
        weir_add_value(stream, state->names[next], values[i]);
        next = next + 1 < state->name_count ? next + 1 : 0;
    }
    state->next = next;
}

static void add_by_handle(struct state *state, const double *values, size_t count)
{
    weir_metric *metric = state->metric;
    for (size_t i = 0; i < count; i++)
        weir_metric_add(metric, values[i]);
}

/* Label sets in turn, of one name. */
static void add_labeled(struct state *state, const double *values, size_t count)
{
    long next = state->next;
    for (size_t i = 0; i < count; i++) {
        weir_add_value_labeled(state->stream, state->name, values[i], state->labels + 2 * next, 2);
        next = next + 1 < state->name_count ? next + 1 : 0;
    }
    state->next = next;
}

static void emit_events(struct state *state, const double *values, size_t count)
{
    weir_value *event = state->event;
    for (size_t i = 0; i < count; i += state->event_length) {
        size_t length = count - i < state->event_length ? count - i : state->event_length;
        for (size_t k = 0; k < length; k++)
            event[k].value = values[i + k];
        weir_emit(state->stream, event, length);
    }
}

/* ---- Ways ------------------------------------------------------------------------------------ */

static const double bounds[] = VALUES_BOUNDS;

static weir_metric *get_histogram(weir_stream *stream, const char *name)
{
    return weir_get_histogram(stream, name, bounds, sizeof bounds / sizeof bounds[0]);
}

static weir_stream *get_label_set(void)
{
    const weir_label labels[] = {{"route", "/orders"}, {"status", "200"}};
    return weir_get_stream_labeled("my_app", labels, 2);
}

static weir_metric *get_labeled(weir_stream *stream, const char *name)
{
    (void)stream;
    return weir_get_metric(get_label_set(), name);
}

static weir_metric *get_labeled_counter(weir_stream *stream, const char *name)
{
    (void)stream;
    return weir_get_counter(get_label_set(), name);
}

static const struct way {
    const char *name;
    void (*add)(struct state *state, const double *values, size_t count);
    weir_metric *(*get)(weir_stream *stream, const char *name);
} ways[] = {
    {"name", add_by_name, weir_get_metric},
    {"handle", add_by_handle, weir_get_metric},
    {"emit", emit_events, weir_get_metric},
    {"labeled", add_labeled, weir_get_metric},
    {"counter", add_by_handle, weir_get_counter},
    {"gauge", add_by_handle, weir_get_gauge},
    {"histogram", add_by_handle, get_histogram},
    {"labeled_handle", add_by_handle, get_labeled},
    {"labeled_counter", add_by_handle, get_labeled_counter},
};
static const struct way *way;

static void choose_way(const struct task *task)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(task->way, ways[i].name) == 0)
            way = &ways[i];
    if (!way)
        measure_fail(
            "way=%s: must be name, handle, labeled_handle, emit, labeled, counter, labeled_counter, gauge or "
            "histogram",
            task->way);
    add_values = way->add;
    if (way->add == add_by_name && task->names > 1)
        add_values = add_by_names_in_turn;
}

/* ---- The subject ----------------------------------------------------------------------------- */

static void configure(const struct task *task)
{
    /* weir detects valgrind by LD_PRELOAD and then compares names in a slower way, because memcheck reports
     * errors for the normal one. callgrind does not, and has to count the normal code. */
    unsetenv("LD_PRELOAD");
    choose_way(task);
    if (weir_configure_file(task->config) != 0)
        measure_fail("%s", weir_last_error());
}

/* Writes a number, padded to the length. */
static void make_long_name(char *name, long number, long length)
{
    char digits[24];
    long count = snprintf(digits, sizeof digits, "%ld", number);
    memset(name, 'x', (size_t)length);
    memcpy(name, digits, (size_t)(count < length ? count : length));
    name[length] = '\0';
}

static const char *make_name(const struct task *task, long number)
{
    char name[256];
    if (task->name_length < 0 || task->name_length > 255)
        measure_fail("name_length=%ld: must be at most 255", task->name_length);
    if (task->name_length)
        make_long_name(name, number, task->name_length);
    else if (task->names > 1 || task->event > 1)
        snprintf(name, sizeof name, "latency.%ld", number);
    else
        return "latency";
    char *copy = strdup(name);
    if (!copy)
        measure_fail("out of memory");
    return copy;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        measure_fail("out of memory");
    return memory;
}

static void make_labels(struct state *state)
{
    state->labels = allocate((size_t)state->name_count * 2, sizeof *state->labels);
    for (long i = 0; i < state->name_count; i++) {
        state->labels[2 * i] = (weir_label){"route", state->names[i]};
        state->labels[2 * i + 1] = (weir_label){"status", "200"};
    }
}

static void *begin(const struct task *task)
{
    struct state *state = allocate(1, sizeof *state);
    state->stream = weir_get_stream("my_app");
    state->name_count = task->names;
    state->names = allocate((size_t)task->names, sizeof *state->names);
    for (long i = 0; i < task->names; i++)
        state->names[i] = make_name(task, i);
    state->name = state->names[0];
    if (way->add == add_labeled)
        make_labels(state);
    for (long i = 0; way->add != add_labeled && i < task->names; i++)
        way->get(state->stream, state->names[i]);
    state->metric = way->get(state->stream, state->name);
    state->event_length = (size_t)task->event;
    state->event = allocate(state->event_length, sizeof *state->event);
    for (long i = 0; i < task->event; i++)
        state->event[i].name = make_name(task, i);
    return state;
}

static void add(void *state, const double *values, size_t count)
{
    add_values(state, values, count);
}

static bool is_settled(void)
{
    weir_stats stats;
    return weir_get_stats(&stats, sizeof stats) == 0 && stats.in_rings == 0;
}

static void flush(const struct task *task)
{
    (void)task;
    int error = weir_flush(-1);
    if (error)
        measure_fail("flush: %s", weir_strerror(error));
}

/* Every handler must have delivered every value. */
static long count_delivered(const struct task *task)
{
    weir_stats process;
    weir_get_stats(&process, sizeof process);
    for (long i = 1; i <= task->handlers; i++) {
        weir_handler_stats handler;
        char name[24];
        snprintf(name, sizeof name, "h%ld", i);
        if (weir_get_handler_stats(name, &handler, sizeof handler) != 0)
            measure_fail("%s", weir_last_error());
        if (handler.delivered != process.added)
            return (long)handler.delivered;
    }
    return (long)process.added;
}

int main(int argc, char **argv)
{
    static const struct subject subject = {.open = configure,
                                           .begin = begin,
                                           .add = add,
                                           .settled = is_settled,
                                           .close = flush,
                                           .count = count_delivered};
    return measure(argc, argv, &subject);
}
