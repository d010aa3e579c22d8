/* Runs by composite steps, where there are equations alone in variables without bounds. */
#include <math.h>
#include <string.h>

#include "driver/driver.h"

static int advance(hybrid_cold *cold) {
    hybrid_sight sight;
    int status;
    cold->state->guards = hybrid_composite_of(cold)->of;
    status = hybrid_see(cold, &sight);
    if (!status && sight.merit <= 1.0) sight.leaves = !hybrid_at_rest(cold, &status);
    if (status) return status;
    status = hybrid_record(cold, &sight);
    if (status != HYBRID_PAUSED) return status;
    status = hybrid_composite_step(cold);
    if (!status) cold->now.t++;
    return hybrid_went(cold, &sight, status == HYBRID_NOT_NEARER ? HYBRID_ELSEWHERE : status);
}

int hybrid_composite_run(void *bytes) {
    hybrid_cold *cold = bytes;
    int status = HYBRID_PAUSED;
    double began = hybrid_time(cold->form.functions);
    cold->state->count = 0;
    while (status == HYBRID_PAUSED && cold->state->count < cold->state->capacity) {
        status = advance(cold);
        if (hybrid_time(cold->form.functions) - began >= cold->attempt->pause) break;
    }
    return hybrid_ended(cold, status);
}

int hybrid_composite_begin(const hybrid_plan *plan, const hybrid_functions *functions,
                           const hybrid_numbers *numbers, const hybrid_attempt *attempt,
                           void *bytes, double *doubles, int *ints, hybrid_state *state,
                           hybrid_answer *answer) {
    hybrid_cold *cold = bytes;
    hybrid_composite *one = hybrid_composite_of(cold);
    hybrid_arena arena = {0, 0, 0, 0};
    double size;
    int status;
    if (!hybrid_is_small(plan)) return answer->status = HYBRID_ELSEWHERE;
    arena.doubles = doubles;
    arena.ints = ints;
    status = hybrid_begin(plan, functions, numbers, attempt, 1, bytes, &arena, state, answer);
    memset(one, 0, sizeof *one);
    hybrid_place_composite(plan, &arena, one);
    if (status) return answer->status = status;
    hybrid_set(plan->n, cold->work, cold->at->of.w);
    if (hybrid_visit_problem(cold, cold->at)) return answer->status = HYBRID_UNDEFINED;
    size = 0.5 * hybrid_norm(plan->n, cold->at->of.w);
    one->of.radius = size > 1.0 ? size : 1.0;
    one->of.penalty = 1.0;
    one->of.goal = one->of.reach = -1.0;
    one->of.patience = HYBRID_SAFEGUARDS_PATIENCE;
    one->of.mark = one->of.error = INFINITY;
    cold->now.theta_start = cold->at->theta;
    cold->now.t = attempt->t0;
    hybrid_decompose_A(cold, &cold->at->of, &one->here);
    hybrid_fit(cold, &cold->at->of, &one->here, cold->now.y);
    memset(cold->now.z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(cold->now.z_upper, 0, (size_t)plan->n * sizeof(double));
    return answer->status = HYBRID_PAUSED;
}
