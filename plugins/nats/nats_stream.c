#include "nats_stream.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../system.h"
#include "nats_reply.h"
#include "nats_subjects.h"

/* ---- The request ----------------------------------------------------------------------------- */

static struct json_object *make_subjects(const struct nats_options *options)
{
    struct json_object *array = json_object_new_array();
    for (size_t i = 0; i < options->subjects.count; i++)
        json_object_array_add(array, json_object_new_string(options->subjects.items[i]));
    if (options->subjects.count == 0) {
        char filter[NATS_SUBJECT_MAX];
        wr_nats_subjects_filter(options->subject, filter, sizeof filter);
        json_object_array_add(array, json_object_new_string(filter));
    }
    return array;
}

/* Returns the text of a request that creates the stream, to be freed. NULL: out of memory. The server refuses a
 * window that is longer than the age at which it removes messages, which is not set here. */
static char *format_request(const struct nats_options *options)
{
    struct json_object *config = json_object_new_object();
    if (!config)
        return NULL;
    json_object_object_add(config, "name", json_object_new_string(options->stream));
    json_object_object_add(config, "subjects", make_subjects(options));
    json_object_object_add(config, "retention", json_object_new_string("limits"));
    json_object_object_add(config, "max_consumers", json_object_new_int(-1));
    json_object_object_add(config, "max_msgs", json_object_new_int(-1));
    json_object_object_add(config, "max_bytes", json_object_new_int(-1));
    json_object_object_add(config, "discard", json_object_new_string("old"));
    json_object_object_add(config, "storage",
                           json_object_new_string(options->storage == NATS_STORAGE_MEMORY ? "memory" : "file"));
    json_object_object_add(config, "num_replicas", json_object_new_int64(options->replicas));
    json_object_object_add(config, "duplicate_window", json_object_new_int64(options->duplicate_window_ns));
    char *text = strdup(json_object_to_json_string_ext(config, JSON_C_TO_STRING_PLAIN));
    json_object_put(config);
    return text;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Returns false with the outcome set if there was no reply. */
static bool ask(struct nats_link *link, const char *verb, const char *text, int64_t timeout_ms,
                struct nats_reply *reply, weir_outcome *outcome)
{
    char subject[NATS_SUBJECT_MAX];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.%s.%s", verb, link->options->stream);
    natsMsg *message = wr_nats_link_request(link, subject, text, timeout_ms, outcome);
    if (message)
        wr_nats_reply_read(reply, NATS_REPLY_OF_REQUEST, natsMsg_GetData(message),
                           (size_t)natsMsg_GetDataLength(message));
    natsMsg_Destroy(message);
    return message;
}

static bool create(struct nats_link *link, int64_t timeout_ms, weir_outcome *outcome)
{
    struct nats_reply reply;
    char *text = format_request(link->options);
    if (!text)
        return wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
    bool is_answered = ask(link, "CREATE", text, timeout_ms, &reply, outcome);
    free(text);
    if (is_answered && reply.kind != NATS_REPLY_STORED)
        return wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "create the stream \"%.60s\": %s",
                              link->options->stream, reply.text);
    return is_answered;
}

bool wr_nats_stream_ensure(struct nats_link *link, bool may_create, int64_t timeout_ms, weir_outcome *outcome)
{
    struct nats_reply reply;
    const char *stream = link->options->stream;
    if (!ask(link, "INFO", "", timeout_ms, &reply, outcome))
        return false;
    if (reply.kind == NATS_REPLY_STORED)
        return true;
    bool is_missing = reply.code == NATS_REPLY_NO_STREAM;
    if (is_missing && link->options->create && may_create)
        return create(link, timeout_ms, outcome);
    if (is_missing && link->options->create)
        return true;
    if (is_missing)
        return wr_system_fail(outcome, WEIR_OUTCOME_RETRY,
                              "the stream \"%.60s\" does not exist: create it, or set \"create\": true",
                              stream);
    return wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "look up the stream \"%.60s\": %s", stream, reply.text);
}
