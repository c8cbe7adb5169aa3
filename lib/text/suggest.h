/* suggest: what somebody probably meant. */
#ifndef WR_SUGGEST_H
#define WR_SUGGEST_H

#include <stddef.h>

struct wr_suggest {
    const char *word;
    const char *best; /* NULL: nothing is near */
    size_t best_distance;
};

/* Starts looking for what is near to word. Both word and the candidates are borrowed. */
void wr_suggest_init(struct wr_suggest *suggest, const char *word);

/* Takes a candidate into account. */
void wr_suggest_try(struct wr_suggest *suggest, const char *candidate);

/* "; did you mean "x"?", or "" when nothing is near; written into out, which it answers. */
const char *wr_suggest_words(const struct wr_suggest *suggest, char *out, size_t room);

#endif
