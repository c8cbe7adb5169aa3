/* The parameters of the query API: the first line is what is allowed, each other one a name and a value,
 * separated by '='. What is taken is within its limits, and what is refused has a message that can be sent. */

#include "../../plugins/source_collector/query.h"
#include "fuzz.h"
#include "text/utf8.h"

#define NOW_NS (INT64_C(1700000000) * 1000000000)

enum { LINES = 40, ALLOWED_MOST = 100 };

struct parameters {
    char *allowed, *names[LINES], *values[LINES];
    size_t count;
};

static void read_lines(struct parameters *parameters, const uint8_t *at, const uint8_t *end)
{
    at = fuzz_take_line(at, end, &parameters->allowed);
    size_t length = strlen(parameters->allowed);
    if (length > ALLOWED_MOST || !wr_utf8_is_valid(parameters->allowed, length, NULL)) /* it is the API's own */
        parameters->allowed[0] = '\0';
    for (; at < end && parameters->count < LINES; parameters->count++) {
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *line_end = stop ? stop : end;
        const uint8_t *value = fuzz_take_text(at, line_end, '=', &parameters->names[parameters->count]);
        fuzz_take_text(value, line_end, '\n', &parameters->values[parameters->count]);
        at = stop ? stop + 1 : end;
    }
}

static void check_problem(struct query *query, bool is_good)
{
    FUZZ_CHECK(is_good == !*query->problem);
    FUZZ_CHECK(memchr(query->problem, '\0', sizeof query->problem));
    FUZZ_CHECK(wr_utf8_is_valid(query->problem, strlen(query->problem), NULL));
    query->problem[0] = '\0';
}

static void check_values(struct query *query, const char *name)
{
    int64_t time_ns = 0, skipped = 0, number = 5, ids[QUERY_IDS];
    size_t count = 0;
    bool flag = false, is_good = query_time(query, name, &time_ns);
    FUZZ_CHECK(!is_good || (time_ns >= 0 && time_ns <= INT64_MAX / 2));
    check_problem(query, is_good);
    is_good = query_place(query, name, &time_ns, &skipped);
    FUZZ_CHECK(!is_good || (time_ns >= 0 && time_ns <= INT64_MAX / 2 && skipped >= 0));
    check_problem(query, is_good);
    is_good = query_integer(query, name, -7, 1000, &number);
    FUZZ_CHECK(!is_good || (number >= -7 && number <= 1000));
    check_problem(query, is_good);
    check_problem(query, query_bool(query, name, &flag));
    is_good = query_ids(query, name, ids, &count);
    for (size_t i = 0; is_good && i < count; i++) {
        FUZZ_CHECK(ids[i] > 0);
        for (size_t j = 0; j < i; j++)
            FUZZ_CHECK(ids[i] != ids[j]);
    }
    check_problem(query, is_good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parameters parameters = {0};
    read_lines(&parameters, data, data + size);
    struct query query = {.allowed = parameters.allowed, .now_ns = NOW_NS};
    for (size_t i = 0; i < parameters.count; i++) {
        const char *name = parameters.names[i], *value = parameters.values[i];
        bool is_good = query_add(&query, name, strlen(name), value, strlen(value));
        FUZZ_CHECK(!is_good || query_get(&query, name));
        check_problem(&query, is_good);
    }
    for (size_t i = 0; i < query.count; i++)
        check_values(&query, query.all[i].name);
    check_values(&query, "nothing");
    for (size_t i = 0; i < parameters.count; i++) {
        free(parameters.names[i]);
        free(parameters.values[i]);
    }
    free(parameters.allowed);
    return 0;
}
