/* Restoration: the violation alone is reduced, until the filter takes a point again.
 *
 * First the least |c|_1 near the point, by steps of the barrier method on the elastic problem,
 * whose own parameter falls as that of the problem does. Where that leads no further, or there are more
 * equations than unknowns, the least |c|_2 (feasibility/least_squares.c). Where that leads no
 * further either, the run ends: |c|_2 is stationary, or |c|_1 was where the elastic problem ended,
 * with the elastic y as the proof; else it has stalled. */
#include <math.h>
#include <string.h>

#include "barrier/barrier.h"
#include "feasibility/feasibility.h"

/* Kinds of restoration. */
enum { ELASTIC = 1, SQUARES = 2 };

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

static double at_most(double value, double most) { return value < most ? value : most; }

/* Begins the elastic problem at the present point, with the best p and n for it. */
static void begin_elastic(hybrid_cold *outer) {
    const hybrid_plan *plan = outer->plan;
    hybrid_cold *inner = outer->inner;
    hybrid_iterate *it = &inner->now;
    hybrid_spot kept;
    double *p, *z, nu = hybrid_largest(plan->m, outer->at->of.c);
    int n = plan->n, m = plan->m;
    hybrid_make_elastic(outer);
    inner->at = &inner->spots[0];
    inner->kept = &inner->spots[1];
    inner->trial = &inner->spots[2];
    inner->bent = &inner->spots[3];
    /* The point of the problem is from now on that of the inner one. */
    kept = *inner->at->base;
    *inner->at->base = *outer->at;
    *outer->at = kept;
    outer->parked = outer->at;
    outer->at = inner->at->base;
    if (outer->now.nu > nu) nu = outer->now.nu;
    hybrid_set(n, outer->at->of.w, outer->reference);
    hybrid_set_proximity(outer, nu);
    hybrid_clear(it);
    it->nu = nu;
    it->floor = HYBRID_ELASTIC_FLOOR;
    hybrid_set(n, outer->at->of.w, inner->at->of.w);
    p = inner->at->of.w + n;
    z = it->z_lower + n;
    for (int i = 0; i < m; i++) {
        double c = outer->at->of.c[i], rho = HYBRID_ELASTIC_PENALTY;
        double half = 0.5 * (nu - rho * c) / rho;
        double other = half + sqrt(half * half + 0.5 * nu * c / rho);
        other = other > HYBRID_FORM_TINY ? other : HYBRID_FORM_TINY;
        p[m + i] = other;
        p[i] = c + other > HYBRID_FORM_TINY ? c + other : HYBRID_FORM_TINY;
        z[i] = nu / p[i];
        z[m + i] = nu / other;
        it->y[i] = it->z_upper[n + i] = it->z_upper[n + m + i] = 0.0;
    }
    for (int i = 0; i < n; i++) {
        it->z_lower[i] = at_most(outer->now.z_lower[i], HYBRID_ELASTIC_PENALTY);
        it->z_upper[i] = at_most(outer->now.z_upper[i], HYBRID_ELASTIC_PENALTY);
    }
    hybrid_lift(outer, inner->at);
    it->theta_start = inner->at->theta;
}

/* Lowers the inner barrier parameter. Returns 0 next to a stationary violation. */
static int lower(hybrid_cold *outer) {
    hybrid_cold *inner = outer->inner;
    hybrid_iterate *it = &inner->now;
    hybrid_error error;
    double nu = it->nu, violation = hybrid_largest(outer->plan->m, outer->at->of.c);
    hybrid_measure(&inner->form, &inner->at->of, it, inner->pull, &error);
    while (nu > it->floor &&
           hybrid_error_at(&error, nu) <= HYBRID_SETTINGS_KAPPA_EPSILON * nu)
        nu = hybrid_next_nu(nu, it->floor);
    if (nu == it->nu) return 1;
    if (nu <= HYBRID_ELASTIC_SMALL * (violation < 1.0 ? violation : 1.0)) return 0;
    hybrid_set_proximity(outer, nu);
    hybrid_with_barrier(it, nu);
    hybrid_lift(outer, inner->at);
    return 1;
}

/* One step of it: outer->at is the new point. Returns a status. */
static int elastic_newton(hybrid_cold *outer) {
    hybrid_cold *inner = outer->inner;
    hybrid_iterate kept;
    hybrid_spot *new;
    int status;
    if (!lower(outer)) return HYBRID_BLOCKED;
    status = hybrid_newton(inner, &inner->now);
    if (status) return status;
    kept = inner->now;
    inner->now = inner->next;
    inner->next = kept;
    new = inner->trial;
    inner->trial = inner->at;
    inner->at = new;
    outer->at = new->base;
    return HYBRID_SOLVED;
}

/* Leaves it: outer->at is one of the points of the problem again, with the same numbers. */
static void leave_elastic(hybrid_cold *outer) {
    hybrid_spot *base = outer->at, kept = *outer->parked;
    *outer->parked = *base;
    *base = kept;
    outer->at = outer->parked;
}

/* The barrier method goes on from step t: it has been restored once more. */
static void go_on(hybrid_cold *cold, int t) {
    cold->restoring = 0;
    cold->now.mark.t = t;
    cold->now.mark.rounds++;
}

/* The elastic problem has led to a point that the filter takes: new multipliers, since the old
 * ones belong to another place. */
static void end_elastic(hybrid_cold *cold) {
    const hybrid_form *form = &cold->form;
    hybrid_iterate *it = &cold->now;
    leave_elastic(cold);
    for (int i = 0; i < cold->plan->n; i++) {
        it->z_lower[i] = form->has_lower[i] ? 1.0 : 0.0;
        it->z_upper[i] = form->has_upper[i] ? 1.0 : 0.0;
    }
    memset(it->y, 0, (size_t)cold->plan->m * sizeof(double));
    it->tiny = 0;
}

/* Whether |c|_2 is, or with its subgradient y |c|_1. */
static int is_stationary(hybrid_cold *cold, const double *y) {
    return hybrid_violation_slope(&cold->form, &cold->at->of, cold->answer->J0, y, cold->W,
                                  cold->slopes) <= HYBRID_CERTIFICATE_STATIONARY_VIOLATION;
}

/* Remembers the point where the elastic problem leads no further, if |c|_1 is stationary there. */
static void look_for_proof(hybrid_cold *cold) {
    const hybrid_plan *plan = cold->plan;
    const hybrid_point *at = &cold->at->of;
    const double *y = cold->inner->now.y;
    cold->has_least =
        hybrid_largest(plan->m, at->c) > HYBRID_PACE_FEASIBLE && is_stationary(cold, y);
    if (!cold->has_least) return;
    hybrid_set(plan->n, at->w, cold->least);
    hybrid_set(plan->m, y, cold->state->infeasibility);
}

/* A step of the elastic problem. Returns HYBRID_BLOCKED where that leads no further. */
static int elastic_step(hybrid_cold *cold, int t) {
    int status = elastic_newton(cold);
    if (status == HYBRID_NOT_NEARER) return HYBRID_BLOCKED;
    if (!status && hybrid_restored(cold, cold->at)) {
        end_elastic(cold);
        go_on(cold, t);
    }
    return status;
}

/* No step reduces |c|_2: the proof of that, or else that of |c|_1, at which the run then ends. */
static int least_violation(hybrid_cold *cold, int status) {
    if (hybrid_largest(cold->plan->m, cold->at->of.c) <= HYBRID_PACE_FEASIBLE) return status;
    if (is_stationary(cold, 0)) return HYBRID_INFEASIBLE;
    if (!cold->has_least) return status;
    hybrid_set(cold->plan->n, cold->least, cold->at->of.w);
    if (hybrid_visit_problem(cold, cold->at)) return HYBRID_UNDEFINED;
    cold->state->proved = 1;
    return HYBRID_SOLVED;
}

/* A step of the search for the least |c|_2. */
static int squares_step(hybrid_cold *cold, int t) {
    int status = hybrid_root_step(cold);
    if (status == HYBRID_INFEASIBLE || status == HYBRID_STALLED) return least_violation(cold, status);
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
            leave_elastic(cold);
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
    hybrid_weigh(&cold->form, cold->at, it->nu, &cold->worth);
    hybrid_extend(&cold->worth, it);
    it->cut = it->watching = 0;
    cold->has_least = 0;
    cold->theta_began = cold->worth.theta;
    /* More equations than unknowns: their least squares are what is asked for. */
    cold->restoring = plan->m > plan->n ? SQUARES : ELASTIC;
    if (cold->restoring == ELASTIC) begin_elastic(cold);
    else hybrid_begin_root(cold, cold->theta_began);
    return hybrid_restore(cold, t + 1);
}
