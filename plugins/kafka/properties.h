/* properties: settings of librdkafka that users may not set, because the handler's promises depend on them or
 * an option sets them. */
#ifndef KAFKA_PROPERTIES_H
#define KAFKA_PROPERTIES_H

/* Returns why a property is refused, for people; NULL: it may be set. */
const char *wr_properties_find_refusal(const char *name);

#endif
