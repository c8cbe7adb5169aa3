#include "report.h"

#include <stdio.h>
#include <string.h>

#include "text/buffer.h"
#include "text/escape.h"
#include "text/utf8.h"

static const char *const names[] = {"none", "ok", "FAIL", "skipped"};

/* What a plugin says may hold anything. */
static void print_shown(const char *text)
{
    struct wr_buffer shown = {0};
    wr_utf8_show(&shown, text, strlen(text), 0);
    fputs(wr_buffer_text(&shown) ? shown.data : "", stdout);
    wr_buffer_fini(&shown);
}

static void print_json(const char *key, const char *text)
{
    struct wr_buffer escaped = {0};
    wr_escape_json(&escaped, text);
    printf("\"%s\":%s", key, wr_buffer_text(&escaped) ? escaped.data : "null");
    wr_buffer_fini(&escaped);
}

/* The last lines of what it wrote on standard error, before it was gone. */
static void print_heard(const char *heard)
{
    while (*heard) {
        char line[400];
        size_t length = strcspn(heard, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), heard);
        if (*line) {
            fputs("           | ", stdout);
            print_shown(line);
            putchar('\n');
        }
        heard += length + (heard[length] == '\n');
    }
}

void vet_report_begin(struct vet_report *report, const struct vet_subject *subject)
{
    if (!report->json) {
        print_shown(subject->path);
        putchar('\n');
        return;
    }
    putchar('{');
    print_json("file", subject->path);
    fputs(",\"checks\":[", stdout);
}

void vet_report_type(struct vet_report *report, const char *type)
{
    if (!report->json)
        printf("handler type %s\n", type);
}

void vet_report_result(struct vet_report *report, const char *type, const struct vet_result *result)
{
    bool first = report->ok + report->failed + report->skipped == 0;
    ++*(result->verdict == VET_OK     ? &report->ok
        : result->verdict == VET_FAIL ? &report->failed
                                      : &report->skipped);
    if (!report->json) {
        printf("  %-8s %-12s ", names[result->verdict], result->name);
        print_shown(result->words[0] && result->verdict == VET_SKIPPED &&
                            strcmp(result->words, report->reason) == 0
                        ? "for the same reason"
                        : result->words);
        putchar('\n');
        if (result->verdict == VET_SKIPPED)
            memcpy(report->reason, result->words, sizeof report->reason);
        print_heard(result->heard);
        return;
    }
    fputs(first ? "\n {" : ",\n {", stdout);
    print_json("type", type ? type : "");
    putchar(',');
    print_json("check", result->name);
    putchar(',');
    print_json("verdict", names[result->verdict]);
    putchar(',');
    print_json("words", result->words);
    putchar('}');
}

bool vet_report_end(struct vet_report *report)
{
    bool good = !report->failed && !(report->strict && report->skipped);
    if (report->json)
        printf("],\n\"ok\":%u,\"failed\":%u,\"skipped\":%u,\"good\":%s}\n", report->ok, report->failed,
               report->skipped, good ? "true" : "false");
    else
        printf("%s: %u ok, %u FAIL, %u skipped\n", good ? "good" : "not good", report->ok, report->failed,
               report->skipped);
    return good;
}
