#include "config/problems.h"

#include <string.h>

#include "text/error.h"

void wr_problems_fini(struct wr_problems *problems)
{
    wr_region_fini(&problems->keep);
    *problems = (struct wr_problems){0};
}

/* What all handlers inherit is checked with each of them. */
static bool has(const struct wr_problems *problems, const struct wr_error *error)
{
    for (size_t i = 0; i < problems->count; i++)
        if (problems->items[i].place == error->place && strcmp(problems->items[i].text, error->text) == 0)
            return true;
    return false;
}

/* Behind those of the same place. false: full, or out of memory. */
static bool add(struct wr_problems *problems, const struct wr_error *error)
{
    size_t at = problems->count;
    const char *text =
        at < WR_PROBLEMS_MAX ? wr_region_text(&problems->keep, error->text, strlen(error->text)) : NULL;
    if (!text)
        return false;
    for (; at > 0 && problems->items[at - 1].place > error->place; at--)
        problems->items[at] = problems->items[at - 1];
    problems->items[at] = (struct wr_problem){error->place, text};
    problems->count++;
    return true;
}

bool wr_problems_go_on(struct wr_problems *problems, bool done, struct wr_error *error)
{
    if (done || !problems)
        return done;
    if (error->code && (error->code == WEIR_ERR_MEMORY || (!has(problems, error) && !add(problems, error))))
        return false;
    error->code = WEIR_OK;
    return true;
}

bool wr_problems_any(const struct wr_problems *problems)
{
    return problems && problems->count;
}
