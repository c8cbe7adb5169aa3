#include "datagrams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool wr_datagrams_open(struct datagrams *datagrams, struct feed *feed, size_t bytes)
{
    *datagrams = (struct datagrams){.feed = feed, .logged_cut = datagrams->logged_cut};
    datagrams->buffers = malloc(DATAGRAMS_AT_ONCE * bytes);
    if (!datagrams->buffers)
        return false;
    for (size_t i = 0; i < DATAGRAMS_AT_ONCE; i++) {
        datagrams->pieces[i] = (struct iovec){datagrams->buffers + i * bytes, bytes};
        datagrams->messages[i].msg_hdr = (struct msghdr){.msg_iov = &datagrams->pieces[i], .msg_iovlen = 1};
    }
    return true;
}

void wr_datagrams_close(struct datagrams *datagrams)
{
    free(datagrams->buffers);
    datagrams->buffers = NULL;
    datagrams->count = datagrams->next = 0;
}

/* ---- Parsing --------------------------------------------------------------------------------- */

static void note_cut(struct datagrams *datagrams)
{
    const weir_host *host = datagrams->feed->host;
    host->count(host, "cut_datagrams", 1);
    if (!datagrams->logged_cut)
        host->log(host, WEIR_LOG_WARNING,
                  "%s: a datagram is longer than datagram_bytes (%zu); its rest is lost; further ones are only "
                  "counted",
                  datagrams->from->name, datagrams->pieces[0].iov_len);
    datagrams->logged_cut = true;
}

/* The present datagram is parsed, or given up. Returns false if its text is held. */
static bool finish_datagram(struct datagrams *datagrams)
{
    bool is_cut = datagrams->messages[datagrams->next].msg_hdr.msg_flags & MSG_TRUNC;
    datagrams->next++;
    datagrams->parsed = 0;
    if (is_cut)
        note_cut(datagrams);
    return feed_finish(datagrams->feed, datagrams->from->parsed, !is_cut);
}

/* Parses a part of the present datagram. Returns false if its text is held. */
static bool parse_part(struct datagrams *datagrams)
{
    struct feed *feed = datagrams->feed;
    weir_text *text = datagrams->from->parsed;
    size_t room, left = datagrams->messages[datagrams->next].msg_len - datagrams->parsed;
    char *to = feed->parser->room(text, &room);
    if (!to) {
        feed->host->count(feed->host, "lost_datagrams", 1);
        feed->intake->refuse(feed->host, 1, datagrams->from->name, "out of memory for a datagram of %u bytes",
                             datagrams->messages[datagrams->next].msg_len);
        datagrams->parsed += left;
        return true;
    }
    size_t part = left < room ? left : room;
    memcpy(to, datagrams->buffers + datagrams->next * datagrams->pieces[0].iov_len + datagrams->parsed, part);
    datagrams->parsed += part;
    return feed_parse(feed, text, part);
}

bool wr_datagrams_parse(struct datagrams *datagrams)
{
    bool has_room = !datagrams->feed->held;
    while (has_room && datagrams->next < datagrams->count)
        has_room = datagrams->parsed < datagrams->messages[datagrams->next].msg_len
                       ? parse_part(datagrams)
                       : finish_datagram(datagrams);
    return has_room;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

int wr_datagrams_receive(struct datagrams *datagrams, struct listener *from)
{
    const weir_host *host = datagrams->feed->host;
    int count = recvmmsg(from->own.fd, datagrams->messages, DATAGRAMS_AT_ONCE, MSG_DONTWAIT, NULL);
    if (count < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : errno;
    datagrams->from = from;
    datagrams->count = (unsigned)count;
    datagrams->next = 0;
    datagrams->parsed = 0;
    host->count(host, "datagrams", (uint64_t)count);
    wr_listener_count_drops(from, host);
    wr_datagrams_parse(datagrams);
    return 0;
}

/* Of those that were received. One that is parsed to its end is not: its lines are counted. */
static uint64_t count_unparsed(const struct datagrams *datagrams)
{
    unsigned left = datagrams->count - datagrams->next;
    return left - (left && datagrams->parsed == datagrams->messages[datagrams->next].msg_len);
}

/* The bound is for senders that never pause: those of their datagrams that are not counted came after the stop.
 */
void wr_datagrams_count_left(struct datagrams *datagrams, const struct listener *from)
{
    enum { MOST = 100000 };
    const weir_host *host = datagrams->feed->host;
    uint64_t left = datagrams->from == from ? count_unparsed(datagrams) : 0;
    char byte;
    for (int i = 0; i < MOST && recv(from->own.fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0; i++)
        left++;
    if (!left)
        return;
    host->count(host, "lost_unread", left);
    host->log(host, WEIR_LOG_WARNING, "%s: %llu datagrams were not read in time before the stop", from->name,
              (unsigned long long)left);
}
