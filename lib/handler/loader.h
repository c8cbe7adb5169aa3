/* loader: why dlopen refuses a shared object. */
#ifndef WR_LOADER_H
#define WR_LOADER_H

struct wr_error;

/* Right after dlopen of `path` has failed: sets the error to the path and the reason. */
void wr_loader_explain(const char *path, struct wr_error *error);

#endif
