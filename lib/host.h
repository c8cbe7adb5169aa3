/* host: the core's services as a handler calls them, for one instance. */
#ifndef WR_HOST_H
#define WR_HOST_H

struct wr_instance;

/* Fills instance->host. */
void wr_host_init(struct wr_instance *instance, const char *handler);

#endif
