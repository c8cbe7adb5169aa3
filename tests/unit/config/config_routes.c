/* config: the route of a group. */
#include "configs.h"

static struct wr_config *config;

static void set_up(void)
{
    config = make_from(
        "{\"groups\": {\"*\": \"default\", \"a\": \"of_a\", \"a.b\": [\"inherit\", \"of_b\"], \"a.b.c.d\": [],"
        "\"weir\": \"own\"}}");
}

static void tear_down(void)
{
    wr_config_drop(config);
}

TestSuite(config_routes, .init = set_up, .fini = tear_down);

Test(config_routes, a_groups_own_route_takes_precedence)
{
    cr_assert_str_eq(route_of(config, "a", false), "of_a");
    cr_assert_str_eq(route_of(config, "a.b", false), "inherit of_b");
    cr_assert_str_eq(route_of(config, "a.b.c.d", false), "");
    cr_assert_str_eq(route_of(config, "*", false), "default");
}

Test(config_routes, a_group_without_a_route_has_its_nearest_ancestors)
{
    cr_assert_str_eq(route_of(config, "a.x", false), "of_a");
    cr_assert_str_eq(route_of(config, "a.b.c", false), "inherit of_b");
    cr_assert_str_eq(route_of(config, "a.b.c.x.y", false), "inherit of_b");
    cr_assert_str_eq(route_of(config, "a.b.c.d.e.f", false), "");
}

Test(config_routes, a_group_without_ancestors_has_the_default)
{
    cr_assert_str_eq(route_of(config, "b", false), "default");
    cr_assert_str_eq(route_of(config, "b.a.b", false), "default");
}

Test(config_routes, a_common_prefix_does_not_make_an_ancestor)
{
    cr_assert_str_eq(route_of(config, "ab", false), "default");
    cr_assert_str_eq(route_of(config, "ab.c", false), "default");
    cr_assert_str_eq(route_of(config, "a.bc", false), "of_a");
    cr_assert_str_eq(route_of(config, "A", false), "default");
}

Test(config_routes, above_a_group_its_own_route_is_skipped)
{
    cr_assert_str_eq(route_of(config, "a", true), "default");
    cr_assert_str_eq(route_of(config, "a.b", true), "of_a");
    cr_assert_str_eq(route_of(config, "a.b.c.d", true), "inherit of_b");
    cr_assert_str_eq(route_of(config, "x", true), "default");
}

Test(config_routes, nothing_is_above_the_default)
{
    cr_assert_str_eq(route_of(config, "*", true), "-");
}

Test(config_routes, weirs_own_group_does_not_inherit_the_default)
{
    cr_assert_str_eq(route_of(config, "weir", false), "own");
    cr_assert_str_eq(route_of(config, "weir.lanes", false), "own");
    cr_assert_str_eq(route_of(config, "weir", true), "-");
    cr_assert_str_eq(route_of(config, "weir.lanes", true), "own");
    cr_assert_str_eq(route_of(config, "weird", false), "default");
    cr_assert_str_eq(route_of(config, "weir_x", false), "default");
    struct wr_config *other = make_from("{\"groups\": {\"*\": \"default\"}}");
    cr_assert_str_eq(route_of(other, "weir", false), "-");
    cr_assert_str_eq(route_of(other, "weir.lanes", false), "-");
    wr_config_drop(other);
}

Test(config_routes, without_routes_there_is_none)
{
    struct wr_config *empty = make_from("{}");
    cr_assert_str_eq(route_of(empty, "a.b", false), "-");
    cr_assert_str_eq(route_of(empty, "*", false), "-");
    cr_assert_str_eq(route_of(empty, "a", true), "-");
    wr_config_drop(empty);
}
