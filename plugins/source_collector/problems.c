#include "problems.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "text/array.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static uint64_t count_of(struct json_object *object, const char *key)
{
    return json_object_get_uint64(json_object_object_get(object, key));
}

static bool is_set(struct json_object *object, const char *key)
{
    return json_object_get_boolean(json_object_object_get(object, key));
}

static uint64_t sum_of(struct json_object *counts)
{
    uint64_t sum = 0;
    json_object_object_foreach(counts, key, count)
    {
        (void)key;
        sum += json_object_get_uint64(count);
    }
    return sum;
}

/* "full 3, rejected 1" */
static void list_reasons(char *out, size_t room, struct json_object *counts)
{
    size_t length = 0;
    *out = '\0';
    json_object_object_foreach(counts, key, count)
    {
        if (length < room)
            length += (size_t)snprintf(out + length, room - length, "%s%s %" PRIu64, length ? ", " : "", key,
                                       json_object_get_uint64(count));
    }
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- Adding ---------------------------------------------------------------------------------- */

void problems_add(struct problems *problems, enum problem_rank rank, uint64_t values, const char *where,
                  const char *format, ...)
{
    struct problem *items =
        wr_array_reserve(problems->items, &problems->room, problems->count + 1, sizeof *items);
    problems->failed |= !items;
    if (!items)
        return;
    problems->items = items;
    struct problem *problem = &items[problems->count++];
    problem->rank = rank;
    problem->values = values;
    snprintf(problem->where, sizeof problem->where, "%s", where);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
}

/* Those of one element were added one after the other, the worst first. */
static const char *worst_since(const struct problems *problems, size_t count)
{
    return problems->count > count ? problems->items[count].text : "";
}

static void set_where(char out[300], const char *kind, const char *name)
{
    snprintf(out, 300, "%s %s", kind, name);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void add_failure(struct problems *problems, struct json_object *handler, const char *where)
{
    const char *reason = json_text_of(handler, "last_error");
    if (is_set(handler, "ended"))
        problems_add(problems, PROBLEM_ENDED, 0, where, "it has ended (%s) and drops all values: %.250s",
                     json_text_of(handler, "ended_why"), reason);
    else if (is_set(handler, "failing"))
        problems_add(problems, PROBLEM_FAILS, 0, where, "it has failed for %.0f s: %.250s",
                     json_object_get_double(json_object_object_get(handler, "failing_s")), reason);
    else if (is_set(handler, "stalled"))
        problems_add(problems, PROBLEM_FAILS, 0, where,
                     "it is stalled: its queue is full, and what does not fit is dropped");
}

const char *problems_of_handler(struct problems *problems, struct json_object *handler)
{
    char where[300], reasons[200];
    size_t before = problems->count;
    struct json_object *dropped = json_object_object_get(handler, "dropped");
    uint64_t lost = sum_of(dropped);
    set_where(where, "handler", json_text_of(handler, "name"));
    add_failure(problems, handler, where);
    if (lost) {
        list_reasons(reasons, sizeof reasons, dropped);
        problems_add(problems, PROBLEM_LOST, lost, where, "%" PRIu64 " value%s dropped (%s)%s%.150s", lost,
                     lost == 1 ? " was" : "s were", reasons,
                     *json_text_of(handler, "last_error") ? "; last error: " : "",
                     json_text_of(handler, "last_error"));
    }
    if (is_set(handler, "full") && !is_set(handler, "stalled"))
        problems_add(problems, PROBLEM_HINT, 0, where, "its queue is full: who adds values waits");
    return worst_since(problems, before);
}

/* ---- Sources --------------------------------------------------------------------------------- */

const char *problems_of_source(struct problems *problems, struct json_object *source)
{
    char where[300];
    size_t before = problems->count;
    const char *state = json_text_of(source, "state"), *reason = json_text_of(source, "last_error");
    uint64_t lost = count_of(source, "lost"), refused = count_of(source, "refused"),
             bad_lines = count_of(source, "bad_lines");
    set_where(where, "source", json_text_of(source, "name"));
    if (strcmp(state, "failed") == 0)
        problems_add(problems, PROBLEM_ENDED, 0, where, "it has failed and does not try again: %.250s", reason);
    else if (strcmp(state, "waiting") == 0)
        problems_add(problems, PROBLEM_FAILS, 0, where, "it does not run, and tries again: %.250s", reason);
    if (lost)
        problems_add(problems, PROBLEM_LOST, lost, where,
                     "%" PRIu64 " message%s lost before it could read them", lost,
                     lost == 1 ? " was" : "s were");
    if (refused)
        problems_add(problems, PROBLEM_REFUSED, refused, where,
                     "%" PRIu64 " value%s refused: names, labels or limits do not allow them; see the log",
                     refused, refused == 1 ? " was" : "s were");
    if (bad_lines)
        problems_add(problems, PROBLEM_REFUSED, bad_lines, where,
                     "%" PRIu64 " line%s not understood; see the log", bad_lines,
                     bad_lines == 1 ? " was" : "s were");
    return worst_since(problems, before);
}

const char *problems_of_sender(struct problems *problems, struct json_object *sender)
{
    char where[300];
    size_t before = problems->count;
    uint64_t lost = count_of(sender, "lost"), missing = count_of(sender, "missing"),
             waiting = count_of(sender, "waiting");
    bool is_gone = strcmp(json_text_of(sender, "state"), "vanished") == 0;
    set_where(where, "sender", json_text_of(sender, "name"));
    if (lost)
        problems_add(problems, PROBLEM_LOST, lost, where, "%" PRIu64 " value%s lost there%s", lost,
                     lost == 1 ? " was" : "s were", is_gone ? ", at least" : "");
    if (missing)
        problems_add(problems, PROBLEM_LOST, missing, where, "%" PRIu64 " value%s sent and not received",
                     missing, missing == 1 ? " was" : "s were");
    if (is_gone)
        problems_add(problems, PROBLEM_HINT, waiting, where,
                     "it vanished without taking leave; at least %" PRIu64 " value%s waited there", waiting,
                     plural(waiting));
    return worst_since(problems, before);
}

/* ---- The process ----------------------------------------------------------------------------- */

void problems_of_process(struct problems *problems, struct json_object *process)
{
    char reasons[200];
    struct json_object *counts = json_object_object_get(process, "refused");
    uint64_t refused = sum_of(counts), unrouted = count_of(process, "unrouted");
    if (refused) {
        list_reasons(reasons, sizeof reasons, counts);
        problems_add(problems, PROBLEM_REFUSED, refused, "process", "%" PRIu64 " value%s refused (%s)", refused,
                     refused == 1 ? " was" : "s were", reasons);
    }
    if (unrouted)
        problems_add(problems, PROBLEM_REFUSED, unrouted, "process",
                     "%" PRIu64 " value%s of groups without a handler: \"groups\" routes them nowhere",
                     unrouted, plural(unrouted));
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct problem *one = a, *other = b;
    if (one->rank != other->rank)
        return one->rank < other->rank ? 1 : -1;
    if (one->values != other->values)
        return one->values < other->values ? 1 : -1;
    return strcmp(one->where, other->where);
}

static struct json_object *make_object(const struct problem *problem)
{
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, "severity",
                           json_object_new_string(problem->rank >= PROBLEM_LOST ? "error" : "warning"));
    json_object_object_add(object, "where", json_object_new_string(problem->where));
    json_object_object_add(object, "text", json_object_new_string(problem->text));
    return object;
}

struct json_object *problems_take(struct problems *problems)
{
    struct json_object *array = json_object_new_array();
    if (problems->count)
        qsort(problems->items, problems->count, sizeof *problems->items, compare);
    for (size_t i = 0; array && i < problems->count; i++)
        json_object_array_add(array, make_object(&problems->items[i]));
    free(problems->items);
    if (problems->failed) {
        json_object_put(array);
        array = NULL;
    }
    *problems = (struct problems){0};
    return array;
}
