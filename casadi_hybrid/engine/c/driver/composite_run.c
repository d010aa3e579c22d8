/* Runs by composite steps, where there are equations alone in variables without bounds. */
#include <math.h>
#include <string.h>

#include "driver/driver.h"

/* Begins at cold->at. */
static void begin(hybrid_cold *cold) {
    hybrid_composite *one = hybrid_composite_of(cold);
    double size = 0.5 * hybrid_norm(cold->plan->n, cold->at->of.w);
    hybrid_begin_guards(size > 1.0 ? size : 1.0, 0, &one->of);
    one->modelled = 0;
    hybrid_decompose_A(cold, &cold->at->of, HYBRID_LOOKAHEAD_RANK_TOLERANCE, &one->here);
    hybrid_fit(cold, &cold->at->of, &one->here, cold->now.y);
}

/* Whether multipliers, which are the user's where rows are as they are, have grown beyond the limit. */
static int is_without_multipliers(const hybrid_cold *cold) {
    const hybrid_point *at = &cold->at->of;
    double slope = hybrid_largest(cold->plan->n, at->gradient);
    if (!cold->attempt->unscaled) return 0;
    if (slope < cold->form.scale_f) slope = cold->form.scale_f;
    return hybrid_largest(cold->plan->m, cold->now.y) > cold->attempt->divergence * slope;
}

static int advance(hybrid_cold *cold) {
    hybrid_sight sight;
    int status;
    status = hybrid_see(cold, &sight);
    if (!status && sight.merit <= 1.0) sight.leaves = !hybrid_at_rest(cold, &status);
    if (status) return hybrid_end_there(cold, status);
    status = hybrid_record(cold, &sight);
    if (status != HYBRID_PAUSED) return status;
    if (is_without_multipliers(cold)) {
        const int feasible = sight.of.feasibility <= cold->numbers->feasibility;
        return hybrid_end_there(cold, feasible ? HYBRID_STALLED : HYBRID_DIVERGED);
    }
    if (hybrid_extrapolate(cold)) {
        begin(cold);
        status = HYBRID_SOLVED;
    } else {
        status = hybrid_composite_step(cold);
    }
    if (!status) cold->now.t++;
    return hybrid_went(cold, &sight, status);
}

int hybrid_composite_steps(const hybrid_plan *plan, const hybrid_functions *functions,
                           const hybrid_numbers *numbers, const hybrid_attempt *attempt,
                           void *bytes, double *doubles, int *ints, hybrid_state *state,
                           hybrid_answer *answer) {
    hybrid_cold *cold = bytes;
    hybrid_composite *one = hybrid_composite_of(cold);
    hybrid_arena arena = {0, 0, 0, 0};
    int status;
    arena.doubles = doubles;
    arena.ints = ints;
    status = hybrid_begin(plan, functions, numbers, attempt, 1, bytes, &arena, state, answer);
    memset(one, 0, sizeof *one);
    hybrid_place_composite(plan, &arena, one);
    if (status) return answer->status = status;
    hybrid_set(plan->n, cold->work, cold->at->of.w);
    if (hybrid_visit_problem(cold, cold->at)) return answer->status = HYBRID_UNDEFINED;
    cold->now.theta_start = cold->at->theta;
    cold->now.t = attempt->t0;
    begin(cold);
    memset(cold->now.z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(cold->now.z_upper, 0, (size_t)plan->n * sizeof(double));
    while ((status = advance(cold)) == HYBRID_PAUSED) {}
    return hybrid_ended(cold, status);
}
