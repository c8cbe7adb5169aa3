/* loader: why dlopen refuses a shared object, and what one that is loaded needs before it is called. */
#ifndef WR_LOADER_H
#define WR_LOADER_H

struct wr_error;

/* Right after dlopen of `path` has failed: sets the error to the path and the reason. */
void wr_loader_explain(const char *path, struct wr_error *error);

/* A shared object was loaded and has not been called yet: keeps those of its libraries that are known to
 * destroy themselves in an exit handler from doing so. */
void wr_loader_prepare(void *object);

#endif
