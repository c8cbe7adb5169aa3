/* Label sets that have ended: their streams are given to others, and only when nobody can mean them any more.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "registry/family.h"
#include "registry/registry.h"
#include "registry/reuse.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "text/error.h"

static struct wr_registry registry;
static struct wr_error error;
static struct weir_stream *base;

static void set_up(void)
{
    cr_assert(wr_registry_init(&registry));
    base = wr_stream_get(&registry, "g", NULL, 0, &error);
}

TestSuite(reuse, .init = set_up);

/* The series of a call with one label. */
static struct weir_metric *get(const char *name, const char *user)
{
    const weir_label label = {"user", user};
    struct weir_metric *metric = wr_series_get_labeled(&registry, base, name, 0, &label, 1, &error);
    cr_assert_str_eq(metric->name, name);
    return metric;
}

static void end(struct weir_metric *metric)
{
    wr_series_end(&registry, metric);
}

static bool may_go(void *ctx, uint32_t series)
{
    (void)series;
    return *(bool *)ctx;
}

static uint32_t forgotten[16], forgotten_count;

static void forget(void *ctx, uint32_t series)
{
    (void)ctx;
    forgotten[forgotten_count++ % 16] = series;
}

/* All steps, where nothing keeps them back. Returns whether something was unlinked. */
static bool reclaim(void)
{
    if (!wr_reuse_begin(&registry))
        return false;
    bool is_any = wr_reuse_unlink(&registry, forget, NULL);
    wr_reuse_release(&registry);
    return is_any;
}

static const char *label_of(const struct weir_metric *metric)
{
    return metric->view->labels[0].value;
}

Test(reuse, a_label_set_that_has_ended_gives_its_stream_to_the_next_one)
{
    struct weir_metric *alice = get("requests", "alice");
    uint32_t id = alice->series;
    uint64_t serial = alice->view->serial, redefinitions = registry.redefinitions;
    end(alice);
    cr_assert_eq(wr_reuse_waiting(&registry), 1);
    cr_assert(reclaim());
    cr_assert_eq(forgotten_count, 1);
    cr_assert_eq(forgotten[0], id);
    cr_assert_gt(registry.redefinitions, redefinitions, "encoders forget what they know by id");
    struct weir_metric *bob = get("requests", "bob");
    cr_assert_eq(bob, alice);
    cr_assert_eq(bob->series, id);
    cr_assert_str_eq(label_of(bob), "bob");
    cr_assert_gt(bob->view->serial, serial);
    cr_assert_not(bob->is_ended);
    cr_assert_neq(get("requests", "alice"), bob, "the former label set gets another one");
    cr_assert_eq(get("requests", "bob"), bob);
}

Test(reuse, the_places_in_the_limits_are_those_of_what_lives)
{
    end(get("requests", "first"));
    uint32_t count = registry.count;
    for (int i = 0; i < 100; i++) {
        char user[16];
        snprintf(user, sizeof user, "%d", i);
        cr_assert(reclaim());
        struct weir_metric *metric = get("requests", user);
        cr_assert_eq(registry.count, count + 2, "the label set, and its series");
        cr_assert_eq(wr_family_find(&registry, base->group, "requests", 8)->labeled, 1);
        end(metric);
        cr_assert_eq(registry.count, count);
    }
    cr_assert_eq(registry.series, 1);
}

Test(reuse, a_label_set_that_returns_before_it_is_unlinked_is_taken_back)
{
    struct weir_metric *alice = get("requests", "alice");
    end(alice);
    cr_assert(wr_reuse_begin(&registry));
    cr_assert(wr_reuse_is_leaving(alice->stream));
    cr_assert_eq(get("requests", "alice"), alice);
    cr_assert_not(wr_reuse_is_leaving(alice->stream));
    cr_assert_not(wr_reuse_unlink(&registry, forget, NULL));
    wr_reuse_release(&registry);
    cr_assert_neq(get("requests", "bob"), alice);
    end(alice);
    cr_assert(reclaim(), "it may end again");
    cr_assert_eq(get("requests", "carol"), alice);
}

Test(reuse, one_that_was_taken_back_and_not_used_is_looked_at_again)
{
    const weir_label label = {"user", "alice"};
    struct weir_metric *alice = get("requests", "alice");
    end(alice);
    wr_reuse_begin(&registry);
    wr_stream_get_labeled(&registry, base, &label, 1, "requests", &error);
    cr_assert_not(wr_reuse_unlink(&registry, forget, NULL));
    cr_assert(reclaim());
}

Test(reuse, it_waits_for_all_series_of_the_label_set)
{
    struct weir_metric *requests = get("requests", "alice"), *errors = get("errors", "alice");
    cr_assert_eq(requests->stream, errors->stream);
    end(requests);
    cr_assert_not(reclaim());
    end(errors);
    cr_assert(reclaim());
    cr_assert_eq(forgotten_count, 2);
    cr_assert_eq(get("requests", "bob"), requests);
    cr_assert(errors->is_ended);
    cr_assert_eq(get("errors", "bob"), errors);
    cr_assert_str_eq(label_of(errors), "bob");
}

Test(reuse, a_name_gets_streams_that_were_made_for_it)
{
    struct weir_metric *requests = get("requests", "alice");
    end(requests);
    cr_assert(reclaim());
    cr_assert_neq(get("errors", "bob")->stream, requests->stream);
    cr_assert_eq(get("requests", "carol"), requests);
}

Test(reuse, what_is_held_is_not_reused)
{
    struct weir_metric *alice = get("requests", "alice");
    wr_reuse_hold(alice->stream);
    end(alice);
    cr_assert_not(reclaim());
    wr_reuse_let_go(alice->stream);
    cr_assert(reclaim());
}

Test(reuse, who_holds_it_after_it_was_marked_keeps_it)
{
    struct weir_metric *alice = get("requests", "alice");
    end(alice);
    cr_assert(wr_reuse_begin(&registry));
    wr_reuse_hold(alice->stream);
    cr_assert_not(wr_reuse_unlink(&registry, forget, NULL));
    wr_reuse_let_go(alice->stream);
    cr_assert(reclaim());
}

Test(reuse, a_stream_that_was_asked_for_stays)
{
    const weir_label label = {"user", "alice"};
    struct weir_stream *stream = wr_stream_get(&registry, "g", &label, 1, &error);
    struct weir_metric *alice = get("requests", "alice");
    cr_assert_eq(alice->stream, stream);
    end(alice);
    cr_assert_not(reclaim());
}

Test(reuse, so_does_one_that_is_asked_for_while_it_is_leaving)
{
    const weir_label label = {"user", "alice"};
    struct weir_metric *alice = get("requests", "alice");
    end(alice);
    cr_assert(wr_reuse_begin(&registry));
    cr_assert_eq(wr_stream_get(&registry, "g", &label, 1, &error), alice->stream);
    cr_assert_not(wr_reuse_unlink(&registry, forget, NULL));
    cr_assert_not(reclaim());
}

Test(reuse, streams_that_were_derived_go_with_it)
{
    const weir_label le = {"le", "0.5"};
    const struct wr_meaning nothing = {0};
    struct weir_metric *alice = get("size", "alice");
    const struct weir_stream *half = wr_stream_derive(&registry, alice->stream, &le, "size.bucket");
    struct weir_metric *bucket = wr_series_derive(&registry, half, "size.bucket", 0, &nothing);
    end(alice);
    cr_assert(reclaim());
    struct weir_metric *bob = get("size", "bob");
    cr_assert_eq(bob, alice);
    const struct weir_stream *again = wr_stream_derive(&registry, bob->stream, &le, "size.bucket");
    cr_assert_eq(again, half);
    cr_assert_eq(wr_series_derive(&registry, again, "size.bucket", 0, &nothing), bucket);
    cr_assert_eq(bucket->view->label_count, 2);
    cr_assert_str_eq(bucket->view->labels[0].value, "0.5");
    cr_assert_str_eq(bucket->view->labels[1].value, "bob");
    end(bob);
    cr_assert(reclaim(), "and again");
    uint32_t count = registry.series;
    wr_series_derive(&registry, wr_stream_derive(&registry, get("size", "carol")->stream, &le, "size.bucket"),
                     "size.bucket", 0, &nothing);
    cr_assert_eq(registry.series, count);
}

Test(reuse, a_derived_stream_that_the_program_uses_stays)
{
    const weir_label le = {"le", "0.5"}, both[] = {{"user", "alice"}, {"le", "0.5"}};
    struct weir_metric *alice = get("size", "alice");
    const struct weir_stream *half = wr_stream_derive(&registry, alice->stream, &le, "size.bucket");
    cr_assert_eq(wr_stream_get(&registry, "g", both, 2, &error), half);
    end(alice);
    cr_assert(reclaim());
    cr_assert_eq(wr_stream_get(&registry, "g", both, 2, &error), half);
    get("size", "bob");
    cr_assert_str_eq(half->labels[1].value, "alice");
}

Test(reuse, what_an_object_in_a_route_made_stays)
{
    struct weir_metric *alice = get("requests", "alice");
    get("renamed", "alice")->is_derived = true;
    end(alice);
    end(get("renamed", "alice"));
    cr_assert_not(reclaim());
}

Test(reuse, all_have_to_agree)
{
    bool answer = false;
    end(get("requests", "alice"));
    wr_reuse_begin(&registry);
    cr_assert_not(wr_reuse_check(&registry, may_go, &answer));
    answer = true;
    cr_assert(wr_reuse_check(&registry, may_go, &answer));
    answer = false;
    get("requests", "alice");
    cr_assert(wr_reuse_check(&registry, may_go, &answer), "one that was taken back is not asked for");
}

Test(reuse, a_gauge_begins_without_a_level)
{
    const weir_metric_spec spec = {.size = sizeof spec, .instrument = WEIR_GAUGE};
    cr_assert_eq(wr_family_declare(&registry, base, "load", &spec, &error), 0);
    struct weir_metric *alice = get("load", "alice");
    struct wr_view *view = (struct wr_view *)alice->view;
    *view->level = 0;
    end(alice);
    cr_assert(reclaim());
    cr_assert_eq(get("load", "bob"), alice);
    cr_assert_eq(*view->level, WR_LEVEL_UNKNOWN);
}

Test(reuse, foreign_label_sets_are_apart)
{
    const weir_label label = {"user", "alice"}, other = {"user", "bob"};
    const struct wr_stream_key key = {NULL, &label, 1, true, "requests"},
                               next = {NULL, &other, 1, true, "requests"};
    struct weir_stream *foreign = wr_stream_get_for(&registry, "g", &key, &error);
    struct weir_metric *metric = wr_series_get(&registry, foreign, "requests", 0, &error);
    end(metric);
    cr_assert(reclaim());
    cr_assert_neq(get("requests", "bob"), metric);
    cr_assert_eq(wr_stream_get_for(&registry, "g", &next, &error), foreign);
    cr_assert(metric->view->foreign);
}

Test(reuse, a_child_begins_anew_with_what_was_leaving)
{
    struct weir_metric *alice = get("requests", "alice");
    end(alice);
    wr_reuse_begin(&registry);
    wr_reuse_begin_reading(&registry);
    wr_registry_after_fork(&registry);
    cr_assert_not(wr_reuse_has_readers(&registry));
    cr_assert_not(wr_reuse_is_leaving(alice->stream));
    cr_assert(reclaim());
}

static struct weir_stream *ask_for(const char *user)
{
    const weir_label label = {"user", user};
    return wr_stream_get(&registry, "g", &label, 1, &error);
}

static void remove_stream(struct weir_stream *stream)
{
    size_t count;
    uint32_t *series = wr_reuse_list_series(&registry, stream, &count);
    cr_assert_not_null(series);
    for (size_t i = 0; i < count; i++)
        end(wr_registry_series(&registry, series[i]));
    wr_reuse_unpin(&registry, stream);
    free(series);
}

Test(reuse, a_stream_that_is_removed_goes_to_the_next_one_that_is_asked_for)
{
    struct weir_stream *alice = ask_for("alice");
    struct weir_metric *requests = wr_series_get(&registry, alice, "requests", 0, &error);
    struct weir_metric *errors = wr_series_get(&registry, alice, "errors", 0, &error);
    remove_stream(alice);
    cr_assert(requests->is_ended && errors->is_ended);
    cr_assert(reclaim());
    cr_assert_neq(get("requests", "carol")->stream, alice, "those for a name have their own");
    cr_assert_eq(ask_for("bob"), alice);
    cr_assert_eq(wr_series_get(&registry, alice, "errors", 0, &error), errors);
    cr_assert_str_eq(label_of(errors), "bob");
    cr_assert_not(reclaim(), "it is asked for again");
}

Test(reuse, one_without_series_can_be_removed)
{
    struct weir_stream *alice = ask_for("alice");
    uint32_t count = registry.count;
    remove_stream(alice);
    cr_assert(reclaim());
    cr_assert_eq(ask_for("bob"), alice);
    cr_assert_leq(registry.count, count);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static struct weir_metric *get_any(const char *name, int number)
{
    char user[16];
    snprintf(user, sizeof user, "%d", number);
    const weir_label label = {"user", user};
    return wr_series_get_labeled(&registry, base, name, 0, &label, 1, &error);
}

Test(reuse, the_limit_of_label_sets_holds_for_streams_that_are_reused)
{
    enum { MOST = 10 };
    struct weir_metric *metrics[MOST];
    for (int i = 0; i < MOST; i++) {
        metrics[i] = get_any("a", i);
        get_any("b", i);
    }
    struct wr_family *a = wr_family_find(&registry, base->group, "a", 1);
    struct wr_family *b = wr_family_find(&registry, base->group, "b", 1);
    for (int i = 0; i < MOST; i++) {
        end(get_any("b", i));
        end(metrics[i]);
    }
    cr_assert(reclaim());
    a->max_labeled = b->max_labeled = 3;
    for (int i = 0; i < 2 * MOST; i++) {
        struct weir_metric *metric = get_any("a", 100 + i);
        cr_assert_eq(metric->stream->overflow, i >= 3, "%d", i);
        metric = get_any("b", 100 + i);
        cr_assert_eq(metric->stream->overflow, i >= 3, "%d", i);
    }
    cr_assert_eq(a->labeled, 3);
    cr_assert_eq(b->labeled, 3);
}

Test(reuse, so_does_that_of_the_process)
{
    enum { MOST = 10 };
    struct weir_metric *metrics[MOST];
    for (int i = 0; i < MOST; i++)
        metrics[i] = get_any("a", i);
    uint32_t count = registry.count;
    for (int i = 0; i < MOST; i++)
        end(metrics[i]);
    cr_assert(reclaim());
    registry.max = count - 2 * MOST + 6; /* three label sets */
    for (int i = 0; i < 2 * MOST; i++)
        get_any("a", 100 + i);
    cr_assert_leq(registry.count, registry.max);
    cr_assert_not(wr_registry_series(&registry, metrics[0]->series)->stream->overflow);
}

/* ---- Streams that are derived, and used by themselves ---------------------------------------- */

Test(reuse, a_derived_stream_that_has_values_of_its_own_ends_after_its_base)
{
    const weir_label le = {"le", "0.5"}, both[] = {{"user", "alice"}, {"le", "0.5"}};
    struct weir_metric *alice = get("size", "alice");
    const struct weir_stream *half = wr_stream_derive(&registry, alice->stream, &le, "size.bucket");
    struct weir_metric *own = wr_series_get_labeled(&registry, base, "size.bucket", 0, both, 2, &error);
    cr_assert_eq(own->stream, half);
    end(own);
    cr_assert_not(reclaim(), "the worker may be using it for the base");
    wr_series_begin(&registry, own);
    end(alice);
    cr_assert(reclaim());
    cr_assert_eq(wr_series_get_labeled(&registry, base, "size.bucket", 0, both, 2, &error), own);
    end(own);
    cr_assert(reclaim());
}

Test(reuse, a_stream_that_is_derived_from_after_it_was_made_stays)
{
    const weir_label le = {"le", "0.5"}, both[] = {{"user", "alice"}, {"le", "0.5"}};
    struct weir_metric *own = wr_series_get_labeled(&registry, base, "size.bucket", 0, both, 2, &error);
    struct weir_metric *alice = get("size", "alice");
    end(own);
    cr_assert(wr_reuse_begin(&registry));
    cr_assert_eq(wr_stream_derive(&registry, alice->stream, &le, "size.bucket"), own->stream);
    cr_assert_not(wr_reuse_unlink(&registry, forget, NULL));
}

/* ---- Places ---------------------------------------------------------------------------------- */

Test(reuse, a_label_set_that_finds_no_place_for_its_series_takes_none)
{
    get_any("a", 0);
    registry.max = registry.count + 1; /* the label set would fit, and not its series */
    for (int i = 1; i < 10; i++)
        get_any("a", i);
    cr_assert_leq(registry.count, registry.max);
    registry.max = 1000;
    uint32_t count = registry.count;
    struct wr_family *a = wr_family_find(&registry, base->group, "a", 1);
    a->max_labeled = 1;
    for (int i = 10; i < 20; i++)
        get_any("a", i);
    cr_assert_eq(registry.count, count);
    end(get_any("a", 0));
    cr_assert(reclaim());
    cr_assert_eq(registry.count, count - 2);
    cr_assert_null(registry.reuse.ended);
}

Test(reuse, a_name_that_a_label_set_gets_later_counts_with_it)
{
    struct weir_metric *a = get_any("a", 0);
    uint32_t count = registry.count;
    end(a);
    cr_assert_eq(registry.count, count - 2);
    const weir_label label = {"user", "0"};
    struct weir_stream *stream = wr_stream_find_labeled(&registry, base, &label, 1);
    wr_series_get(&registry, stream, "b", 0, &error);
    cr_assert_eq(registry.count, count, "the label set, and its new series");
}
