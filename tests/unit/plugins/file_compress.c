/* The compression of old files by the file handler, in a program that closes its descriptors meanwhile. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../../plugins/file/archive.h"
#include "../../../plugins/file/compress.h"
#include "../../support/temp_folder.h"

enum { OLD_BYTES = 1 << 20 }; /* more than one step compresses */

static struct compression compression;
static int strangers;

static const void *no_service(const weir_host *host, const char *id)
{
    (void)host, (void)id;
    return NULL;
}

static const weir_host host = {.size = sizeof host, .service = no_service};

static off_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

/* Begins to compress a file; then both numbers are those of a file of the program. */
static void begin_and_reuse(void)
{
    static char old[OLD_BYTES];
    struct archive_file file = {.path = (char *)(uintptr_t)make_file_of("old", old, sizeof old, 0644),
                                .stamped = true};
    wr_compress_init(&compression, &host);
    cr_assert_eq(wr_compress_begin(&compression, &file), COMPRESS_WORKING);
    cr_assert_eq(wr_compress_step(&compression), COMPRESS_WORKING);
    strangers = open(make_file("strangers", "mine", 0600), O_RDWR | O_CLOEXEC);
    cr_assert_eq(dup2(strangers, compression.in.fd), compression.in.fd);
    cr_assert_eq(dup2(strangers, compression.out.fd), compression.out.fd);
}

static void assert_untouched(const int numbers[2])
{
    for (int i = 0; i < 2; i++)
        cr_assert_neq(fcntl(numbers[i], F_GETFD), -1);
    cr_assert_eq(lseek(strangers, 0, SEEK_CUR), 0); /* shared: none was read */
    cr_assert_eq(size_of(path_in_folder("strangers")), 4);
    cr_assert_eq(size_of(path_in_folder("old")), OLD_BYTES);
    cr_assert_not(wr_compress_is_busy(&compression));
}

Test(file_compress, a_step_leaves_descriptors_that_were_reused_alone, .fini = remove_folder)
{
    begin_and_reuse();
    const int numbers[] = {compression.in.fd, compression.out.fd};
    cr_assert_eq(wr_compress_step(&compression), COMPRESS_DONE);
    assert_untouched(numbers);
}

Test(file_compress, a_stop_leaves_descriptors_that_were_reused_alone, .fini = remove_folder)
{
    begin_and_reuse();
    const int numbers[] = {compression.in.fd, compression.out.fd};
    wr_compress_stop(&compression);
    assert_untouched(numbers);
}

Test(file_compress, what_was_given_up_is_compressed_later, .fini = remove_folder)
{
    struct archive_file file = {.path = (char *)(uintptr_t)path_in_folder("old"), .stamped = true};
    enum compress_state state;
    begin_and_reuse();
    wr_compress_stop(&compression);
    for (state = wr_compress_begin(&compression, &file); state == COMPRESS_WORKING;)
        state = wr_compress_step(&compression);
    cr_assert_eq(state, COMPRESS_DONE);
    cr_assert_eq(size_of(file.path), -1);
    cr_assert_gt(size_of(path_in_folder("old.gz")), 0);
    cr_assert_eq(size_of(path_in_folder("old.gz.tmp")), -1);
}
