/* time: times how long files take to read, and how many bytes they have.
 *
 *     time FILE...
 *
 * For each file there are read.duration.ms, a histogram, and read.success or read.failure, which are counters.
 * The exit status is 1 if a file cannot be read. */

#include <stdio.h>

#include <weir/weir.h>

static weir_stream *stream;
static weir_metric *file_bytes;

/* Returns 0 if the file was read. */
static int read_file(const char *path)
{
    /* from here to the end of the function, by whichever way it is left */
    WEIR_PROF(measured, stream, "read");
    char block[65536];
    size_t total = 0, got;
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        weir_prof_fail(&measured);
        return 1;
    }
    while ((got = fread(block, 1, sizeof block, file)) > 0)
        total += got;
    int failed = ferror(file);
    if (failed)
        weir_prof_fail(&measured);
    else
        weir_metric_add(file_bytes, (double)total);
    fclose(file);
    return failed;
}

int main(int argc, char **argv)
{
    /* The upper bounds of the buckets. A system that stores histograms sums them up over processes, which it
     * could not do with percentiles. */
    static const double bounds[] = {1e3, 1e4, 1e5, 1e6, 1e7};
    const weir_metric_spec size = {
        .size = sizeof size,
        .instrument = WEIR_HISTOGRAM,
        .unit = "bytes",
        .help = "size of a file that was read",
        .buckets = bounds,
        .bucket_count = sizeof bounds / sizeof bounds[0],
    };
    int failed = 0;
    stream = weir_get_stream("files");
    if (weir_declare(stream, "file.bytes", &size))
        fprintf(stderr, "time: %s\n", weir_last_error());
    file_bytes = weir_get_metric(stream, "file.bytes");
    for (int i = 1; i < argc; i++)
        failed |= read_file(argv[i]);
    return failed != 0;
}
