/* Checks of a plugin's tables, before a handler is created: the shared object, the type, its options. */

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "descriptors.h"
#include "text/error.h"
#include "format/format.h"
#include "config/common_options.h"
#include "config/option.h"
#include "config/options.h"
#include "probe.h"
#include "services.h"
#include "specimen.h"
#include "state.h"
#include "subject.h"
#include "table.h"

/* ---- Loading --------------------------------------------------------------------------------- */

typedef const void *entry_point(uint32_t index);

/* Returns the number of types of the entry point. The core must have loaded them all before. */
static uint32_t count_offered(const struct vet_subject *subject)
{
    enum { MAX_COUNT = 1000 };
    uint32_t count = 0;
    const char *name = subject->is_source ? "weir_source_type_at" : "weir_handler_type_at";
    void *library = dlopen(subject->path, RTLD_NOW | RTLD_LOCAL);
    entry_point *entry = library ? (entry_point *)(uintptr_t)dlsym(library, name) : NULL;
    if (!entry)
        vet_fail("%s: it cannot be loaded a second time", subject->path);
    /* cppcheck-suppress nullPointer ; vet_fail does not return */
    while (count < MAX_COUNT && entry(count))
        count++;
    if (count == MAX_COUNT)
        vet_fail("%s has no end: after the last type it must return NULL", name);
    if (entry(count + 1) || entry(UINT32_MAX))
        vet_fail("%s(%u) returns NULL, but a higher index does not", name, count);
    for (uint32_t i = 0; i < count; i++)
        if (entry(i) != entry(i))
            vet_fail("%s(%u) returns another pointer each time", name, i);
    return count;
}

static void note_type(const char *name)
{
    for (uint32_t i = 0; i < vet_page->type_count; i++)
        if (strcmp(vet_page->types[i], name) == 0)
            return;
    if (vet_page->type_count < VET_TYPES)
        snprintf(vet_page->types[vet_page->type_count++], VET_TYPE_NAME, "%s", name);
}

static void note_types(const struct vet_subject *subject)
{
    struct wr_plugins *plugins = vet_subject_plugins();
    const char *kind = subject->is_source ? "source" : "handler";
    uint32_t offered = count_offered(subject);
    const struct wr_type *type = NULL;
    while ((type = wr_plugins_next(plugins, vet_subject_kind(subject), type)))
        note_type(type->is.name);
    if (!offered)
        vet_fail("it offers no %s type: weir_%s_type_at(0) returns NULL", kind, kind);
    if (offered <= VET_TYPES && offered != vet_page->type_count)
        vet_fail("it offers %u %s types, of which some have the same name", offered, kind);
}

static void check_load(const struct vet_subject *subject)
{
    struct vet_state before, after;
    struct wr_error error = {0};
    char text[400] = "";
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    vet_enter(VET_LOAD, "loading it");
    if (!wr_plugins_load(vet_subject_plugins(), vet_subject_kind(subject), subject->path, &error))
        vet_fail("%s", error.text);
    note_types(subject);
    vet_leave();
    vet_state_take(&after);
    if (vet_state_differs(&before, &after, text, sizeof text) || vet_state_written(&before, &after)) {
        vet_see("responsibilities-and-threads");
        vet_fail("loading it %s%s", *text ? "changes " : "writes to standard output or error", text);
    }
    vet_descriptors_check(descriptors, 0, "loading it opens descriptors");
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("loading it starts threads");
    vet_pass("%u %s type%s, made for ABI %u", vet_page->type_count, subject->is_source ? "source" : "handler",
             vet_page->type_count == 1 ? "" : "s", vet_subject_kind(subject)->abi);
}

const struct vet_check vet_check_load = {"load", check_load, "packaging", VET_LOAD, false};

/* ---- The type -------------------------------------------------------------------------------- */

void vet_check_line(const char *what, const char *text)
{
    if (!*text)
        vet_fail("%s is empty", what);
    if (strpbrk(text, "\n\r\t"))
        vet_fail("%s is more than one line", what);
}

void vet_check_type(const struct vet_subject *subject)
{
    const uint32_t kinds = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT;
    const uint32_t shapes = WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS | WEIR_FORMAT_RECORDS;
    const weir_handler_type *type = &vet_subject_type(subject)->is;
    vet_check_line("its summary", type->summary);
    if (type->kinds & ~kinds)
        vet_fail("its kinds 0x%x have unknown bits; allowed: WEIR_KINDS_*", type->kinds);
    if (type->formats & ~shapes)
        vet_fail("its formats 0x%x have unknown bits; allowed: WEIR_FORMAT_*", type->formats);
    if (type->flags & ~(uint32_t)(WEIR_TYPE_SHARES_NOTHING | WEIR_TYPE_OPENS_EARLY | WEIR_TYPE_WORKS_AT_EXIT))
        vet_fail("its flags 0x%x have unknown bits; allowed: WEIR_TYPE_*", type->flags);
    if (type->flags & WEIR_TYPE_SHARES_NOTHING && type->prepare)
        vet_fail("it has WEIR_TYPE_SHARES_NOTHING, and prepare, which is for what a whole process shares");
    for (const weir_default *own = type->defaults; own && own->name; own++) {
        if (!own->value)
            vet_fail("its default for \"%s\" is NULL", own->name);
        if (strcmp(own->name, "format") == 0 && !type->formats)
            vet_fail("it has a default format, but no formats");
    }
    vet_pass("%zu bytes; %s%s%s%s%s%s%s", type->size, type->open ? "open, " : "", type->flush ? "flush, " : "",
             type->close ? "close, " : "", type->wake ? "wake, " : "", type->probe ? "probe, " : "",
             type->emit_now ? "emit_now, " : "", type->abandon ? "abandon" : "no abandon");
}

/* ---- The option table ------------------------------------------------------------------------ */

/* Mistakes that the core accepts. */
void vet_check_row(const weir_option *row)
{
    const uint32_t flags =
        WEIR_OPTION_REQUIRED | WEIR_OPTION_SECRET | WEIR_OPTION_URL | WEIR_OPTION_DESTINATION;
    bool is_number = row->type == WEIR_OPTION_INT || row->type == WEIR_OPTION_DOUBLE ||
                     row->type == WEIR_OPTION_DURATION || row->type == WEIR_OPTION_SIZE;
    char what[300];
    snprintf(what, sizeof what, "option \"%s\": its help", row->name);
    vet_check_line(what, row->help);
    if (row->flags & ~flags)
        vet_fail("option \"%s\": its flags 0x%x have unknown bits", row->name, row->flags);
    if (row->flags & WEIR_OPTION_REQUIRED && row->default_value)
        vet_fail("option \"%s\": it is required, so its default \"%s\" is never used", row->name,
                 row->default_value);
    if (row->flags & WEIR_OPTION_URL && row->type != WEIR_OPTION_STRING)
        vet_fail("option \"%s\": WEIR_OPTION_URL is for strings", row->name);
    if (row->allowed && !is_number && row->type != WEIR_OPTION_ENUM)
        vet_fail("option \"%s\": \"allowed\" is ignored for its type, %s; check the value in create", row->name,
                 wr_option_type_name(row->type));
    if (row->type == WEIR_OPTION_ENUM && !row->default_value && !(row->flags & WEIR_OPTION_REQUIRED))
        vet_fail("option \"%s\": an enum without a default defaults to its first value, which its help does "
                 "not show",
                 row->name);
}

/* The core accepts this, because a plugin may be older than the common option. */
static void check_hidden(const struct wr_type *type)
{
    const struct wr_options_table all = wr_common_options_table();
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&all, i)); i++)
        if (!wr_options_find(&type->common_options, row->name))
            vet_fail(
                "option \"%s\": this weir has an option of that name for every handler, which handlers of this "
                "type cannot use",
                row->name);
}

void vet_check_options(const struct vet_subject *subject)
{
    struct wr_error error = {0};
    const struct wr_options_table *table = &vet_subject_type(subject)->options;
    const weir_option *row;
    size_t count = 0;
    for (; (row = wr_options_row(table, count)); count++)
        vet_check_row(row);
    check_hidden(vet_subject_type(subject));
    struct wr_instance *instance = vet_subject_instance(subject, NULL, &error);
    if (!instance)
        vet_fail_to_create("%s", error.text);
    wr_instance_free(instance);
    vet_pass(count ? "%zu in its table, with valid defaults, and --options fit them" : "it has none", count);
}

/* ---- Option values --------------------------------------------------------------------------- */

/* Creates a handler whose option has this value instead of the one in --options. It may be refused with a
 * reason. */
static void try_handler(const struct vet_subject *subject, const weir_option *row, const char *value)
{
    struct vet_probe probe;
    struct wr_error error = {0};
    vet_probe_make(&probe, subject, NULL);
    const struct wr_option_site site = {&wr_environment_empty, &probe.instance->keep};
    if (wr_option_set(row, probe.instance->options, value, &site, &error)) {
        vet_enter(VET_NOTHING, "create with \"%s\" of \"%.80s\"", row->name, value);
        probe.self = wr_instance_create(probe.instance, &error) ? probe.instance->self : NULL;
        if (!probe.self && strstr(error.text, "gave no reason"))
            vet_fail("create returns NULL for \"%s\" of \"%s\" without host->refuse, so no reason is shown",
                     row->name, value);
        vet_leave();
    }
    if (probe.self) {
        vet_probe_destroy(&probe);
    } else {
        vet_tested_detach(&probe.tested);
        wr_instance_free(probe.instance);
    }
}

/* Tries both bounds of "1..65535", or each value of "a|b". */
static void try_allowed(const struct vet_subject *subject, const weir_option *row, vet_try_value *try_value)
{
    char text[600];
    const char *next = row->allowed;
    const char *border = row->type == WEIR_OPTION_ENUM ? "|" : ".";
    while (next && *next) {
        size_t length = strcspn(next, border);
        snprintf(text, sizeof text, "%.*s", (int)length, next);
        if (length)
            try_value(subject, row, text);
        next += length;
        next += strspn(next, border);
    }
}

/* try_allowed splits ranges at dots, so it cannot handle "0.5..1". */
static bool has_plain_bounds(const weir_option *row)
{
    if (!row->allowed || row->type == WEIR_OPTION_ENUM)
        return row->allowed;
    const char *dots = strstr(row->allowed, "..");
    return dots && !memchr(row->allowed, '.', (size_t)(dots - row->allowed)) && !strchr(dots + 2, '.');
}

static void try_row(const struct vet_subject *subject, const weir_option *row, vet_try_value *try_value)
{
    static const char *const texts[] = {"",    " ", "gr\xc3\xb6\xc3\x9f", "%s%n", "/", "/no/such/folder/file",
                                        "://", "-1"};
    if (has_plain_bounds(row))
        try_allowed(subject, row, try_value);
    if (row->type == WEIR_OPTION_BOOL) {
        try_value(subject, row, "true");
        try_value(subject, row, "false");
    }
    bool is_text =
        row->type == WEIR_OPTION_STRING || row->type == WEIR_OPTION_PATH || row->type == WEIR_OPTION_LIST;
    for (size_t i = 0; is_text && i < sizeof texts / sizeof *texts; i++)
        try_value(subject, row, texts[i]);
}

void vet_check_values_with(const struct vet_subject *subject, const struct wr_options_table *table,
                           vet_try_value *try_value)
{
    const weir_option *row;
    size_t i;
    for (i = 0; (row = wr_options_row(table, i)); i++)
        try_row(subject, row, try_value);
    vet_pass(i ? "created with each option at its bounds and with odd texts" : "it has no options");
}

void vet_check_values(const struct vet_subject *subject)
{
    vet_check_values_with(subject, &vet_subject_type(subject)->options, try_handler);
}
