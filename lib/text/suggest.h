/* suggest: finds the candidate nearest to a misspelt word. */
#ifndef WR_SUGGEST_H
#define WR_SUGGEST_H

#include <stddef.h>

#include "text/utf8.h"

/* Longer words are not compared. Room for the output of wr_suggest_text. */
enum { WR_SUGGEST_LONGEST = 64, WR_SUGGEST_ROOM = WR_UTF8_QUOTE_ROOM + 32 };

struct wr_suggest {
    const char *word;
    char best[WR_SUGGEST_LONGEST + 1]; /* "": no candidate is near */
    size_t best_distance;
};

/* Starts a search. word is borrowed. */
void wr_suggest_init(struct wr_suggest *suggest, const char *word);

/* Compares a candidate with the word, and copies the nearest. */
void wr_suggest_try(struct wr_suggest *suggest, const char *candidate);

/* Writes "; did you mean "x"?", or "" if no candidate is near. Returns out. */
const char *wr_suggest_text(const struct wr_suggest *suggest, char *out, size_t room);

#endif
