#include "tending.h"

#include <stdio.h>
#include <string.h>

#include "../output.h"
#include "attic.h"

enum { AGAIN_MS = 60000, SOON_MS = 1000 };

void wr_tending_init(struct tending *tending, const weir_host *host, const struct settings *settings)
{
    *tending = (struct tending){.host = host, .settings = settings, .due_ms = INT64_MAX};
    wr_press_init(&tending->press, host);
}

static void say_once(struct tending *tending, const char *what, const char *path, int problem)
{
    tending->failed = true;
    if (tending->said)
        return;
    tending->said = true;
    tending->host->log(tending->host, 2, "%s cannot be %s (%s); tried again every minute", path, what,
                       system_words(problem));
}

static void start_round(struct tending *tending)
{
    tending->after_us = INT64_MIN;
    tending->after[0] = '\0';
}

void wr_tending_begin(struct tending *tending)
{
    if (!tending->settings->tends)
        return;
    tending->untrimmed = tending->settings->options->keep > 0;
    start_round(tending);
    /* what is under way keeps its pace, however fast new ones are made */
    if (tending->due_ms - SOON_MS > output_now_ms())
        tending->due_ms = output_now_ms();
}

static void trim(struct tending *tending, struct attic *attic)
{
    const char *stuck = "";
    int problem = wr_attic_trim(attic, (size_t)tending->settings->options->keep, &stuck);
    tending->untrimmed = false;
    if (problem)
        say_once(tending, "deleted", stuck, problem);
}

/* ---- Compressing ----------------------------------------------------------------------------- */

/* Round by round: the oldest first, and each but once, so that one that cannot be compressed is in nobody's
 * way. */
static const struct attic_file *find_next(const struct tending *tending, const struct attic *attic)
{
    for (size_t i = 0; i < attic->count; i++) {
        const struct attic_file *file = &attic->files[i];
        bool later = file->age_us != tending->after_us ? file->age_us > tending->after_us
                                                       : strcmp(file->path, tending->after) > 0;
        if ((file->plain || file->half) && later)
            return file;
    }
    return NULL;
}

static void end_round(struct tending *tending)
{
    tending->due_ms = tending->failed ? output_now_ms() + AGAIN_MS : INT64_MAX;
    tending->untrimmed = tending->failed && tending->settings->options->keep;
    tending->said = tending->said && tending->failed;
    tending->failed = false;
    start_round(tending);
}

static void judge(struct tending *tending, enum press_state state)
{
    if (state == PRESS_FAILED)
        say_once(tending, "compressed", tending->press.path, tending->press.problem);
}

static void look_around(struct tending *tending, const char *current)
{
    struct attic attic;
    const struct attic_file *next = NULL;
    if (wr_attic_list(&attic, tending->settings, current)) {
        if (tending->untrimmed)
            trim(tending, &attic);
        if (tending->settings->options->compress == SETTINGS_GZIP)
            next = find_next(tending, &attic);
    }
    if (next) {
        tending->after_us = next->age_us;
        snprintf(tending->after, sizeof tending->after, "%s", next->path);
        judge(tending, wr_press_begin(&tending->press, next));
    } else {
        end_round(tending);
    }
    wr_attic_fini(&attic);
}

void wr_tending_go_on(struct tending *tending, const char *current)
{
    int64_t began_ms = output_now_ms();
    if (began_ms < tending->due_ms)
        return;
    if (tending->host->stopping(tending->host)) { /* the time that is left belongs to the values */
        tending->due_ms = INT64_MAX;
        return;
    }
    tending->due_ms = began_ms;
    if (wr_press_is_busy(&tending->press))
        judge(tending, wr_press_go_on(&tending->press));
    else
        look_around(tending, current);
    if (tending->due_ms > began_ms)
        return;
    /* as long again for the values that came meanwhile */
    int64_t now_ms = output_now_ms();
    tending->due_ms = now_ms + (now_ms - began_ms) + 1;
}

void wr_tending_stop(struct tending *tending, const char *current)
{
    struct attic attic;
    wr_press_stop(&tending->press);
    if (tending->untrimmed && wr_attic_list(&attic, tending->settings, current)) {
        trim(tending, &attic);
        wr_attic_fini(&attic);
    }
    tending->due_ms = INT64_MAX;
}

void wr_tending_abandon(const struct tending *tending)
{
    wr_press_abandon(&tending->press);
}
