/* server: a threaded web server that measures each request, by route and status.
 *
 *     server [-p PORT] [-t THREADS]
 *
 * It listens on 127.0.0.1 and says on which port (0, the default: any). "/" says hello, "/slow" takes its time,
 * all else is not found. SIGTERM and SIGINT end it; it prints then how many requests it has answered. */

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

enum { MOST_THREADS = 64, REQUEST_ROOM = 4096 };

/* Labels must have few values: each set of them is a series of its own, here and at the destination. So a
 * request is labelled with the route that took it, not with the path that a client made up. */
struct route {
    const char *path, *body;
    int status;
    long pause_ms;
    weir_stream *stream; /* looked up once; any thread may use it */
};

static struct route routes[] = {
    {.path = "/", .body = "hello\n", .status = 200},
    {.path = "/slow", .body = "at last\n", .status = 200, .pause_ms = 20},
    {.path = NULL, .body = "not found\n", .status = 404}, /* all others */
};

static int listener;
static _Atomic long answered;

static void find_streams(void)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        char status[8];
        snprintf(status, sizeof status, "%d", routes[i].status);
        const weir_label labels[] = {{"route", routes[i].path ? routes[i].path : "other"}, {"status", status}};
        routes[i].stream = weir_get_stream_labeled("server.http", labels, 2);
        weir_describe(routes[i].stream, "latency", "ms", "from the first byte of the request to the answer");
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

/* Reads the head of a request; a client that sends none gets no answer. */
static int read_request(int client, char *request)
{
    size_t length = 0;
    while (length < REQUEST_ROOM - 1) {
        ssize_t count = recv(client, request + length, REQUEST_ROOM - 1 - length, 0);
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
    char request[REQUEST_ROOM], answer[256];
    const struct timeval patience = {.tv_sec = 5};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!read_request(client, request))
        return;
    double began = now_ms();
    const struct route *route = find_route(request);
    if (route->pause_ms)
        nanosleep(&(struct timespec){.tv_nsec = route->pause_ms * 1000000}, NULL);
    int length =
        snprintf(answer, sizeof answer, "HTTP/1.0 %d %s\r\nContent-Length: %zu\r\n\r\n%s", route->status,
                 route->status == 200 ? "OK" : "Not Found", strlen(route->body), route->body);
    ssize_t sent = send(client, answer, (size_t)length, MSG_NOSIGNAL);
    answered++;
    /* one event: all of it has the same time, and stays together in formats that have lines of several values
     */
    WEIR_EMIT(route->stream, {"latency", now_ms() - began}, {"bytes", sent > 0 ? (double)sent : 0});
}

/* Ends when the listener does. */
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
    pthread_t threads[MOST_THREADS];
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
    if (count < 1 || count > MOST_THREADS)
        return 2;

    /* blocked in all threads, waited for by this one: no handler, and none of a handler's limits */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);

    find_streams();
    if (!listen_on(port))
        return 1;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, accept_and_serve, NULL) != 0)
            return 1;
    sigwait(&ends, &signal);
    shutdown(listener, SHUT_RDWR); /* accept comes back with an error */
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%ld answered\n", answered);
    return 0; /* what was measured is delivered now */
}
