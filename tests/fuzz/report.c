/* Reports that `weir summary` reads: what it accepts and merges is read again as the same nodes, and merged
 * again as the same text. */

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>

#include "common/command.h"
#include "common/figures.h"
#include "fuzz.h"
#include "statistics.h"
#include "summary/report_document.h"
#include "summary/report_table.h"
#include "text/buffer.h"
#include "text/utf8.h"

/* ---- The rest of the command ----------------------------------------------------------------- */

int command_fail(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    FUZZ_CHECK(vsnprintf(text, sizeof text, format, arguments) > 0);
    va_end(arguments);
    return EXIT_FAILURE;
}

void command_out_of_memory(void)
{
    abort();
}

void command_put_text(struct wr_buffer *out, const char *text)
{
    wr_utf8_show(out, text, strlen(text), 0);
}

void statistics_add(struct statistics *statistics, const struct wr_parse_record *record, const char *group)
{
    (void)statistics;
    FUZZ_CHECK(!group && record->count == 1 && record->values->name);
    FUZZ_CHECK(record->label_count >= 1 && record->label_count <= WR_PARSER_LABELS);
    for (size_t i = 0; i < record->label_count; i++)
        FUZZ_CHECK(record->labels[i].key && record->labels[i].value);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static int is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static void compare(const struct report_document_node *a, const struct report_document_node *b)
{
    FUZZ_CHECK(strcmp(a->name, b->name) == 0 && a->count == b->count);
    for (size_t i = 0; i < a->count * NODE_KEYS; i++)
        FUZZ_CHECK(is_same(a->reports[i], b->reports[i]));
    for (size_t i = 0; i < NODE_FIGURES; i++)
        FUZZ_CHECK(is_same(a->figures[i], b->figures[i]) || isinf(a->figures[i]));
}

/* json-c takes code points like U+2D800, whose low 16 bits are those of a surrogate, for one that is alone when
 * they are written as two escapes, and reads them as U+FFFD. */
static bool has_name_for_json_c(const struct report_document_node *node)
{
    const unsigned char *at = (const unsigned char *)node->name;
    for (; *at; at++)
        if (*at >= 0xf0 && (at[1] & 0x0f) == 0x0d && at[2] & 0x20)
            return false;
    return true;
}

static void check_again(const struct report_documents *first, const struct wr_buffer *merged)
{
    struct report_documents second = {0};
    struct wr_buffer again = {0};
    FUZZ_CHECK(report_document_is(merged->data, merged->length));
    FUZZ_CHECK(report_document_read(&second, "merged", merged->data, merged->length));
    FUZZ_CHECK(second.count == first->count);
    for (size_t i = 0; i < first->count; i++)
        compare(&first->nodes[i], &second.nodes[i]);
    FUZZ_CHECK(report_merge_put(&again, &second));
    FUZZ_CHECK(again.length == merged->length && memcmp(again.data, merged->data, again.length) == 0);
    wr_buffer_fini(&again);
    report_documents_cut(&second, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct figures_screen screen = {.columns = 100};
    struct report_documents documents = {0};
    struct wr_buffer out = {0};
    char *copy = malloc(size + 1); /* of its own size, so that a read behind it is found */
    FUZZ_CHECK(copy);
    memcpy(copy, data, size);
    if (report_document_is(copy, size) && report_document_read(&documents, "report", copy, size)) {
        FUZZ_CHECK(documents.count > 0);
        report_document_add(&documents, 0, NULL);
        report_table_put(&out, &documents, &screen);
        wr_buffer_clear(&out);
        bool can_be_read = true;
        for (size_t i = 0; i < documents.count; i++)
            can_be_read &= has_name_for_json_c(&documents.nodes[i]);
        if (report_merge_put(&out, &documents) && can_be_read)
            check_again(&documents, &out);
    }
    wr_buffer_fini(&out);
    report_documents_cut(&documents, 0);
    free(copy);
    return 0;
}
