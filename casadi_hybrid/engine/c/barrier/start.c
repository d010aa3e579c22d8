/* The first iterate of the barrier method (Waechter and Biegler 2006, section 3.6), strictly inside
 * the bounds: w_i at least push*max(1, |bound|) from each, z = 1 where there is a bound, and y of
 * least squares,
 *
 *     min_y |grad f + A'y - z_lower + z_upper|. */
#include "feasibility/feasibility.h"
#include "barrier/barrier.h"

/* The first point, inside the bounds; less far where a function is not defined there. Returns a
 * status. */
static int first_point(hybrid_run *run) {
    static const double shares[] = HYBRID_BARRIER_SHARES;
    for (int k = 0; k < HYBRID_COUNT(shares); k++) {
        hybrid_set(run->plan->n, run->work, run->at->of.w);
        hybrid_push_inside(&run->form, shares[k] * run->options->push, run->at->of.w);
        if (!hybrid_visit(run, run->at)) return HYBRID_SOLVED;
    }
    return HYBRID_UNDEFINED;
}

/* The given multipliers, those of bounds at least on the central path of nu, and with a small nu
 * only where they nearly solve this problem. */
static void nearby(hybrid_run *run) {
    const hybrid_form *form = &run->form;
    const hybrid_point *at = &run->at->of;
    hybrid_iterate *it = &run->now;
    hybrid_error error;
    hybrid_multipliers_in(form, it->y, it->z_lower, it->z_upper, 0);
    hybrid_kkt_error(form, at, it, run->work, &error);
    if (hybrid_error_at(&error, 0.0) > 1.0 && it->nu < HYBRID_BARRIER_NU_FAR_OFF)
        it->nu = HYBRID_BARRIER_NU_FAR_OFF;
    hybrid_to_central_path(form, at, it);
}

int hybrid_first_iterate(hybrid_run *run) {
    const hybrid_plan *plan = run->plan;
    const hybrid_run_options *options = run->options;
    hybrid_iterate *it = &run->now;
    if (first_point(run)) return HYBRID_UNDEFINED;
    it->nu = options->nu;
    it->nu_min = options->nu_min;
    it->theta_start = run->at->theta;
    it->t = options->t0;
    hybrid_unit_multipliers(&run->form, it);
    if (run->dense)
        run->state->rows_dependent =
            hybrid_rows_are_dependent(plan, run->at->of.A, run->dense, run->sides);
    if (options->near) {
        nearby(run);
        return HYBRID_SOLVED;
    }
    hybrid_least_squares(run, &run->at->of, it->z_lower, it->z_upper, it->y);
    if (options->root && plan->m) hybrid_begin_root(run, run->at->theta);
    return HYBRID_SOLVED;
}
