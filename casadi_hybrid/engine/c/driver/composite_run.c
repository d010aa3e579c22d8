/* Runs by composite steps, where there are equations alone in variables without bounds: see
 * trust_region/policy.c. */
#include <string.h>

#include "driver/driver.h"

/* Begins at run->at. */
static void begin(hybrid_run *run) {
    hybrid_composite *one = run->composite;
    double size = 0.5 * hybrid_norm(run->plan->n, run->at->of.w);
    hybrid_begin_policy(hybrid_max(size, 1.0), &one->of);
    hybrid_arrive(run);
}

/* Whether multipliers, the user's own where rows are as they are, have grown beyond the limit. */
static int is_without_multipliers(const hybrid_run *run) {
    const hybrid_point *at = &run->at->of;
    double slope = hybrid_largest(run->plan->n, at->gradient);
    if (!run->options->unscaled) return 0;
    if (slope < run->form.scale_f) slope = run->form.scale_f;
    return hybrid_largest(run->plan->m, run->now.y) > run->options->divergence * slope;
}

/* Inspects the iterate and takes a step. Returns HYBRID_PAUSED to go on. */
static int advance(hybrid_run *run) {
    hybrid_inspection seen;
    int status;
    status = hybrid_inspect(run, &seen);
    if (!status && seen.merit <= 1.0) seen.leaves = !hybrid_is_second_order(run, &status);
    if (status) return hybrid_end_run(run, status);
    status = hybrid_log_iterate(run, &seen);
    if (status != HYBRID_PAUSED) return status;
    if (seen.of.feasibility <= run->numbers->feasibility && is_without_multipliers(run))
        return hybrid_end_run(run, HYBRID_STALLED);
    if (hybrid_extrapolate(run)) {
        begin(run);
        status = HYBRID_SOLVED;
    } else {
        status = hybrid_trust_region_step(run);
    }
    if (!status) run->now.t++;
    return hybrid_after_step(run, &seen, status);
}

int hybrid_composite_steps(const hybrid_plan *plan, const hybrid_functions *functions,
                           const hybrid_numbers *numbers, const hybrid_run_options *options,
                           void *bytes, double *doubles, int *ints, hybrid_state *state,
                           hybrid_answer *answer) {
    hybrid_run *run = bytes;
    hybrid_composite *one = (hybrid_composite *)(run + 2); /* behind those of hybrid_begin */
    hybrid_arena arena = {doubles, ints, 0, 0};
    int status = hybrid_begin(plan, functions, numbers, options, bytes, &arena, state, answer);
    run->composite = one;
    memset(one, 0, sizeof *one);
    hybrid_place_composite(plan, &arena, one);
    if (status) return answer->status = status;
    hybrid_set(plan->n, run->work, run->at->of.w);
    if (hybrid_visit_problem(run, run->at)) return answer->status = HYBRID_UNDEFINED;
    run->now.theta_start = run->at->theta;
    run->f_start = run->at->of.f;
    run->now.t = options->t0;
    begin(run);
    memset(run->now.z_lower, 0, (size_t)plan->n * sizeof(double));
    memset(run->now.z_upper, 0, (size_t)plan->n * sizeof(double));
    while ((status = advance(run)) == HYBRID_PAUSED) {}
    if (status == HYBRID_SOLVED && !functions->secants) answer->order = HYBRID_NECESSARY;
    return hybrid_finish_run(run, status);
}
