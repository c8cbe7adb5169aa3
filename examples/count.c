/* count: counts the requests of an access log, in total and by route and status.
 *
 *     count < ACCESS_LOG
 *
 * A line is METHOD PATH STATUS, like "GET /index 200"; others are counted as malformed. */

#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

/* Each combination of labels is a series, here and at the destination. So a label has few values: the first
 * part of the path instead of the path, and the class of the status instead of the status. */
static void count_request(weir_stream *stream, char *path, int status)
{
    char class_of_status[] = "5xx";
    class_of_status[0] = (char)('0' + status / 100);
    path[1 + strcspn(path + 1, "/?")] = '\0';
    const weir_label labels[] = {{"route", path}, {"status", class_of_status}};
    weir_add_value_labeled(stream, "requests.by_route", 1, labels, 2);
}

int main(void)
{
    char line[1024], path[200];
    int status;
    weir_stream *stream = weir_get_stream("access");

    /* The handle saves the look-up for each line. */
    weir_metric *requests = weir_get_counter(stream, "requests");
    const weir_metric_spec counter = {.size = sizeof counter, .instrument = WEIR_COUNTER};
    weir_declare(stream, "requests.by_route", &counter); /* for all labels; it makes no series without them */
    weir_describe(stream, "requests", NULL, "all requests");

    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%*s %199s %d", path, &status) != 2 || path[0] != '/' || status < 100 ||
            status > 599) {
            weir_count(stream, "malformed", 1); /* declares the counter at its first use */
            continue;
        }
        weir_metric_add(requests, 1);
        count_request(stream, path, status);
    }
    return 0; /* weir delivers the values at exit */
}
