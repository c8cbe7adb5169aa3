/* servers: readers of the formats that are made for one server's protocol. Each is a function for `check` of
 * struct reader. */
#ifndef SERVERS_H
#define SERVERS_H

#include "readers.h"

void servers_check_influx(const struct reader *reader, const struct written *written, const char *text,
                          int first);
void servers_check_prometheus(const struct reader *reader, const struct written *written, const char *text,
                              int first);
void servers_check_graphite(const struct reader *reader, const struct written *written, const char *text,
                            int first);
void servers_check_statsd(const struct reader *reader, const struct written *written, const char *text,
                          int first);
void servers_check_mlbench(const struct reader *reader, const struct written *written, const char *text,
                           int first);

#endif
