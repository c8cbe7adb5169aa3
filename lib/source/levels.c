#include "source/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "registry/reuse.h"
#include "summary/neumaier.h"
#include "text/array.h"
#include "text/hash.h"

enum { MOST_AWAY = 1000, FIRST_ROOM = 64 };

/* What a sender has sent of a series. */
struct wr_levels_share {
    struct wr_levels_share *next;           /* of its bucket */
    struct wr_levels_share *further;        /* of its sender */
    struct wr_levels_share *before, *after; /* of those of the series that count */
    struct wr_levels_sender *sender;
    struct wr_levels_series *series;
    double level;
};

struct wr_levels_series {
    struct wr_levels_series *next_unpublished;
    struct weir_metric *metric; /* whose stream is held, so that its id stays */
    struct wr_levels_share *first;
    size_t shares; /* also those that do not count now */
    enum wr_merge merge;
    bool is_unpublished;
    double level;             /* of what counts; of nothing: 0 for a sum, and the last one for a maximum */
    double sum, compensation; /* of WR_MERGE_SUM: the level is both together */
};

struct wr_levels_sender {
    struct wr_levels_sender *before, *after; /* while it is away */
    struct wr_levels_share *first;
    char id[];
};

static enum wr_merge merge_of(const struct weir_metric *metric)
{
    return ((const struct wr_view *)atomic_load_explicit(&metric->view, memory_order_acquire))->merge;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static size_t share_place(const struct wr_levels_sender *sender, const struct weir_metric *metric, size_t room)
{
    return (size_t)wr_hash_mix((uintptr_t)metric ^ UINT64_C(0xe7037ed1a0b428db),
                               (uintptr_t)sender ^ UINT64_C(0xa0761d6478bd642f)) &
           (room - 1);
}

static bool grow_shares(struct wr_levels *levels)
{
    if (levels->share_count < levels->share_room)
        return true;
    size_t room = levels->share_room ? 2 * levels->share_room : FIRST_ROOM;
    struct wr_levels_share **grown = calloc(room, sizeof *grown), *next;
    if (!grown)
        return false;
    for (size_t i = 0; i < levels->share_room; i++)
        for (struct wr_levels_share *share = levels->shares[i]; share; share = next) {
            struct wr_levels_share **at = &grown[share_place(share->sender, share->series->metric, room)];
            next = share->next;
            share->next = *at;
            *at = share;
        }
    free(levels->shares);
    levels->shares = grown;
    levels->share_room = room;
    return true;
}

/* ---- The level of a series ------------------------------------------------------------------- */

/* Compensated: else what large levels have taken from small ones would be missing when the large ones are gone.
 */
static void add_up(struct wr_levels_series *series, double level)
{
    wr_neumaier_add(&series->sum, &series->compensation, level);
    series->level = series->sum + series->compensation;
}

static void work_out(struct wr_levels_series *series)
{
    const struct wr_levels_share *share = series->first;
    series->sum = series->compensation = 0;
    if (series->merge == WR_MERGE_SUM)
        series->level = 0;
    else if (share)
        series->level = share->level;
    for (; share; share = share->after)
        if (series->merge == WR_MERGE_SUM)
            add_up(series, share->level);
        else if (share->level > series->level)
            series->level = share->level;
}

/* After a share has changed, without looking at the others if that is not needed. */
static void follow(struct wr_levels_series *series, double before, double level)
{
    if (series->merge == WR_MERGE_SUM) {
        add_up(series, -before);
        add_up(series, level);
    } else if (level >= series->level) {
        series->level = level;
    } else if (before == series->level) {
        work_out(series);
    }
    if (!isfinite(series->level))
        work_out(series);
}

static void note_unpublished(struct wr_levels *levels, struct wr_levels_series *series)
{
    if (series->is_unpublished)
        return;
    series->is_unpublished = true;
    series->next_unpublished = levels->unpublished;
    levels->unpublished = series;
}

/* The configuration may have changed it. Returns whether the series merges. */
static bool follow_rule(struct wr_levels_series *series)
{
    enum wr_merge merge = merge_of(series->metric);
    if (merge != WR_MERGE_LAST && merge != series->merge) {
        series->merge = merge;
        work_out(series);
    }
    return merge != WR_MERGE_LAST;
}

/* The share counts from now on, or does not. */
static void set_counting(struct wr_levels_share *share, bool counts)
{
    struct wr_levels_series *series = share->series;
    if (counts) {
        share->before = NULL;
        share->after = series->first;
        if (series->first)
            series->first->before = share;
        series->first = share;
    } else {
        *(share->before ? &share->before->after : &series->first) = share->after;
        if (share->after)
            share->after->before = share->before;
    }
    follow_rule(series);
    work_out(series);
}

/* The same of all shares of a sender. */
static void set_all_counting(struct wr_levels *levels, const struct wr_levels_sender *sender, bool counts)
{
    for (struct wr_levels_share *share = sender->first; share; share = share->further) {
        set_counting(share, counts);
        if (follow_rule(share->series))
            note_unpublished(levels, share->series);
    }
}

/* ---- Series and shares ----------------------------------------------------------------------- */

/* Returns NULL if out of memory. */
static struct wr_levels_series *get_series(struct wr_levels *levels, struct weir_metric *metric)
{
    if (!WR_ARRAY_HAS_ROOM(&levels->series, &levels->series_room, metric->series + 1))
        return NULL;
    struct wr_levels_series *series = levels->series[metric->series];
    if (series || !(series = malloc(sizeof *series)))
        return series;
    *series = (struct wr_levels_series){.metric = metric, .merge = merge_of(metric)};
    levels->series[metric->series] = series;
    wr_reuse_hold(metric->stream); /* the caller's source holds it, too */
    return series;
}

static void free_unused_series(struct wr_levels *levels, struct wr_levels_series *series)
{
    if (series->shares || series->is_unpublished)
        return;
    levels->series[series->metric->series] = NULL;
    wr_reuse_let_go(series->metric->stream);
    free(series);
}

static struct wr_levels_share *find_share(const struct wr_levels *levels, const struct wr_levels_sender *sender,
                                          const struct weir_metric *metric)
{
    struct wr_levels_share *share =
        levels->share_room ? levels->shares[share_place(sender, metric, levels->share_room)] : NULL;
    while (share && (share->sender != sender || share->series->metric != metric))
        share = share->next;
    return share;
}

/* A sender's first level of a series. Returns NULL if out of memory. */
static struct wr_levels_share *add_share(struct wr_levels *levels, struct wr_levels_sender *sender,
                                         struct weir_metric *metric, double level)
{
    struct wr_levels_share *share = grow_shares(levels) ? malloc(sizeof *share) : NULL;
    struct wr_levels_series *series = share ? get_series(levels, metric) : NULL;
    if (!series) {
        free(share);
        return NULL;
    }
    struct wr_levels_share **at = &levels->shares[share_place(sender, metric, levels->share_room)];
    *share = (struct wr_levels_share){
        .next = *at, .further = sender->first, .sender = sender, .series = series, .level = level};
    *at = sender->first = share;
    levels->share_count++;
    series->shares++;
    set_counting(share, true);
    return share;
}

static void free_share(struct wr_levels *levels, struct wr_levels_share *share)
{
    struct wr_levels_series *series = share->series;
    struct wr_levels_share **at =
        &levels->shares[share_place(share->sender, series->metric, levels->share_room)];
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    levels->share_count--;
    series->shares--;
    free(share);
    free_unused_series(levels, series);
}

/* ---- Senders --------------------------------------------------------------------------------- */

static void take_out(struct wr_levels *levels, struct wr_levels_sender *sender)
{
    *(sender->before ? &sender->before->after : &levels->first_away) = sender->after;
    *(sender->after ? &sender->after->before : &levels->last_away) = sender->before;
    levels->away_count--;
}

static void free_sender(struct wr_levels *levels, struct wr_levels_sender *sender)
{
    for (struct wr_levels_share *share = sender->first, *further; share; share = further) {
        further = share->further;
        free_share(levels, share);
    }
    free(sender);
}

static struct wr_levels_sender *make_sender(const char *id)
{
    size_t length = strlen(id) + 1;
    struct wr_levels_sender *sender = calloc(1, sizeof *sender + length);
    if (sender)
        memcpy(sender->id, id, length);
    return sender;
}

struct wr_levels_sender *wr_levels_enter(struct wr_levels *levels, const char *id)
{
    struct wr_levels_sender *sender = levels->first_away;
    while (sender && strcmp(sender->id, id) != 0)
        sender = sender->after;
    if (!sender)
        return make_sender(id);
    take_out(levels, sender);
    set_all_counting(levels, sender, true);
    return sender;
}

void wr_levels_leave(struct wr_levels *levels, struct wr_levels_sender *sender)
{
    if (!sender->first) {
        free(sender);
        return;
    }
    set_all_counting(levels, sender, false);
    sender->before = NULL;
    sender->after = levels->first_away;
    *(sender->after ? &sender->after->before : &levels->last_away) = sender;
    levels->first_away = sender;
    if (++levels->away_count <= MOST_AWAY)
        return;
    sender = levels->last_away;
    take_out(levels, sender);
    free_sender(levels, sender);
}

double wr_levels_merge(struct wr_levels *levels, struct wr_levels_sender *sender, struct weir_metric *metric,
                       double level)
{
    if (!isfinite(level))
        return level;
    bool merges = merge_of(metric) != WR_MERGE_LAST;
    struct wr_levels_share *share = find_share(levels, sender, metric);
    if (!share) {
        share = merges ? add_share(levels, sender, metric, level) : NULL;
        return share ? share->series->level : level;
    }
    follow_rule(share->series);
    double before = share->level;
    share->level = level;
    follow(share->series, before, level); /* also for when the series merges again */
    return merges ? share->series->level : level;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

void wr_levels_published(struct wr_levels *levels)
{
    struct wr_levels_series *series = levels->unpublished;
    levels->unpublished = series->next_unpublished;
    series->is_unpublished = false;
    free_unused_series(levels, series);
}

struct weir_metric *wr_levels_next(struct wr_levels *levels, double *level)
{
    /* What has waited for room may be a counter by now, to which a level would be an increment. */
    while (levels->unpublished && !follow_rule(levels->unpublished))
        wr_levels_published(levels);
    if (!levels->unpublished)
        return NULL;
    *level = levels->unpublished->level;
    return levels->unpublished->metric;
}
