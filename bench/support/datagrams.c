/* datagrams: sends statsd counters to a UDP port of loopback at a steady rate, in datagrams of 20 lines.
 *
 *     datagrams port=PORT rate=LINES_PER_SECOND values=LINES
 *
 * Each millisecond it sends what is due. Prints what it has sent, and at which rate. */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { LINES = 20, AT_A_TIME = 64, STEP_NS = 1000000 };

static const char line[] = "requests:1|c\n";

static long get(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return strtol(argv[i] + length + 1, NULL, 10);
    fprintf(stderr, "datagrams: %s=NUMBER is missing\n", name);
    exit(2);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int connect_to(long port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int size = 4 << 20, fd = socket(AF_INET, SOCK_DGRAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    perror("datagrams: connect");
    exit(1);
}

/* Sends that many datagrams. */
static void send_all(int fd, long count)
{
    static char text[LINES * (sizeof line - 1)];
    struct iovec part = {text, sizeof text - 1}; /* the last newline is not needed */
    struct mmsghdr messages[AT_A_TIME];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < LINES; i++)
        memcpy(text + (size_t)i * (sizeof line - 1), line, sizeof line - 1);
    for (int i = 0; i < AT_A_TIME; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    while (count > 0) {
        int sent = sendmmsg(fd, messages, count < AT_A_TIME ? (unsigned)count : AT_A_TIME, 0);
        if (sent < 0) {
            perror("datagrams: send");
            exit(1);
        }
        count -= sent;
    }
}

int main(int argc, char **argv)
{
    int fd = connect_to(get(argc, argv, "port"));
    double rate = (double)get(argc, argv, "rate") / LINES;
    long total = get(argc, argv, "values") / LINES, sent = 0;
    double start_s = now_s();
    while (sent < total) {
        struct timespec pause = {0, STEP_NS};
        long due = (long)((now_s() - start_s) * rate) + 1;
        if (due > total)
            due = total;
        if (due > sent)
            send_all(fd, due - sent);
        sent = due > sent ? due : sent;
        if (sent < total)
            nanosleep(&pause, NULL);
    }
    printf("{\"values\": %ld, \"rate\": %.0f}\n", total * LINES, (double)(total * LINES) / (now_s() - start_s));
    return 0;
}
