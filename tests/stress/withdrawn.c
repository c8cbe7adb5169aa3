/* withdrawn: a handler is replaced or added again, and is removed while the old instance is being destroyed:
 * the new instance delivers the queued values. */
#include <semaphore.h>
#include <string.h>

#include "counting.h"

enum { VALUES = 100 };

struct options {
    int64_t number;
};

static const weir_option table[] = {
    {"number", WEIR_OPTION_INT, 0, "0", "0..9", "makes handlers differ", offsetof(struct options, number)},
    {0}};

static sem_t in_destroy, may_continue;
static _Atomic int blocked_number = 0; /* number of the instance whose destroy blocks */

struct handler {
    int number;
};

/* The first instance rejects all values with RETRY. */
static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    if (((struct handler *)self)->number > 0) {
        counting_emit(self, batch, outcome);
        return;
    }
    outcome->code = WEIR_OUTCOME_RETRY;
    outcome->done = 0;
}

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    struct handler *handler = malloc(sizeof *handler);
    handler->number = (int)((const struct options *)options)->number;
    return handler;
}

static void destroy(void *self)
{
    if (((struct handler *)self)->number == blocked_number) {
        sem_post(&in_destroy);
        sem_wait(&may_continue);
    }
    free(self);
}

static void configure(const char *text)
{
    PLAIN_CHECK(weir_configure_text(text, strlen(text)) == 0);
}

static const char nothing[] = "{\"settings\":{\"shutdown_timeout\":\"1m\"}}";

static void route_to(int number)
{
    char text[200];
    snprintf(text, sizeof text,
             "{\"handlers\":{\"one\":{\"type\":\"replaced\",\"number\":%d}},\"groups\":{\"*\":\"one\"}}",
             number);
    configure(text);
}

static void add_values(void)
{
    static int next;
    for (int i = 0; i < VALUES; i++)
        PLAIN_CHECK(weir_add_int(weir_get_stream("withdrawn"), "value", next++) == 0);
}

static void expect_delivered(uint64_t values)
{
    weir_handler_stats stats;
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_handler_stats("one", &stats, sizeof stats) == 0);
    PLAIN_CHECK(counting_count == values && stats.delivered == values && stats.offered == values);
}

int main(void)
{
    static weir_handler_type type;
    plain_hang_no_longer_than(100);
    setenv("WEIR_LOG", "off", 1);
    sem_init(&in_destroy, 0, 0);
    sem_init(&may_continue, 0, 0);
    type = counting_type;
    type.name = "replaced";
    type.options = table;
    type.option_row_size = sizeof table[0];
    type.options_size = sizeof(struct options);
    type.create = create;
    type.emit = emit;
    type.destroy = destroy;
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    route_to(0);
    add_values();
    route_to(1);
    sem_wait(&in_destroy);
    configure(nothing);
    sem_post(&may_continue);
    expect_delivered(VALUES);
    blocked_number = 3;
    route_to(3);
    add_values();
    expect_delivered(2 * VALUES);
    configure(nothing);
    sem_wait(&in_destroy);
    route_to(2);
    add_values();
    configure(nothing);
    sem_post(&may_continue);
    expect_delivered(3 * VALUES);
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    return 0;
}
