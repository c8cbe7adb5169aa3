#include "nats_subjects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/series_template.h"
#include "registry/labels_walk.h"
#include "text/array.h"

void wr_nats_subjects_init(struct nats_subjects *subjects, const char *template)
{
    *subjects = (struct nats_subjects){.template = template};
    subjects->is_constant = wr_series_template_is_constant(template);
}

static void forget(struct nats_subjects *subjects)
{
    for (size_t i = 0; i < subjects->room; i++)
        free(subjects->texts[i]);
    free(subjects->texts);
    subjects->texts = NULL;
    subjects->room = 0;
}

void wr_nats_subjects_fini(struct nats_subjects *subjects)
{
    forget(subjects);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* A group's dots make tokens, and it has no empty ones. A name or a label is one token. */
static char map(enum series_template_kind field, char byte)
{
    if (byte == '.' && field != SERIES_TEMPLATE_GROUP)
        return '_';
    return (unsigned char)byte <= ' ' || byte == '*' || byte == '>' || byte == 0x7f ? '_' : byte;
}

static char *make(const struct nats_subjects *subjects, const weir_batch *batch, const weir_series *series)
{
    static const struct series_template_rules rules = {.map = map, .absent = "_"};
    char text[NATS_SUBJECT_MAX];
    size_t length = wr_series_template_expand(subjects->template, &rules, batch, series, text, sizeof text);
    return strdup(length < sizeof text ? text : "");
}

/* ---- Looking up ------------------------------------------------------------------------------ */

/* settings.labels change with the configuration, while the handler stays. */
void wr_nats_subjects_begin(struct nats_subjects *subjects, const weir_batch *batch)
{
    const uint64_t hash = wr_labels_hash(batch);
    if (hash != subjects->labels_hash || batch->definitions != subjects->definitions)
        forget(subjects);
    subjects->labels_hash = hash;
    subjects->definitions = batch->definitions;
}

const char *wr_nats_subjects_get(struct nats_subjects *subjects, const weir_batch *batch,
                                 const weir_series *series)
{
    uint32_t id = subjects->is_constant ? 0 : series->id;
    if (!WR_ARRAY_HAS_ROOM(&subjects->texts, &subjects->room, id + 1))
        return NULL;
    if (!subjects->texts[id])
        subjects->texts[id] = make(subjects, batch, series);
    return subjects->texts[id];
}

/* ---- The stream's subjects ------------------------------------------------------------------- */

static void append(char *text, size_t room, const char *more, size_t length)
{
    size_t end = strlen(text);
    snprintf(text + end, room - end, "%.*s", (int)length, more);
}

void wr_nats_subjects_filter(const char *template, char *filter, size_t room)
{
    struct series_template_part part;
    *filter = '\0';
    while ((part = wr_series_template_next(&template)).kind == SERIES_TEMPLATE_TEXT)
        append(filter, room, part.text, part.length);
    if (part.kind == SERIES_TEMPLATE_END)
        return;
    char *dot = strrchr(filter, '.');
    *(dot ? dot + 1 : filter) = '\0';
    append(filter, room, ">", 1);
}
