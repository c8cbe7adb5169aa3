#include "nats_subjects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../templates/series_template.h"

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

static uint64_t hash_text(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    while (*text++);
    return hash;
}

/* settings.labels change with the configuration, while the handler stays. */
void wr_nats_subjects_begin(struct nats_subjects *subjects, const weir_batch *batch)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < batch->label_count; i++)
        hash = hash_text(hash_text(hash, batch->labels[i].key), batch->labels[i].value);
    if (hash != subjects->labels_hash)
        forget(subjects);
    subjects->labels_hash = hash;
}

static bool make_room(struct nats_subjects *subjects, size_t id)
{
    size_t room = subjects->room ? subjects->room : 64;
    while (room <= id)
        room *= 2;
    char **texts = realloc(subjects->texts, room * sizeof *texts);
    if (!texts)
        return false;
    memset(texts + subjects->room, 0, (room - subjects->room) * sizeof *texts);
    subjects->texts = texts;
    subjects->room = room;
    return true;
}

const char *wr_nats_subjects_get(struct nats_subjects *subjects, const weir_batch *batch,
                                 const weir_series *series)
{
    size_t id = subjects->is_constant ? 0 : series->id;
    if (id >= subjects->room && !make_room(subjects, id))
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
