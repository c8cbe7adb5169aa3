/* visits: markers of the senders that join and leave, in the store. They are looked for once in a while, so one
 * that comes and goes in between has none. */
#ifndef WEIR_PLUGINS_COLLECTOR_VISITS_H
#define WEIR_PLUGINS_COLLECTOR_VISITS_H

struct json_object;
struct status;

/* All zeros: nobody was there so far. */
struct visits {
    struct json_object *known; /* who was connected the last time */
};

/* Stores markers of what has changed. If the file cannot be written now, the same is found the next time. */
void visits_update(struct visits *visits, const struct status *status);

void visits_fini(struct visits *visits);

#endif
