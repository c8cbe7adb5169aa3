/* child: a forked child that adds values of its own, and ends. */
#ifndef MODEL_CHILD_H
#define MODEL_CHILD_H

#include "actor.h"

/* Forks, if there may be one more child; whoever is told of it by the kernel waits for it. 0. */
int child_fork(struct actor *actor);

#endif
