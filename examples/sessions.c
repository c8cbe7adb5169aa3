/* sessions: users come and go, and each session has figures of its own while it lasts. Shows how a label set
 * ends.
 *
 *     sessions [SESSIONS [MESSAGES]] */

#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

/* A session with its own stream and handles: adding by them needs no labels. */
struct session {
    weir_stream *stream;
    weir_metric *messages, *waiting;
};

static struct session begin(int number)
{
    char name[32];
    snprintf(name, sizeof name, "s%d", number);
    const weir_label label = {"session", name};
    weir_stream *stream = weir_get_stream_labeled("chat", &label, 1);
    return (struct session){stream, weir_get_counter(stream, "messages"), weir_get_gauge(stream, "waiting")};
}

/* The last values are delivered; then the series of this session are no more, and others have their places and
 * memory. The stream and its handles must not be used after this. */
static void end(const struct session *session)
{
    weir_stream_remove(session->stream);
}

int main(int argc, char **argv)
{
    int sessions = argc > 1 ? atoi(argv[1]) : 10, messages = argc > 2 ? atoi(argv[2]) : 5;
    if (sessions < 0 || messages < 0) {
        fputs("usage: sessions [SESSIONS [MESSAGES]]\n", stderr);
        return 2;
    }
    weir_metric *open = weir_get_gauge(weir_get_stream("chat"), "sessions");
    for (int number = 0; number < sessions; number++) {
        struct session session = begin(number);
        weir_metric_change(open, 1);
        for (int i = 0; i < messages; i++) {
            weir_metric_add(session.waiting, messages - i);
            weir_metric_add(session.messages, 1);
        }
        end(&session);
        weir_metric_change(open, -1);
    }
    return 0;
}
