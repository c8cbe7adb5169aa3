#include "forward_senders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/hash.h"
#include "text/utf8.h"

enum {
    MOST_VANISHED = 1000, /* that have rows of their own; older ones are summed up by name */
    MOST_SUMS = 1000,     /* names; the senders of others are summed up as "others" */
};

/* ---- Lists ----------------------------------------------------------------------------------- */

static void put_first(struct sender_list *list, struct sender *sender)
{
    sender->before = NULL;
    sender->after = list->first;
    *(list->first ? &list->first->before : &list->last) = sender;
    list->first = sender;
    list->count++;
}

static void take_out(struct sender_list *list, struct sender *sender)
{
    *(sender->before ? &sender->before->after : &list->first) = sender->after;
    *(sender->after ? &sender->after->before : &list->last) = sender->before;
    list->count--;
}

static void free_list(struct sender_list *list)
{
    for (struct sender *sender = list->first, *next; sender; sender = next) {
        next = sender->after;
        free(sender);
    }
    *list = (struct sender_list){0};
}

void wr_senders_fini(struct senders *senders)
{
    free_list(&senders->connected);
    free_list(&senders->vanished);
    free_list(&senders->sums);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static void add_counts(struct sender *to, const struct sender *from)
{
    to->processes += from->processes;
    to->totals.added += from->totals.added;
    to->totals.recovered += from->totals.recovered;
    to->totals.delivered += from->totals.delivered;
    to->totals.lost += from->totals.lost;
    to->received += from->received;
    to->repeats += from->repeats;
    to->missing += from->missing;
}

static struct sender *find_sum(const struct senders *senders, const char *label, enum weir_sender_state state)
{
    struct sender *sum = senders->sums.first;
    while (sum && (sum->state != state || strcmp(sum->label, label) != 0))
        sum = sum->after;
    return sum;
}

/* Adds its counts to those of its name, and frees it. The row itself becomes the sum if there is none yet. */
static void sum_up(struct senders *senders, struct sender *sender)
{
    struct sender *sum = find_sum(senders, sender->label, sender->state);
    if (!sum && senders->sums.count >= MOST_SUMS) {
        snprintf(sender->label, sizeof sender->label, "others");
        sum = find_sum(senders, sender->label, sender->state);
    }
    if (!sum) {
        snprintf(sender->name, sizeof sender->name, "%s", sender->label);
        put_first(&senders->sums, sender);
        return;
    }
    add_counts(sum, sender);
    free(sender);
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* What a sender says of itself is shown on terminals. */
static void set_identity(struct sender *sender, const struct wire_hello *hello)
{
    char process[40], handler[32], machine[32];
    memcpy(sender->id, hello->id, sizeof sender->id);
    sender->handler_hash = wr_hash_bytes(0, hello->handler, strlen(hello->handler));
    wr_utf8_show_part(process, sizeof process, hello->process);
    wr_utf8_show_part(handler, sizeof handler, hello->handler);
    wr_utf8_show_part(machine, sizeof machine, hello->machine);
    snprintf(sender->label, sizeof sender->label, "%s on %s, handler %s", process, machine, handler);
    snprintf(sender->name, sizeof sender->name, "%s[%lu] on %s, handler %s", process, (unsigned long)hello->pid,
             machine, handler);
}

static struct sender *find_like(const struct sender_list *list, const struct sender *like)
{
    struct sender *sender = list->first;
    while (sender &&
           (memcmp(sender->id, like->id, sizeof like->id) != 0 || sender->handler_hash != like->handler_hash))
        sender = sender->after;
    return sender;
}

const struct sender *wr_senders_find(const struct senders *senders, const struct wire_hello *hello)
{
    struct sender like = {0};
    set_identity(&like, hello);
    return find_like(&senders->connected, &like);
}

struct sender *wr_senders_begin(struct senders *senders, const struct wire_hello *hello)
{
    struct sender *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->processes = 1;
    made->received = hello->totals.delivered;
    set_identity(made, hello);
    struct sender *known = find_like(&senders->vanished, made);
    if (known) {
        free(made);
        made = known;
        take_out(&senders->vanished, made);
    }
    made->state = WEIR_SENDER_CONNECTED;
    made->totals = hello->totals;
    put_first(&senders->connected, made);
    senders->has_changed = true;
    return made;
}

uint64_t wr_sender_front(struct sender *sender, const char *origin, uint64_t end)
{
    struct sender_front *front = sender->fronts;
    while (front < sender->fronts + SENDER_FRONTS && strcmp(front->origin, origin) != 0)
        front++;
    if (front == sender->fronts + SENDER_FRONTS) {
        front = &sender->fronts[sender->next_front++ % SENDER_FRONTS];
        *front = (struct sender_front){0};
        memcpy(front->origin, origin, sizeof front->origin);
    }
    uint64_t known = front->end;
    if (end > known)
        front->end = end;
    return known;
}

void wr_senders_end(struct senders *senders, struct sender *sender, bool has_ended)
{
    take_out(&senders->connected, sender);
    senders->has_changed = true;
    sender->state = has_ended ? WEIR_SENDER_ENDED : WEIR_SENDER_VANISHED;
    if (has_ended) {
        sum_up(senders, sender);
        return;
    }
    put_first(&senders->vanished, sender);
    if (senders->vanished.count > MOST_VANISHED) {
        sender = senders->vanished.last;
        take_out(&senders->vanished, sender);
        sum_up(senders, sender);
    }
}

/* ---- Showing --------------------------------------------------------------------------------- */

static bool has_trouble(const struct sender *sender)
{
    return sender->missing || sender->totals.lost;
}

/* Appends those of a list that have trouble, or have none. */
static size_t put_list(weir_sender *out, size_t count, const struct sender_list *list, bool trouble)
{
    for (const struct sender *sender = list->first; sender; sender = sender->after) {
        if (has_trouble(sender) != trouble)
            continue;
        out[count++] = (weir_sender){
            .name = sender->name,
            .processes = sender->processes,
            .added = sender->totals.added,
            .recovered = sender->totals.recovered,
            .delivered = sender->totals.delivered,
            .lost = sender->totals.lost,
            .received = sender->received,
            .repeats = sender->repeats,
            .missing = sender->missing,
            .state = sender->state,
        };
    }
    return count;
}

void wr_senders_show(struct senders *senders, const weir_host *host, const weir_senders *service)
{
    const struct sender_list *lists[] = {&senders->vanished, &senders->connected, &senders->sums};
    size_t most = senders->vanished.count + senders->connected.count + senders->sums.count, count = 0;
    if (!senders->has_changed || !service)
        return;
    weir_sender *shown = malloc((most + 1) * sizeof *shown);
    if (!shown)
        return; /* the next time */
    for (int trouble = 1; trouble >= 0; trouble--)
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            count = put_list(shown, count, lists[i], trouble);
    service->show(host, shown, count);
    free(shown);
    senders->has_changed = false;
}
