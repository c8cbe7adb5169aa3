/* The service numbers/1, and the one of the test kit: both write and read the same, in any locale. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include <weir/test_clock.h>

#include "../../support/comma_locale.h"
#include "../../support/temp_folder.h"
#include "handler/numbers.h"

static weir_test_clock clock;

/* The service, and that of the kit. */
static const weir_numbers *service(bool is_kit)
{
    weir_test_clock_init(&clock, NULL, "test");
    return is_kit ? clock.host.service(&clock.host, WEIR_SERVICE_NUMBERS) : wr_numbers_service();
}

static void check_written(double value, const char *text)
{
    for (int is_kit = 0; is_kit < 2; is_kit++) {
        char out[WEIR_NUMBER_ROOM];
        size_t length = service(is_kit)->put(&clock.host, out, value);
        cr_assert_str_eq(out, text, "%d: %s in place of %s", is_kit, out, text);
        cr_assert_eq(length, strlen(text));
    }
}

static void check_read(const char *text, double wanted)
{
    for (int is_kit = 0; is_kit < 2; is_kit++) {
        double value = -1;
        cr_assert(service(is_kit)->read(&clock.host, text, &value), "%d: %s", is_kit, text);
        cr_assert_eq(memcmp(&value, &wanted, sizeof value), 0, "%d: %s is %a, not %a", is_kit, text, value,
                     wanted);
    }
}

static void check_refused(const char *text)
{
    for (int is_kit = 0; is_kit < 2; is_kit++) {
        double value = -1;
        cr_assert_not(service(is_kit)->read(&clock.host, text, &value), "%d: %s", is_kit, text);
        cr_assert_eq(value, -1);
    }
}

static void check_all(void)
{
    static const struct {
        double value;
        const char *text;
    } pairs[] = {{0, "0"},
                 {-0.0, "-0"},
                 {3, "3"},
                 {-120, "-120"},
                 {49.403, "49.403"},
                 {0.1, "0.1"},
                 {0.012, "0.012"},
                 {0.0001, "0.0001"},
                 {0.00001, "1e-05"},
                 {1.5e-7, "1.5e-07"},
                 {9999999999999998, "9999999999999998"},
                 {1e16, "1e+16"},
                 {1.25e100, "1.25e+100"},
                 {0x1p-1074, "5e-324"},
                 {0x1.fffffffffffffp1023, "1.7976931348623157e+308"},
                 {1e15, "1000000000000000"}};
    static const char *const refused[] = {"",      "-",      ".",     "e5",   "1e",  "1e+", "1,5",
                                          " 1",    "1 ",     "+1",    "0x10", "inf", "NaN", "Infinity",
                                          "1e999", "-1e999", "1.5.5", "1f",   "--1"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check_written(pairs[i].value, pairs[i].text);
        check_read(pairs[i].text, pairs[i].value);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(refused[i]);
    check_read("1.", 1);
    check_read(".5", 0.5);
    check_read("00012.50E+1", 125);
    check_read("1e-999", 0);
}

Test(numbers, are_written_and_read)
{
    check_all();
    check_written(NAN, "NaN");
    check_written(INFINITY, "Infinity");
    check_written(-INFINITY, "-Infinity");
}

Test(numbers, are_the_same_with_a_decimal_comma)
{
    make_comma_locale(path_in_folder("."));
    set_comma_locale();
    check_all();
    setlocale(LC_ALL, "C");
    remove_folder();
}

Test(numbers, of_the_kit_are_those_of_the_core)
{
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        double value;
        char core[WEIR_NUMBER_ROOM], kit[WEIR_NUMBER_ROOM];
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = i % 2 ? state : (state >> 12) | (uint64_t)(1023 - 20 + i % 60) << 52;
        memcpy(&value, &bits, sizeof value);
        service(false)->put(&clock.host, core, value);
        service(true)->put(&clock.host, kit, value);
        cr_assert_str_eq(kit, core, "%a: %s in place of %s", value, kit, core);
        if (isfinite(value))
            check_read(core, value);
    }
}
