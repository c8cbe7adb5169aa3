/* The check of --fuzz: life cycles of random calls with random batches. The calls depend only on the seed, not
 * on what the handler returns. */

#include <inttypes.h>
#include <stdio.h>

#include "probe.h"

enum { LIVES = 12, MAX_CALLS = 60 };

static struct {
    uint64_t seed;
    uint32_t life, calls;
    uint64_t digest; /* of all random numbers drawn */
    bool finished;   /* the handler has returned FAILED */
} fuzz;

static uint64_t draw(uint64_t *state)
{
    uint64_t drawn = vet_batches_draw(state);
    fuzz.digest = (fuzz.digest ^ drawn) * UINT64_C(1099511628211);
    return drawn;
}

/* Emits a batch once; the samples that are not done are discarded. */
static void emit_once(struct vet_probe *probe, struct vet_recipe recipe)
{
    weir_outcome outcome;
    const weir_batch *batch = vet_batches_make(&recipe);
    vet_probe_emit(probe, batch, &outcome);
    vet_batches_end(batch);
    probe->delivered += outcome.done;
    fuzz.finished = outcome.code == WEIR_OUTCOME_FAILED;
    if (outcome.code == WEIR_OUTCOME_REOPEN)
        vet_probe_close(probe);
}

static struct vet_recipe draw_recipe(const struct vet_probe *probe, uint64_t *state)
{
    uint64_t size = draw(state), event = draw(state), flavour = draw(state), seed = draw(state);
    uint32_t most = size % 10 == 0 ? 3000 : 40;
    return (struct vet_recipe){
        .count = 1 + (uint32_t)((size >> 8) % most),
        .event = (uint32_t)(event % 4 == 0 ? event >> 32 : event >> 60) % 200,
        .kinds = probe->type->kinds,
        .flavour = (enum vet_flavour)(flavour % 4),
        .seed = seed,
        .sequence = probe->sequence,
    };
}

static void act(struct vet_probe *probe, uint64_t *state)
{
    static const int64_t timeouts_ms[] = {0, 1, 20, 1000, -1};
    uint64_t what = draw(state), detail = draw(state);
    struct vet_recipe recipe = draw_recipe(probe, state);
    if (fuzz.finished || (!probe->open && !vet_probe_open(probe)))
        return;
    switch (what % 16) {
    case 0: vet_probe_close(probe); break;
    case 1: vet_probe_wake(probe, WEIR_WAKE_RELOAD); break;
    case 2: vet_probe_wake(probe, WEIR_WAKE_TIMER); break;
    case 3:
    case 4: vet_probe_flush(probe, timeouts_ms[detail % 5]); break;
    default: probe->sequence += recipe.count; emit_once(probe, recipe);
    }
}

static void live_randomly(struct vet_probe *probe)
{
    uint64_t life = fuzz.seed ^ ((uint64_t)(fuzz.life + 1) << 32), state = vet_batches_draw(&life);
    uint32_t calls = (uint32_t)(draw(&state) % MAX_CALLS);
    fuzz.finished = false;
    for (uint32_t i = 0; i < calls; i++, fuzz.calls++)
        act(probe, &state);
    vet_probe_close(probe);
}

static void check_fuzz(const struct vet_subject *subject)
{
    uint64_t delivered = 0;
    fuzz.seed = subject->seed;
    for (fuzz.life = 0; fuzz.life < LIVES; fuzz.life++) {
        struct vet_probe probe;
        vet_probe_create(&probe, subject, NULL);
        vet_probe_on_worker(live_randomly, &probe);
        delivered += probe.delivered;
        vet_probe_destroy(&probe);
    }
    vet_pass("seed %" PRIu64 ": %d life cycles of %u calls in all, schedule %016" PRIx64 ", %" PRIu64
             " samples done",
             subject->seed, LIVES, fuzz.calls, fuzz.digest, delivered);
}

const struct vet_check vet_check_fuzz = {"fuzz", check_fuzz, "outcomes", VET_LIFE | VET_FLUSH | VET_WAKE,
                                         false};
