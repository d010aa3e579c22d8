/* The first iterate of the barrier method, strictly inside the bounds: w_i at least
 * push*max(1, |bound|) from each, z = 1 where there is a bound, and y of least squares,
 *
 *     min_y |grad f + A'y - z_lower + z_upper|. */
#include <math.h>

#include "feasibility/feasibility.h"
#include "barrier/barrier.h"

/* Inside the bounds; less far where a function is not defined there. */
static int first_point(hybrid_cold *cold) {
    static const double shares[] = HYBRID_BARRIER_SHARES;
    for (int k = 0; k < HYBRID_BARRIER_SHARES_COUNT; k++) {
        hybrid_set(cold->plan->n, cold->work, cold->at->of.w);
        hybrid_interior(&cold->form, shares[k] * cold->attempt->push, cold->at->of.w);
        if (!hybrid_visit(cold, cold->at)) return HYBRID_SOLVED;
    }
    return HYBRID_UNDEFINED;
}

/* The given multipliers, those of bounds at least on the central path of nu, and with a small nu
 * only where they nearly solve this problem. */
static void nearby(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    const hybrid_point *at = &cold->at->of;
    hybrid_iterate *it = &cold->now;
    hybrid_error error;
    hybrid_multipliers_in(form, it->y, it->z_lower, it->z_upper, 0);
    hybrid_measure(form, at, it, cold->work, &error);
    if (hybrid_error_at(&error, 0.0) > HYBRID_BARRIER_FAR_OFF &&
        it->nu < HYBRID_BARRIER_NU_FAR_OFF)
        it->nu = HYBRID_BARRIER_NU_FAR_OFF;
    hybrid_central(form, at, it);
    it->shift = HYBRID_BARRIER_SHIFT_NEARBY;
}

int hybrid_first_iterate(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    const hybrid_plan *plan = cold->plan;
    const hybrid_attempt *attempt = cold->attempt;
    hybrid_iterate *it = &cold->now;
    int status = first_point(cold);
    if (status) return status;
    it->nu = attempt->nu;
    it->floor = attempt->floor;
    it->theta_start = cold->at->theta;
    it->t = attempt->t0;
    for (int i = 0; i < plan->n; i++) {
        it->z_lower[i] = form->has_lower[i] ? 1.0 : 0.0;
        it->z_upper[i] = form->has_upper[i] ? 1.0 : 0.0;
    }
    if (cold->dense)
        cold->state->rows_dependent =
            hybrid_rows_are_dependent(plan, cold->at->of.A, cold->dense);
    if (attempt->near) {
        nearby(cold);
        return HYBRID_SOLVED;
    }
    hybrid_least_squares(cold, &cold->at->of, it->z_lower, it->z_upper, it->y);
    if (attempt->root && plan->m) hybrid_begin_root(cold, cold->at->theta);
    return HYBRID_SOLVED;
}
