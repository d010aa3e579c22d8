/* Restoration: the violation alone is reduced, as barrier/barrier.py goes about it.
 *
 *     the filter blocks  ->  the least |c|_1 near the point (elastic.c)  ->  the filter takes a point
 *                                     |  it leads no further
 *                                     v
 *     more equations than unknowns -> the least |c|_2 (root.c)           ->  the filter takes a point
 *                                     |  it leads no further
 *                                     v
 *     |c|_2 is stationary: locally infeasible.  |c|_1 was stationary where the elastic problem led no
 *     further: so is that point, with the elastic y.  Else: stalled. */
#include <math.h>
#include <string.h>

#include "cold.h"

/* Kinds of restoration. */
enum { ELASTIC = 1, SQUARES = 2 };

int hybrid_no_way_on(hybrid_cold *cold, int status, int cause) {
    cold->state->cause = cause;
    return status;
}

/* The largest factor by which a row would be scaled less with the scales of now. */
static double eased(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    double *old = cold->residual, *now = cold->penalty, found = 0.0;
    for (int i = 0; i < plan->m; i++) old[i] = now[i] = HYBRID_FORM_SCALE_GOAL;
    for (int k = 0; k < plan->kept_A; k++) {
        int row = plan->A_rows[k], of_J = plan->A_of_J[k];
        double before = fabs(cold->answer->J0[of_J]), size = fabs(cold->at->of.raw_J[of_J]);
        if (before > old[row]) old[row] = before;
        if (size > now[row]) now[row] = size;
    }
    for (int i = 0; i < plan->m; i++)
        if (old[i] / now[i] > found) found = old[i] / now[i];
    return found;
}

int hybrid_restored(const hybrid_cold *cold, const hybrid_spot *spot) {
    double phi = hybrid_phi(&cold->form, spot, cold->now.nu);
    return spot->theta <= HYBRID_ELASTIC_REDUCTION * cold->theta_began &&
           !hybrid_blocks(&cold->now, spot->theta, phi, 1.0);
}

/* The barrier method goes on from step t: it has been restored once more. */
static void go_on(hybrid_cold *cold, int t) {
    cold->restoring = 0;
    cold->now.mark.t = t;
    cold->now.mark.rounds++;
}

/* The elastic problem has led to a point that the filter takes: new multipliers, since the old ones
 * belong to another place. */
static void end_elastic(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    hybrid_iterate *it = &cold->now;
    hybrid_leave_elastic(cold);
    for (int i = 0; i < cold->plan->n; i++) {
        it->z_lower[i] = form->has_lower[i] ? 1.0 : 0.0;
        it->z_upper[i] = form->has_upper[i] ? 1.0 : 0.0;
    }
    memset(it->y, 0, (size_t)cold->plan->m * sizeof(double));
    it->tiny = 0;
}

/* Remembers the point where the elastic problem leads no further, if |c|_1 is stationary there. */
static void look_for_proof(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const double *y = cold->inner->now.y;
    cold->has_least = hybrid_largest(plan->m, at->c) > HYBRID_PACE_FEASIBLE &&
                      hybrid_violation_slope(&cold->form, at, cold->answer->J0, y, cold->W,
                                             cold->slopes) <= HYBRID_CERTIFICATE_STATIONARY_VIOLATION;
    if (!cold->has_least) return;
    hybrid_set(plan->n, at->w, cold->least);
    hybrid_set(plan->m, y, cold->state->infeasibility);
}

/* A step of the elastic problem. Returns HYBRID_BLOCKED where that leads no further. */
static int elastic_step(hybrid_cold *cold, int t) {
    int status = hybrid_elastic_step(cold);
    if (status == HYBRID_NOT_NEARER) return HYBRID_BLOCKED;
    if (!status && hybrid_restored(cold, cold->at)) {
        end_elastic(cold);
        go_on(cold, t);
    }
    return status;
}

/* No step reduces |c|_2: the proof of that, or else the one of |c|_1, at which the run then ends. */
static int no_fewer(hybrid_cold *cold, int status) {
    const hybrid_point *at = &cold->at->of;
    if (hybrid_largest(cold->plan->m, at->c) <= HYBRID_PACE_FEASIBLE) return status;
    if (hybrid_violation_slope(&cold->form, at, cold->answer->J0, 0, cold->W, cold->slopes) <=
        HYBRID_CERTIFICATE_STATIONARY_VIOLATION)
        return HYBRID_INFEASIBLE;
    if (!cold->has_least) return status;
    hybrid_set(cold->plan->n, cold->least, cold->at->of.w);
    if (hybrid_visit_problem(cold, cold->at)) return HYBRID_UNDEFINED;
    cold->state->proved = 1;
    return HYBRID_SOLVED;
}

/* A step of the search for the least |c|_2. */
static int squares_step(hybrid_cold *cold, int t) {
    int status = hybrid_root_step(cold);
    if (status == HYBRID_INFEASIBLE || status == HYBRID_STALLED) return no_fewer(cold, status);
    if (!status && !cold->root.begun) {
        hybrid_iterate kept = cold->now;
        cold->now = cold->next;
        cold->next = kept;
        go_on(cold, t);
    }
    return status;
}

int hybrid_restore(hybrid_cold *cold, int t) {
    int status = HYBRID_BLOCKED;
    if (cold->state->proved) return hybrid_no_way_on(cold, HYBRID_INFEASIBLE, HYBRID_LEAST_SUM);
    if (cold->restoring == ELASTIC) {
        status = elastic_step(cold, t);
        if (status == HYBRID_BLOCKED) {
            look_for_proof(cold);
            hybrid_leave_elastic(cold);
            cold->restoring = SQUARES;
            hybrid_begin_root(cold, cold->theta_began);
        }
    }
    if (status == HYBRID_BLOCKED) status = squares_step(cold, t);
    if (status) return status;
    cold->now.stepped = cold->now.crossed = 0;
    cold->now.t = t;
    return HYBRID_SOLVED;
}

int hybrid_begin_restoration(hybrid_cold *cold, int t) {
    const hybrid_plan *plan = cold->plan;
    hybrid_iterate *it = &cold->now;
    double size = hybrid_largest(plan->n, cold->at->of.w);
    if (cold->at->theta <= HYBRID_BARRIER_ROUNDED * (size > 1.0 ? size : 1.0))
        return hybrid_no_way_on(cold, HYBRID_STALLED, HYBRID_NO_DESCENT);
    if (cold->attempt->rescale && eased(cold) >= HYBRID_FORM_EASED)
        return hybrid_no_way_on(cold, HYBRID_STALLED, HYBRID_OTHER_SCALES);
    hybrid_hand_over(cold, HYBRID_BLOCKED); /* where the careful path begins, if it has to */
    hybrid_weigh(&cold->form, cold->at, it->nu, &cold->worth);
    hybrid_extend(&cold->worth, it);
    it->cut = it->watching = 0;
    cold->has_least = 0;
    cold->theta_began = cold->worth.theta;
    /* More equations than unknowns: their least squares are what is asked for. */
    cold->restoring = plan->m > plan->n ? SQUARES : ELASTIC;
    if (cold->restoring == ELASTIC) hybrid_begin_elastic(cold);
    else hybrid_begin_root(cold, cold->theta_began);
    return hybrid_restore(cold, t + 1);
}
