/* Documents: an accepted text is the tree that json-c parses, with the right places. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "config/document.h"
#include "text/error.h"
#include "fuzz.h"
#include "text/json.h"

static void compare(const struct wr_node *node, struct json_object *other);

static void compare_object(const struct wr_node *node, struct json_object *other)
{
    size_t count = 0;
    for (const struct wr_node *member = node->first; member; member = member->next, count++) {
        struct json_object *same;
        FUZZ_CHECK(member->parent == node && member->key);
        FUZZ_CHECK(json_object_object_get_ex(other, member->key, &same));
        FUZZ_CHECK(wr_node_member(node, member->key) == member);
        FUZZ_CHECK(node->document->text[member->key_offset] == '"');
        compare(member, same);
    }
    FUZZ_CHECK(count == (size_t)json_object_object_length(other));
}

static void compare_array(const struct wr_node *node, struct json_object *other)
{
    size_t count = 0;
    for (const struct wr_node *member = node->first; member; member = member->next, count++) {
        FUZZ_CHECK(member->parent == node && !member->key && member->index == count);
        compare(member, json_object_array_get_idx(other, count));
    }
    FUZZ_CHECK(count == json_object_array_length(other));
}

/* json-c truncates integers to 64 bits: only those that fit are compared. */
static void compare_number(const struct wr_node *node, struct json_object *other)
{
    const char *at = node->document->text + node->offset;
    FUZZ_CHECK(strncmp(at, node->text, strlen(node->text)) == 0);
    if (json_object_is_type(other, json_type_double))
        FUZZ_CHECK(strtod(node->text, NULL) == json_object_get_double(other));
    else if (strlen(node->text) < 18)
        FUZZ_CHECK(strtoll(node->text, NULL, 10) == json_object_get_int64(other));
}

static void compare_string(const struct wr_node *node, struct json_object *other)
{
    size_t length = (size_t)json_object_get_string_len(other);
    FUZZ_CHECK(node->document->text[node->offset] == '"');
    FUZZ_CHECK(strlen(node->text) == length);
    FUZZ_CHECK(memcmp(node->text, json_object_get_string(other), length) == 0);
}

static void compare(const struct wr_node *node, struct json_object *other)
{
    switch (json_object_get_type(other)) {
    case json_type_null: FUZZ_CHECK(node->type == WR_NODE_NULL); break;
    case json_type_boolean:
        FUZZ_CHECK(node->type == WR_NODE_BOOL && node->truth == (bool)json_object_get_boolean(other));
        break;
    case json_type_double:
    case json_type_int: FUZZ_CHECK(node->type == WR_NODE_NUMBER), compare_number(node, other); break;
    case json_type_string: FUZZ_CHECK(node->type == WR_NODE_STRING), compare_string(node, other); break;
    case json_type_array: FUZZ_CHECK(node->type == WR_NODE_ARRAY), compare_array(node, other); break;
    case json_type_object: FUZZ_CHECK(node->type == WR_NODE_OBJECT), compare_object(node, other); break;
    }
}

/* json-c accepts comments, but finds the wrong end of some: of "/" and three stars. */
static void blank_comments(char *at)
{
    bool in_string = false;
    for (; *at; at++) {
        if (*at == '"')
            in_string = !in_string;
        else if (in_string && *at == '\\' && at[1])
            at++;
        if (in_string || *at != '/' || (at[1] != '/' && at[1] != '*'))
            continue;
        const char *end = at[1] == '/' ? strchr(at, '\n') : strstr(at + 2, "*/");
        size_t length = !end ? strlen(at) : (size_t)(end - at) + (at[1] == '*' ? 2 : 0);
        memset(at, ' ', length);
        at += length - 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wr_error error = {0};
    char *text = calloc(1, size + 1); /* NUL-terminated: json-c needs that after a number at the end */
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    struct wr_document *document = wr_document_read_text("TEXT", text, size, &error);
    FUZZ_CHECK((document != NULL) == (error.code == 0));
    if (document) {
        blank_comments(text);
        struct json_tokener *tokener = json_tokener_new_ex(WR_JSON_DEPTH_MAX + 2);
        struct json_object *other = json_tokener_parse_ex(tokener, text, (int)size + 1);
        FUZZ_CHECK(json_tokener_get_error(tokener) == json_tokener_success);
        compare(document->root, other);
        json_object_put(other);
        json_tokener_free(tokener);
        wr_document_drop(document);
    }
    free(text);
    return 0;
}
