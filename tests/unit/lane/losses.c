#include <criterion/criterion.h>

#include "lane/losses.h"

Test(losses, every_drop_reason_has_a_name)
{
    for (int i = 0; i <= WEIR_DROPPED_FILTERED; i++)
        cr_assert(wr_losses_name(i), "reason %d", i);
    cr_assert_str_eq(wr_losses_name(WEIR_DROPPED_FORK_UNSAFE), "fork_unsafe");
    cr_assert_null(wr_losses_name(WEIR_DROPPED_FILTERED + 1));
    cr_assert_null(wr_losses_name(WEIR_DROPPED_MAX));
    cr_assert_null(wr_losses_name(-1));
}
