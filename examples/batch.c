/* batch: a tool for cron that processes files and reports failure if its measurements were not delivered.
 *
 *     batch [-j JOB] FILE ...
 *
 * It adds up the numbers in the files, one per line. Exit status: 0 success, 1 a file could not be read,
 * 2 usage error, 3 all files were processed, but not all values were delivered. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

enum { SUCCESS = 0, FAILED = 1, USAGE = 2, NOT_DELIVERED = 3, FLUSH_TIMEOUT_MS = 2000 };

/* The path is no label, since each would be a series of its own. */
static void add_lines(weir_stream *stream, int lines, const char *path)
{
    const weir_sample_spec spec = {
        .size = sizeof spec, .name = "file.lines", .kind = WEIR_KIND_INT, .integer = lines, .metadata = path};
    weir_add(stream, &spec);
}

/* On every return the guard adds file.duration.ms and file.success or file.failure. */
static int add_file(weir_stream *stream, const char *path, double *sum)
{
    char line[256];
    WEIR_PROF(prof, stream, "file");
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "batch: %s: %s\n", path, strerror(errno));
        weir_prof_fail(&prof);
        return FAILED;
    }
    int lines = 0;
    for (; fgets(line, sizeof line, file); lines++)
        *sum += strtod(line, NULL);
    fclose(file);
    add_lines(stream, lines, path);
    return SUCCESS;
}

/* Values are delivered at exit even without this call, but then a failure would not show in the exit status. */
static int deliver(void)
{
    switch (weir_flush(FLUSH_TIMEOUT_MS)) {
    case 0: return SUCCESS;
    case WEIR_ERR_SPOOLED: /* on disk: the next run delivers them */ return SUCCESS;
    default: fprintf(stderr, "batch: %s\n", weir_last_error()); return NOT_DELIVERED;
    }
}

int main(int argc, char **argv)
{
    const char *job = "batch";
    for (int option; (option = getopt(argc, argv, "j:")) != -1;) {
        if (option != 'j') {
            fputs("usage: batch [-j JOB] FILE ...\n", stderr);
            return USAGE;
        }
        job = optarg;
    }

    const weir_label labels[] = {{"job", job}};
    weir_stream *stream = weir_get_stream_labeled("batch", labels, 1);
    double sum = 0;
    int failed = 0;
    for (int i = optind; i < argc; i++)
        failed += add_file(stream, argv[i], &sum) != SUCCESS;

    WEIR_EMIT(stream, {"files", argc - optind}, {"files.failed", failed}, {"sum", sum});
    printf("%.15g\n", sum);
    int delivered = deliver();
    return failed ? FAILED : delivered;
}
