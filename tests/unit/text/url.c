#include <criterion/criterion.h>

#include "text/buffer.h"
#include "text/url.h"

static struct wr_buffer buffer;

static void free_buffer(void)
{
    wr_buffer_fini(&buffer);
}

TestSuite(url, .fini = free_buffer);

static const char *mask(const char *url)
{
    wr_buffer_clear(&buffer);
    wr_url_mask(&buffer, url);
    return wr_buffer_text(&buffer);
}

Test(url, a_url_without_secrets_is_shown_unchanged)
{
    static const char *const plain[] = {"http://127.0.0.1:8086/write?db=bench&precision=ns",
                                        "https://[::1]:8428/",
                                        "http://host:9091/metrics/job@base64/Zm9v",
                                        "http://host/?a=1@2#frag@ment",
                                        "host:3128",
                                        "http://",
                                        "",
                                        "no url at all"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        cr_assert_str_eq(mask(plain[i]), plain[i]);
}

Test(url, user_and_password_are_masked)
{
    cr_assert_str_eq(mask("http://user:pass@host:8086/write"), "http://***@host:8086/write");
    cr_assert_str_eq(mask("https://token@host"), "https://***@host");
    cr_assert_str_eq(mask("http://u@ser:p@ss@host/a@b"), "http://***@host/a@b");
    cr_assert_str_eq(mask("http://:@host?x=1"), "http://***@host?x=1");
    cr_assert_str_eq(mask("user:pass@proxy:3128"), "***@proxy:3128");
}

Test(url, parameters_with_names_of_secrets_are_masked)
{
    cr_assert_str_eq(mask("http://h/write?u=root&p=geheim&db=x"), "http://h/write?u=root&p=***&db=x");
    cr_assert_str_eq(mask("http://h/?TOKEN=a=b#c"), "http://h/?TOKEN=***#c");
    cr_assert_str_eq(mask("http://h?api_key=1&secret=&password"), "http://h?api_key=***&secret=***&password");
    cr_assert_str_eq(mask("http://h/?pp=1&tokens=2&&x=3&"), "http://h/?pp=1&tokens=2&&x=3&");
}
