/* suggest: finds the candidate nearest to a misspelt word. */
#ifndef WR_SUGGEST_H
#define WR_SUGGEST_H

#include <stddef.h>

#include "text/utf8.h"

/* Room for the output of wr_suggest_text. */
enum { WR_SUGGEST_ROOM = WR_UTF8_QUOTE_ROOM + 32 };

struct wr_suggest {
    const char *word;
    const char *best; /* NULL: no candidate is near */
    size_t best_distance;
};

/* Starts a search. word and the candidates are borrowed. */
void wr_suggest_init(struct wr_suggest *suggest, const char *word);

/* Compares a candidate with the word. */
void wr_suggest_try(struct wr_suggest *suggest, const char *candidate);

/* Writes "; did you mean "x"?", or "" if no candidate is near. Returns out. */
const char *wr_suggest_text(const struct wr_suggest *suggest, char *out, size_t room);

#endif
