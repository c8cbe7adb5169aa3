/* Checks of a source type before it runs: its description, its options; and abandon. */

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "config/option.h"
#include "config/options.h"
#include "descriptors.h"
#include "source/source_options.h"
#include "specimen.h"
#include "subject.h"
#include "table.h"
#include "text/error.h"
#include "watch.h"

/* ---- The type -------------------------------------------------------------------------------- */

void vet_check_source_type(const struct vet_subject *subject)
{
    const weir_source_type *type = &vet_subject_type(subject)->source;
    const struct wr_options_table common = wr_source_options_table(type->flags & WEIR_SOURCE_TYPE_PARSES);
    vet_check_line("its summary", type->summary);
    if (type->flags &
        ~(uint32_t)(WEIR_SOURCE_TYPE_PARSES | WEIR_SOURCE_TYPE_MEASURES | WEIR_SOURCE_TYPE_UNGROUPED))
        vet_fail("its flags 0x%x have unknown bits; allowed: WEIR_SOURCE_*", type->flags);
    if (type->close && !type->open)
        vet_fail("it has close, but no open");
    for (const weir_default *own = type->defaults; own && own->name; own++) {
        if (!own->value)
            vet_fail("its default for \"%s\" is NULL", own->name);
        if (!wr_options_find(&common, own->name))
            vet_fail("it has a default for \"%s\", which is not an option of its sources", own->name);
    }
    vet_pass("%zu bytes; %s%s%s%s", type->size, type->flags & WEIR_SOURCE_TYPE_PARSES ? "reads text, " : "",
             type->open ? "open, " : "", type->close ? "close, " : "",
             type->abandon ? "abandon" : "no abandon");
}

/* ---- Options --------------------------------------------------------------------------------- */

void vet_check_source_options(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    const struct wr_options_table *table = &vet_subject_type(subject)->options;
    const weir_option *row;
    size_t count = 0;
    for (; (row = wr_options_row(table, count)); count++)
        vet_check_row(row);
    vet_specimen_make(&specimen, subject);
    vet_specimen_destroy(&specimen);
    vet_pass(count ? "%zu in its table, with valid defaults, and --options fit them" : "it has none", count);
}

static void try_source(const struct vet_subject *subject, const weir_option *row, const char *value)
{
    struct vet_specimen specimen;
    struct wr_error error = {0};
    vet_specimen_make(&specimen, subject);
    const struct wr_option_site site = {&wr_environment_empty, &specimen.source->keep};
    if (wr_option_set(row, specimen.source->own_options, value, &site, &error) &&
        !vet_specimen_try_create(&specimen, &error) && strstr(error.text, "gave no reason"))
        vet_fail("create returns NULL for \"%s\" of \"%s\" without host->refuse, so no reason is shown",
                 row->name, value);
    vet_specimen_destroy(&specimen);
}

void vet_check_source_values(const struct vet_subject *subject)
{
    vet_check_values_with(subject, &vet_subject_type(subject)->options, try_source);
}

/* ---- Abandon --------------------------------------------------------------------------------- */

static void abandon(void *ctx)
{
    struct vet_specimen *specimen = ctx;
    vet_enter(VET_ABANDON, "abandon");
    specimen->type->abandon(specimen->self);
    vet_leave();
}

/* In a child that is forked while the source runs, as a program would be. */
static void check_left(struct vet_specimen *specimen, int descriptors)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (specimen->type->abandon)
            abandon(specimen);
        vet_descriptors_check(descriptors, 3,
                              specimen->type->abandon
                                  ? "abandon leaves descriptors open"
                                  : "it has descriptors, but no abandon: a forked child keeps them");
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        vet_skip("vet itself: cannot start a process");
    vet_watch_exit_if_decided();
    if (WIFSIGNALED(status))
        vet_fail("abandon in a forked child is killed by %s", strsignal(WTERMSIG(status)));
}

void vet_check_source_abandon(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    char text[400];
    vet_specimen_whole(subject); /* libraries may open descriptors on first use and keep them */
    vet_specimen_create(&specimen, subject);
    vet_sender_open(&specimen.sender); /* its descriptors are vet's */
    int descriptors = vet_descriptors_count();
    vet_specimen_start(&specimen);
    if (!vet_specimen_pause(&specimen))
        vet_skip("it does not wait, so nothing was checked");
    check_left(&specimen, descriptors);
    bool watched =
        specimen.type->abandon && vet_watch(VET_WATCH_ALL_BUT_CLOSE, abandon, &specimen, text, sizeof text);
    if (watched && *text)
        vet_fail("abandon %s; it may call close(2), fstat(2) and nothing else: it runs in a forked child, "
                 "where other "
                 "threads may have held any lock",
                 text);
    vet_specimen_go_on(&specimen);
    vet_specimen_stop(&specimen, "after a fork");
    vet_specimen_destroy(&specimen);
    if (!specimen.type->abandon)
        vet_pass("it has none, and no descriptors either");
    if (!watched)
        vet_pass("it closes the descriptors that open has opened; whether it does more is unknown: %s", text);
    vet_pass("it closes the descriptors that open has opened, and makes no other system call");
}
