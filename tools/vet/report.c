#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "text/buffer.h"
#include "text/utf8.h"

static const char *const names[] = {"none", "ok", "FAIL", "skipped"};

/* Text from a plugin may contain control characters and invalid UTF-8. */
static void print_escaped(const char *text)
{
    struct wr_buffer shown = {0};
    wr_utf8_show(&shown, text, strlen(text), 0);
    fputs(wr_buffer_text(&shown) ? shown.data : "", stdout);
    wr_buffer_fini(&shown);
}

/* The documents are installed with weir. */
static void print_guide(const struct vet_report *report, const struct vet_result *result)
{
    if (result->verdict == VET_FAIL && *result->guide)
        printf("           see %s-guide.md#%s\n", report->kind, result->guide);
}

/* Prints the last lines that a failed child wrote to standard error. */
static void print_stderr_tail(const char *stderr_tail)
{
    while (*stderr_tail) {
        char line[400];
        size_t length = strcspn(stderr_tail, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1),
                 stderr_tail);
        if (*line) {
            fputs("           | ", stdout);
            print_escaped(line);
            putchar('\n');
        }
        stderr_tail += length + (stderr_tail[length] == '\n');
    }
}

void vet_report_begin(struct vet_report *report, const struct vet_subject *subject)
{
    report->kind = subject->is_source ? "source" : "handler";
    if (!report->json) {
        print_escaped(subject->path);
        putchar('\n');
        return;
    }
    report->document = json_start_object();
    json_add_text(report->document, "file", subject->path);
    report->checks = json_add_array(report->document, "checks");
}

void vet_report_type(struct vet_report *report, const char *type)
{
    if (!report->json)
        printf("%s type %s\n", report->kind, type);
}

void vet_report_result(struct vet_report *report, const char *type, const struct vet_result *result)
{
    ++*(result->verdict == VET_OK     ? &report->ok
        : result->verdict == VET_FAIL ? &report->failed
                                      : &report->skipped);
    if (!report->json) {
        printf("  %-8s %-12s ", names[result->verdict], result->name);
        print_escaped(result->message[0] && result->verdict == VET_SKIPPED &&
                              strcmp(result->message, report->reason) == 0
                          ? "for the same reason"
                          : result->message);
        putchar('\n');
        if (result->verdict == VET_SKIPPED)
            memcpy(report->reason, result->message, sizeof report->reason);
        print_stderr_tail(result->stderr_tail);
        print_guide(report, result);
        return;
    }
    struct json_object *check = json_add_object(report->checks, NULL);
    json_add_text(check, "type", type ? type : "");
    json_add_text(check, "check", result->name);
    json_add_text(check, "verdict", names[result->verdict]);
    json_add_text(check, "message", result->message);
    json_add_text(check, "guide", result->verdict == VET_FAIL ? result->guide : "");
}

bool vet_report_end(struct vet_report *report)
{
    bool passed = !report->failed && !(report->strict && report->skipped);
    if (!report->json) {
        printf("%s: %u ok, %u FAIL, %u skipped\n", passed ? "passed" : "failed", report->ok, report->failed,
               report->skipped);
        return passed;
    }
    json_add_count(report->document, "ok", report->ok);
    json_add_count(report->document, "failed", report->failed);
    json_add_count(report->document, "skipped", report->skipped);
    json_add_bool(report->document, "passed", passed);
    return json_print(report->document, JSON_INDENTED, EXIT_SUCCESS) == EXIT_SUCCESS && passed;
}
