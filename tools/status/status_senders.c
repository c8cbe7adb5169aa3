#include "status_senders.h"

#include <inttypes.h>
#include <stdbool.h>

#include <weir/source.h>

#include "common/command.h"
#include "status/status_json.h"
#include "text/buffer.h"

static void put_part(struct wr_buffer *out, const char *before, uint64_t count, const char *what)
{
    if (count)
        wr_buffer_put_format(out, "%s%" PRIu64 " %s", before, count, what);
}

static void put_ledger(struct wr_buffer *out, const struct wr_status_sender *sender)
{
    wr_buffer_put_format(out, "%" PRIu64 " added", sender->added);
    put_part(out, " + ", sender->recovered, "recovered");
    wr_buffer_put_format(out, " = %" PRIu64 " delivered", sender->delivered);
    put_part(out, " + ", wr_status_json_waiting(sender), "waiting");
    wr_buffer_put_format(out, " + %" PRIu64 " lost there", sender->lost);
    wr_buffer_put_format(out, "; %" PRIu64 " received here", sender->received);
    put_part(out, ", ", sender->repeats, "repeats");
    put_part(out, ", ", sender->missing, "sent and not received");
    wr_buffer_put_char(out, '\n');
}

static void put_sender(struct wr_buffer *out, const struct wr_status_sender *sender)
{
    wr_buffer_put_text(out, "    sender      ");
    command_put_text(out, sender->name);
    wr_buffer_put_text(out, ": ");
    if (sender->processes > 1)
        wr_buffer_put_format(out, "%" PRIu64 " ", sender->processes);
    wr_buffer_put_text(out, wr_status_json_sender_state(sender->state));
    wr_buffer_put_text(out, sender->state == WEIR_SENDER_VANISHED ? ", at least\n" : "\n");
    wr_buffer_put_text(out, "                  ");
    put_ledger(out, sender);
}

static void add_to(struct wr_status_sender *sum, const struct wr_status_sender *sender)
{
    sum->processes += sender->processes;
    sum->added += sender->added;
    sum->recovered += sender->recovered;
    sum->delivered += sender->delivered;
    sum->lost += sender->lost;
    sum->received += sender->received;
    sum->repeats += sender->repeats;
    sum->missing += sender->missing;
}

void status_put_senders(struct wr_buffer *out, const struct wr_status_view *view, size_t source)
{
    struct wr_status_sender sum = {0};
    for (size_t i = 0; i < view->sender_count; i++) {
        if (view->senders[i].source != (int64_t)source)
            continue;
        put_sender(out, &view->senders[i]);
        add_to(&sum, &view->senders[i]);
    }
    if (!sum.processes)
        return;
    wr_buffer_put_format(out, "    all senders ");
    put_ledger(out, &sum);
}
