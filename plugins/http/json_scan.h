/* json_scan: reads JSON piece by piece, as it arrives, and reports what is in it. Needs little memory however
 * long the text is: of a string only the beginning is kept. Used for responses, which anybody may have sent. */
#ifndef HTTP_JSON_SCAN_H
#define HTTP_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_SCAN_DEPTH = 64, JSON_SCAN_TEXT = 200 };

enum json_scan_kind {
    JSON_SCAN_KEY,    /* of a member; `text` */
    JSON_SCAN_STRING, /* `text`; that of a long one is cut */
    JSON_SCAN_WORD,   /* a number, true, false or null; `text` */
    JSON_SCAN_OPEN,   /* an object or an array begins: it is at the next depth */
    JSON_SCAN_CLOSE,
};

struct json_scan {
    /* depth: 0 for the whole text; 1 for members and items of what it is. Returns false to stop. */
    bool (*found)(void *ctx, enum json_scan_kind kind, unsigned depth, const char *text);
    void *ctx;

    /* Private, all zeros at first. */
    enum {
        JSON_SCAN_VALUE,  /* a value has to follow */
        JSON_SCAN_FIRST,  /* a value, or the end of the array */
        JSON_SCAN_NAME,   /* a key */
        JSON_SCAN_MEMBER, /* a key, or the end of the object */
        JSON_SCAN_COLON,
        JSON_SCAN_NEXT, /* a comma, or the end of what is open */
        JSON_SCAN_IN_TEXT,
        JSON_SCAN_IN_ESCAPE,
        JSON_SCAN_IN_CODE,
        JSON_SCAN_IN_WORD,
        JSON_SCAN_END, /* only white space may follow */
        JSON_SCAN_FAILED,
    } state;
    bool is_key;
    unsigned depth, digits;
    uint32_t code;   /* of \u */
    uint64_t arrays; /* bit d: what is open at depth d is an array */
    unsigned length; /* of text */
    char text[JSON_SCAN_TEXT + 4];
};

/* Reads more of the text. Returns false if it is not JSON, or if `found` did: nothing more is to be read. */
bool wr_json_scan_read(struct json_scan *scan, const char *data, size_t length);

/* Whether the text was complete JSON. */
bool wr_json_scan_is_complete(const struct json_scan *scan);

#endif
