#include "text/suggest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Optimal string alignment distance: insertions, deletions, substitutions and transpositions of neighbours. The
 * case of ASCII letters is ignored. */
static size_t find_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > WR_SUGGEST_LONGEST || m > WR_SUGGEST_LONGEST)
        return SIZE_MAX;
    size_t rows[3][WR_SUGGEST_LONGEST + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        above[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t replaced = above[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
            row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]))
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[m];
}

void wr_suggest_init(struct wr_suggest *suggest, const char *word)
{
    /* accepts one error per three letters, and one more in words that have more than three */
    size_t length = strlen(word);
    *suggest = (struct wr_suggest){.word = word, .best_distance = length / 3 + (length > 3 ? 2 : 1)};
}

void wr_suggest_try(struct wr_suggest *suggest, const char *candidate)
{
    size_t distance = find_distance(suggest->word, candidate);
    if (distance < suggest->best_distance && distance < strlen(candidate)) {
        strcpy(suggest->best, candidate);
        suggest->best_distance = distance;
    }
}

const char *wr_suggest_text(const struct wr_suggest *suggest, char *out, size_t room)
{
    char quoted[WR_UTF8_QUOTE_ROOM];
    if (*suggest->best)
        snprintf(out, room, "; did you mean %s?",
                 wr_utf8_quote(quoted, sizeof quoted, suggest->best, strlen(suggest->best)));
    else
        *out = '\0';
    return out;
}
