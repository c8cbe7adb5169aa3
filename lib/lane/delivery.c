#include "lane/delivery.h"

#include "text/common.h"
#include "text/utf8.h"

/* ---- The connection -------------------------------------------------------------------------- */

void wr_delivery_closed(struct wr_delivery *delivery)
{
    delivery->connection = WR_DELIVERY_CLOSED;
    delivery->needs_flush = false;
}

void wr_delivery_break(struct wr_delivery *delivery)
{
    if (wr_delivery_is_open(delivery))
        delivery->connection = WR_DELIVERY_BROKEN;
}

/* ---- Attempts -------------------------------------------------------------------------------- */

void wr_delivery_set_error(struct wr_delivery *delivery, int code, const char *reason, int64_t now_ns)
{
    delivery->last_error_code = code;
    if (!code)
        return;
    delivery->last_error_ns = now_ns;
    /* it may contain what a server sent */
    wr_utf8_show_part(delivery->last_error, sizeof delivery->last_error,
                      reason[0] ? reason : "no reason given");
}

static void set_failing(struct wr_delivery *delivery, enum wr_delivery_health health, int64_t retry_at_ns,
                        int64_t now_ns)
{
    if (!wr_delivery_is_failing(delivery))
        delivery->failing_since_ns = now_ns;
    delivery->health = health;
    delivery->retry_at_ns = retry_at_ns;
}

void wr_delivery_fail(struct wr_delivery *delivery, const weir_outcome *outcome, int64_t now_ns)
{
    bool is_hopeless = outcome->flags & WEIR_OUTCOME_GIVES_UP;
    int64_t delay_ns = wr_backoff_fail(&delivery->backoff, wr_backoff_requested_ns(outcome->retry_after_ms));
    delivery->retries++;
    set_failing(delivery, is_hopeless ? WR_DELIVERY_HOPELESS : WR_DELIVERY_FAILS, now_ns + delay_ns, now_ns);
}

bool wr_delivery_succeed(struct wr_delivery *delivery)
{
    bool was_failing = wr_delivery_is_failing(delivery);
    wr_backoff_succeed(&delivery->backoff);
    delivery->health = WR_DELIVERY_WORKS;
    delivery->retry_at_ns = 0;
    return was_failing;
}

void wr_delivery_give_up(struct wr_delivery *delivery, int error, int64_t now_ns)
{
    set_failing(delivery, WR_DELIVERY_GIVEN_UP, WR_NEVER, now_ns);
    wr_delivery_break(delivery);
    delivery->last_error_code = error;
}

void wr_delivery_hurry(struct wr_delivery *delivery)
{
    if (delivery->health != WR_DELIVERY_GIVEN_UP)
        delivery->retry_at_ns = 0;
}

bool wr_delivery_revive(struct wr_delivery *delivery)
{
    bool had_given_up = delivery->health == WR_DELIVERY_GIVEN_UP;
    if (had_given_up)
        delivery->health = WR_DELIVERY_FAILS;
    delivery->retry_at_ns = 0;
    return had_given_up;
}

void wr_delivery_replace(struct wr_delivery *delivery, const char *breach)
{
    wr_delivery_revive(delivery);
    delivery->faults_in_a_row = 0;
    delivery->breach = breach;
}

void wr_delivery_stop(struct wr_delivery *delivery)
{
    wr_delivery_hurry(delivery);
    if (delivery->health == WR_DELIVERY_HOPELESS)
        delivery->health = WR_DELIVERY_FAILS;
}
