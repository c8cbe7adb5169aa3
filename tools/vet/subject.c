#include "subject.h"

#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "config/config.h"
#include "text/error.h"
#include "text/escape.h"
#include "os/log.h"
#include "config/config_read.h"

struct wr_plugins *vet_subject_plugins(void)
{
    static struct wr_plugins plugins;
    return &plugins;
}

const struct wr_plugins_kind *vet_subject_kind(const struct vet_subject *subject)
{
    return subject->is_source ? &wr_plugins_sources : &wr_plugins_handlers;
}

struct wr_type *vet_subject_type(const struct vet_subject *subject)
{
    struct wr_error error = {0};
    vet_enter(VET_LOAD, "loading %.120s", subject->path);
    struct wr_type *type =
        wr_plugins_find(vet_subject_plugins(), vet_subject_kind(subject), subject->type, subject->path, &error);
    vet_leave();
    if (!type)
        vet_fail("%s", error.text);
    return type;
}

static struct wr_document *read_options(const char *options, struct wr_error *error)
{
    struct wr_document *document = wr_document_read_text("--options", options, strlen(options), error);
    if (document && wr_node_check_type(document->root, WR_NODE_OBJECT, error))
        return document;
    wr_document_drop(document);
    return NULL;
}

bool vet_subject_check_options(const char *options, struct wr_error *error)
{
    struct wr_document *document = read_options(options, error);
    if (!document)
        return false;
    wr_document_drop(document);
    return true;
}

/* Appends the text between the braces. The options are a JSON object, possibly with white space and comments
 * around it. */
static void append_members(struct wr_buffer *out, const char *options)
{
    struct wr_error error = {0};
    struct wr_document *document = options ? read_options(options, &error) : NULL;
    if (!document)
        return;
    const char *begin = document->text + document->root->offset + 1;
    const char *end = strrchr(document->text, '}');
    if (document->root->first) {
        wr_buffer_put_char(out, ',');
        wr_buffer_put(out, begin, (size_t)(end - begin));
    }
    wr_document_drop(document);
}

char *vet_subject_object(const struct vet_subject *subject, const char *more)
{
    struct wr_buffer out = {0};
    wr_buffer_put_text(&out, "{\"type\":");
    wr_escape_json(&out, subject->type);
    wr_buffer_put_text(&out, ",\"plugin\":");
    wr_escape_json(&out, subject->path);
    wr_buffer_put_format(&out, "%s%s", *more ? "," : "", more);
    append_members(&out, subject->options);
    wr_buffer_put_text(&out, "\n}");
    return wr_buffer_take(&out);
}

/* A configuration with the format as the default of all handlers. */
static struct wr_config *make_config(const char *format, struct wr_error *error)
{
    struct wr_buffer out = {0};
    wr_buffer_put_text(&out, "{");
    if (format) {
        wr_buffer_put_text(&out, "\"handlers\":{\"*\":{\"format\":");
        wr_escape_json(&out, format);
        wr_buffer_put_text(&out, "}}");
    }
    wr_buffer_put_text(&out, "}");
    const char *text = wr_buffer_text(&out);
    struct wr_config *config = text ? wr_config_read_text("--format", text, out.length, NULL, error) : NULL;
    wr_buffer_fini(&out);
    return config;
}

/* The options are a document of their own, so that errors have their places in what the user wrote. */
struct wr_instance *vet_subject_instance(const struct vet_subject *subject, const char *format,
                                         struct wr_error *error)
{
    static struct wr_log silent;
    struct wr_type *type = vet_subject_type(subject);
    struct wr_config *config = make_config(format, error);
    struct wr_document *document = subject->options ? read_options(subject->options, error) : NULL;
    struct wr_instance *instance = NULL;
    if (config && !subject->options == !document) {
        const struct wr_config_handler handler = {
            .name = "vet",
            .type = subject->type,
            .plugin = subject->path,
            .node = document ? document->root : NULL,
            .environment = config->environment,
            .document = document,
        };
        instance = wr_instance_new(type, config, &handler, &silent, NULL, NULL, error);
    }
    if (instance)
        instance->host.node = NULL; /* the document is freed below */
    wr_document_drop(document);
    if (config)
        wr_config_drop(config);
    return instance;
}
