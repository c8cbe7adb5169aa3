#include "segment/origin.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include "os/clock.h"
#include "text/hash.h"

#ifndef GRND_INSECURE /* glibc before 2.33 */
#define GRND_INSECURE 0x0004
#endif

static bool fill_randomly(void *bytes, size_t size, unsigned flags)
{
    ssize_t got;
    do
        got = getrandom(bytes, size, flags);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

/* Without getrandom: the 16 random bytes that the kernel gives each program (getauxval(3)), mixed with what
 * distinguishes this origin from the program's others and from those of its forked children. */
static void fill_by_mixing(uint64_t words[2])
{
    static _Atomic uint64_t made;
    const void *random = (const void *)getauxval(AT_RANDOM); // NOLINT(performance-no-int-to-ptr)
    uint64_t salt = (uint64_t)getpid() << 32 ^ atomic_fetch_add(&made, 1);
    words[0] = words[1] = 0;
    if (random)
        memcpy(words, random, 2 * sizeof *words);
    words[0] = wr_hash_mix(words[0] ^ (uint64_t)wr_clock_wall_ns(), salt ^ UINT64_C(0x9e3779b97f4a7c15));
    words[1] = wr_hash_mix(words[1] ^ (uint64_t)wr_clock_monotonic_ns(), salt ^ UINT64_C(0xc2b2ae3d27d4eb4f));
}

struct wr_origin wr_origin_new(void)
{
    struct wr_origin origin;
    uint64_t words[2];
    /* GRND_INSECURE: early in the machine's start, when GRND_NONBLOCK fails; not known before Linux 5.6 */
    if (!fill_randomly(words, sizeof words, GRND_NONBLOCK) &&
        !fill_randomly(words, sizeof words, GRND_INSECURE))
        fill_by_mixing(words);
    memcpy(origin.bytes, words, sizeof origin.bytes);
    return origin;
}

void wr_origin_put_text(const struct wr_origin *origin, char text[WR_ORIGIN_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < sizeof origin->bytes; i++) {
        text[2 * i] = digits[origin->bytes[i] >> 4];
        text[2 * i + 1] = digits[origin->bytes[i] & 15];
    }
    text[WR_ORIGIN_TEXT - 1] = '\0';
}
