/* The extrapolation along the ray of iterates that run away.
 *
 * Steps stay short, however far the iterates are, if the curvature of equations does not fade out,
 * as that of sin. Then x is stretched to the lengths 1e7, 1e9 and 1e11. Each stretched point is
 * brought back to c = 0 by Gauss-Newton steps in the metric of the distances to the bounds,
 *
 *     min |D dw|^2   s.t.   c + A dw = 0,     D = 1 / min(1, distance).
 *
 * The last point is taken if all three are feasible and f is negative and falls along the ray at
 * each. f has to double at least from each point to the next, and in the last stretch to grow by no
 * less than half the factor of the one before: an f that levels off further out does not pass. */
#include <math.h>

#include "driver/driver.h"

/* phase->trial becomes a feasible point near the w of phase->corrected. Returns 0, or 1 where the
 * steps find none. */
static int land(hybrid_phase *phase) {
    const hybrid_form *form = &phase->form;
    const hybrid_plan *plan = phase->plan;
    hybrid_point *at = &phase->trial->of;
    double *w = phase->corrected->of.w;
    for (int step = 0; step < HYBRID_RAY_STEPS; step++) {
        int result;
        for (int i = 0; i < plan->n; i++) w[i] = hybrid_clamp(w[i], form->lower[i], form->upper[i]);
        if (hybrid_evaluate_problem(phase, phase->corrected)) return 1;
        hybrid_move_slacks(plan, &phase->corrected->of, at->w);
        if (hybrid_evaluate_problem(phase, phase->trial)) return 1;
        if (hybrid_is_feasible(plan, phase->numbers, at, HYBRID_RAY_TEST_VIOLATION, phase->sizes))
            return 0;
        for (int i = 0; i < plan->n; i++) {
            double room = hybrid_min(hybrid_min(at->below[i], at->above[i]), 1.0);
            phase->D[i] = 1.0 / (room * room);
            phase->force[i] = 0.0;
        }
        /* Its inertia is that of its diagonal blocks, whatever the pivots look like. */
        result =
            hybrid_factor(plan, 0, phase->D, 0.0, at->A, HYBRID_INERTIA_DELTA_C, 0, &phase->kkt);
        form->answer->factors++;
        if (result == HYBRID_KKT_SINGULAR) return 1;
        if (hybrid_solve_kkt(plan, phase->force, at->c, &phase->kkt, phase->direction.dw,
                             phase->direction.dy))
            return 1;
        for (int i = 0; i < plan->n; i++) w[i] = at->w[i] + phase->direction.dw[i];
    }
    return 1;
}

/* phase->trial becomes the far end of the ray through phase->at. Returns whether that proves that f
 * has no bound. */
static int stretch(hybrid_phase *phase) {
    static const double lengths[] = HYBRID_RAY_LENGTHS;
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    double f = 0.0, growth = 2.0;
    for (int k = 0; k < HYBRID_COUNT(lengths); k++) {
        double factor = lengths[k] / hybrid_norm_inf(plan->n_x, at->x);
        for (int i = 0; i < plan->n; i++) phase->corrected->of.w[i] = at->w[i] * factor;
        if (land(phase)) return 0;
        at = &phase->trial->of;
        if (!(at->raw_f < 0.0) || !hybrid_falls_outwards(plan, at)) return 0;
        if (hybrid_norm_inf(plan->n_x, at->x) < 0.5 * lengths[k]) return 0; /* held back */
        if (f < 0.0) {
            if (!(at->raw_f <= growth * f)) return 0;
            growth = hybrid_max(growth, 0.5 * at->raw_f / f);
        }
        f = at->raw_f;
    }
    return 1;
}

int hybrid_extrapolate(hybrid_phase *phase) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    const double reach = hybrid_norm_inf(plan->n_x, at->x);
    hybrid_state *state = phase->state;
    if (!(at->raw_f < 0.0)) return 0;
    if (!(reach >= HYBRID_RAY_TEST_LARGE && reach <= HYBRID_RAY_TEST_FAR)) return 0;
    if (!hybrid_falls_outwards(plan, at)) return 0;
    if (++phase->history.outward < phase->history.outward_limit) return 0;
    phase->history.outward_limit *= 2;
    hybrid_copy(plan->n_x, state->x_undefined, phase->work);
    if (!stretch(phase)) {
        hybrid_copy(plan->n_x, phase->work, state->x_undefined); /* that far out it means nothing */
        return 0;
    }
    hybrid_swap_trials(&phase->at, &phase->trial);
    phase->now.stepped = 0;
    return 1;
}
