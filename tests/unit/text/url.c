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
    static const char *const plain[] = {"http://127.0.0.1:8086/write",
                                        "https://[::1]:8428/",
                                        "http://host:9091/metrics/job@base64/Zm9v",
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
    cr_assert_str_eq(mask("http://:@host?x=1"), "http://***@host?x=***");
    cr_assert_str_eq(mask("user:pass@proxy:3128"), "***@proxy:3128");
}

Test(url, parameters_that_name_a_database_are_shown)
{
    cr_assert_str_eq(mask("http://u:p@h/write?db=x&rp=&precision=ns&p=geheim"),
                     "http://***@h/write?db=x&rp=&precision=ns&p=***");
    cr_assert_str_eq(mask("http://h/write?org=a%20b&bucket=c=d#e"), "http://h/write?org=a%20b&bucket=c=d#***");
    cr_assert_str_eq(mask("http://h/?db&dbx=1&xdb=2&DB=3&d%62=4&=5"),
                     "http://h/?***&dbx=***&xdb=***&DB=***&d%62=***&=***");
    cr_assert_str_eq(mask("postgres://user:pass@host/db?password=x&sslmode=y"),
                     "postgres://***@host/db?password=***&sslmode=***");
}

Test(url, the_values_of_other_parameters_are_masked)
{
    cr_assert_str_eq(mask("http://h/write?u=root&p=geheim&db=x"), "http://h/write?u=***&p=***&db=x");
    cr_assert_str_eq(mask("http://h/?access-token=a=b#c"), "http://h/?access-token=***#***");
    cr_assert_str_eq(mask("http://h?api_key=1&secret=&geheim"), "http://h?api_key=***&secret=***&***");
    cr_assert_str_eq(mask("http://h/?%74oken=1&&x=3&"), "http://h/?%74oken=***&&x=***&");
}
