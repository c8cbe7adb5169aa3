/* failures: what an error of a message means for its value. */
#ifndef KAFKA_FAILURES_H
#define KAFKA_FAILURES_H

#include <librdkafka/rdkafka.h>

enum failure {
    FAILURE_NONE,    /* delivered */
    FAILURE_REFUSED, /* the cluster will never take the message */
    FAILURE_SUSPECT, /* of all messages in a request, one of which may be at fault */
    FAILURE_RESEND,  /* not delivered; another attempt may succeed */
};

enum failure wr_failures_classify(rd_kafka_resp_err_t error);

#endif
