/* instruments: what actors add to counters, gauges and histograms, and to values beside them. */
#ifndef MODEL_INSTRUMENTS_H
#define MODEL_INSTRUMENTS_H

#include "actor.h"

/* Declares all names, before the first value. */
void instruments_declare(void);

/* Adds several values at random. Returns what the last call returned: 0, or WEIR_ERR_CLOSED. */
int instruments_add(struct actor *actor);

/* Adds a value to each series of the groups, and sets the actor's gauge. */
void instruments_add_to_all(struct actor *actor);

/* In a forked child: moves the gauge of the actor that forked it, which had this level. */
void instruments_move_inherited(struct actor *actor, uint32_t parent, double level);

/* Tries to add what an instrument does not take. Returns what the call returned. */
int instruments_add_invalid(struct actor *actor);

/* Nothing of the actor's is on its way to a handler: checks that each one which must have got the last level of
 * the actor's gauge has it. why: how that is known. */
void instruments_expect_level(const struct actor *actor, const char *why);

#endif
