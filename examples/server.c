/* server: a threaded web server that measures each request by route and status.
 *
 *     server [-p PORT] [-t THREADS]
 *
 * It listens on 127.0.0.1 and prints the port (0, the default: any free port). "/" returns a greeting, "/slow"
 * does so after a delay, all other paths return 404. SIGTERM and SIGINT end the program, which then prints how
 * many requests it has served. */

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

enum { MAX_THREADS = 64, REQUEST_BYTES = 4096 };

/* Labels must have few values: each combination is a separate series, here and at the destination. A request
 * is therefore labelled with its route, not with the path that the client sent. */
struct route {
    const char *path, *body;
    int status;
    long delay_ms;
    weir_stream *stream; /* looked up once, used by all threads */
};

static struct route routes[] = {
    {.path = "/", .body = "hello\n", .status = 200},
    {.path = "/slow", .body = "at last\n", .status = 200, .delay_ms = 20},
    {.path = NULL, .body = "not found\n", .status = 404}, /* all other paths */
};

static int listener;
static _Atomic long served;

static void find_streams(void)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        char status[8];
        snprintf(status, sizeof status, "%d", routes[i].status);
        const weir_label labels[] = {{"route", routes[i].path ? routes[i].path : "other"}, {"status", status}};
        routes[i].stream = weir_get_stream_labeled("server.http", labels, 2);
        weir_describe(routes[i].stream, "latency", "ms", "from the complete request to the response");
    }
}

static const struct route *find_route(const char *request)
{
    char path[64] = "";
    const struct route *route = routes;
    if (sscanf(request, "GET %63s ", path) != 1)
        path[0] = '\0';
    while (route->path && strcmp(route->path, path) != 0)
        route++;
    return route;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Reads the head of a request. Returns 1 if it is complete, otherwise 0: the client gets no response. */
static int read_request(int client, char *request)
{
    size_t length = 0;
    while (length < REQUEST_BYTES - 1) {
        ssize_t count = recv(client, request + length, REQUEST_BYTES - 1 - length, 0);
        if (count <= 0)
            return 0;
        length += (size_t)count;
        request[length] = '\0';
        if (strstr(request, "\r\n\r\n"))
            return 1;
    }
    return 0;
}

static void serve(int client)
{
    char request[REQUEST_BYTES], response[256];
    const struct timeval timeout = {.tv_sec = 5};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (!read_request(client, request))
        return;
    double start = now_ms();
    const struct route *route = find_route(request);
    if (route->delay_ms)
        nanosleep(&(struct timespec){.tv_nsec = route->delay_ms * 1000000}, NULL);
    int length =
        snprintf(response, sizeof response, "HTTP/1.0 %d %s\r\nContent-Length: %zu\r\n\r\n%s", route->status,
                 route->status == 200 ? "OK" : "Not Found", strlen(route->body), route->body);
    ssize_t sent = send(client, response, (size_t)length, MSG_NOSIGNAL);
    served++;
    /* one event: its values share one time, and one line in formats that write several values per line */
    WEIR_EMIT(route->stream, {"latency", now_ms() - start}, {"bytes", sent > 0 ? (double)sent : 0});
}

/* Returns when the listener is shut down. */
static void *accept_and_serve(void *unused)
{
    (void)unused;
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0)
            return NULL;
        serve(client);
        close(client);
    }
}

static int listen_on(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int yes = 1;
    address.sin_port = htons((uint16_t)atoi(port));
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        perror("server");
        return 0;
    }
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return 1;
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_THREADS];
    int count = 4, signal;
    const char *port = "0";
    for (int option; (option = getopt(argc, argv, "p:t:")) != -1;) {
        if (option == 'p')
            port = optarg;
        else if (option == 't')
            count = atoi(optarg);
        else
            return 2;
    }
    if (count < 1 || count > MAX_THREADS)
        return 2;

    /* blocked in all threads; this thread receives them with sigwait, so no signal handler is needed */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    find_streams();
    if (!listen_on(port))
        return 1;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, accept_and_serve, NULL) != 0)
            return 1;
    sigwait(&signals, &signal);
    shutdown(listener, SHUT_RDWR); /* accept returns an error */
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%ld requests served\n", served);
    return 0; /* weir delivers the values at exit */
}
