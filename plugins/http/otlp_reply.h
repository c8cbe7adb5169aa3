/* otlp_reply: what an OpenTelemetry receiver responds, in protobuf or JSON: a partial success, or why it
 * refuses everything. */
#ifndef HTTP_OTLP_REPLY_H
#define HTTP_OTLP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client_reply;
struct response;
struct response_request;

enum { OTLP_MESSAGE = 160 };

struct otlp_reply {
    uint32_t rejected;          /* data points; UINT32_MAX: more */
    char message[OTLP_MESSAGE]; /* of the receiver; "": none */
};

/* Reads the body of a 2xx response, as far as it is there. What is not one reads as a whole success, as the
 * standard wants. */
void wr_otlp_read_success(struct otlp_reply *reply, const char *body, size_t length);

/* Reads the message of the body of another response. Returns false if it is not protobuf with a message. */
bool wr_otlp_read_status(struct otlp_reply *reply, const char *body, size_t length);

/* As wr_response_classify, by the rules of the standard: only 429, 502, 503 and 504 are sent again. */
void wr_otlp_classify(const struct response_request *request, struct client_reply *reply,
                      struct response *response);

#endif
