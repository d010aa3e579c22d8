/* Restoration: the violation alone is reduced, until the filter accepts a point again.
 *
 * First |c|_1 is reduced near the point, by steps of the barrier method on the elastic problem
 * (Waechter and Biegler 2006, section 3.3). Its own parameter falls as that of the problem does.
 * If that leads no further, or there are more equations than unknowns, |c|_2 is reduced
 * (feasibility/least_squares.c). If that leads no further either, the phase ends with a proof or
 * has stalled. The proof is a stationary |c|_2, or |c|_1 that was stationary where the elastic
 * problem ended, with the elastic y. */
#include <math.h>

#include "barrier/barrier.h"
#include "feasibility/feasibility.h"

/* Kinds of restoration. */
enum { ELASTIC = 1, SQUARES = 2 };

/* Begins the elastic problem at the present point, with the minimizing p and n for it (Waechter and
 * Biegler 2006, section 3.3). */
static void begin_elastic(hybrid_phase *outer) {
    const hybrid_plan *plan = outer->plan;
    hybrid_phase *inner = outer->elastic.inner;
    hybrid_iterate *it = &inner->now;
    hybrid_trial saved;
    double *p, *z, nu = hybrid_norm_inf(plan->m, outer->at->of.c);
    int n = plan->n, m = plan->m;
    hybrid_make_elastic(outer);
    inner->at = &inner->trials[0];
    inner->trial = &inner->trials[1];
    inner->corrected = &inner->trials[2];
    /* The point of the problem is from now on that of the inner one. */
    saved = *inner->at->base;
    *inner->at->base = *outer->at;
    *outer->at = saved;
    outer->elastic.saved_base = outer->at;
    outer->at = inner->at->base;
    if (outer->now.nu > nu) nu = outer->now.nu;
    hybrid_copy(n, outer->at->of.w, outer->elastic.reference);
    hybrid_set_proximity(outer, nu);
    hybrid_clear_iterate(it);
    it->nu = nu;
    it->nu_min = outer->now.nu_min;
    hybrid_copy(n, outer->at->of.w, inner->at->of.w);
    p = inner->at->of.w + n;
    z = it->z_lower + n;
    for (int i = 0; i < m; i++) {
        double c = outer->at->of.c[i], rho = HYBRID_ELASTIC_RHO;
        double half = 0.5 * (nu - rho * c) / rho;
        double other = half + sqrt(half * half + 0.5 * nu * c / rho);
        other = other > HYBRID_DIVISOR_TINY ? other : HYBRID_DIVISOR_TINY;
        p[m + i] = other;
        p[i] = c + other > HYBRID_DIVISOR_TINY ? c + other : HYBRID_DIVISOR_TINY;
        z[i] = nu / p[i];
        z[m + i] = nu / other;
        it->y[i] = it->z_upper[n + i] = it->z_upper[n + m + i] = 0.0;
    }
    for (int i = 0; i < n; i++) {
        it->z_lower[i] = hybrid_min(outer->now.z_lower[i], HYBRID_ELASTIC_RHO);
        it->z_upper[i] = hybrid_min(outer->now.z_upper[i], HYBRID_ELASTIC_RHO);
    }
    hybrid_evaluate_elastic(outer, inner->at);
    it->theta_start = inner->at->theta;
}

/* Lowers the barrier parameter of the elastic problem. Returns 0 next to a stationary violation,
 * and where its steps make no progress any more. */
static int update_elastic_nu(hybrid_phase *outer) {
    hybrid_phase *inner = outer->elastic.inner;
    hybrid_iterate *it = &inner->now;
    hybrid_error error;
    double nu = it->nu, violation = hybrid_norm_inf(outer->plan->m, outer->at->of.c);
    hybrid_kkt_error(&inner->form, &inner->at->of, it, inner->Aty, &error);
    while (nu > it->nu_min && hybrid_error_at(&error, nu) <= HYBRID_BARRIER_KAPPA_EPSILON * nu)
        nu = hybrid_next_nu(nu, it->nu_min);
    if (nu == it->nu) {
        hybrid_mark_progress(it, inner->at->theta, inner->at->of.f, hybrid_error_at(&error, nu));
        return it->t - it->reference.t < HYBRID_PROGRESS_STEPS;
    }
    if (nu <= HYBRID_ELASTIC_NU_END * hybrid_min(violation, 1.0)) return 0;
    hybrid_set_proximity(outer, nu);
    hybrid_set_barrier(it, nu);
    hybrid_evaluate_elastic(outer, inner->at);
    return 1;
}

/* Leaves the elastic problem: outer->at is one of the points of the problem again, with the same
 * numbers. */
static void leave_elastic(hybrid_phase *outer) {
    hybrid_trial *base = outer->at, saved = *outer->elastic.saved_base;
    *outer->elastic.saved_base = *base;
    *base = saved;
    outer->at = outer->elastic.saved_base;
}

/* The barrier method goes on from step t after a restoration. */
static void end_restoration(hybrid_phase *phase, int t) {
    phase->restoring = 0;
    phase->now.reference.t = t;
    phase->now.reference.rounds++;
}

/* Remembers the point where the elastic problem leads no further, if |c|_1 is stationary there. */
static void look_for_proof(hybrid_phase *phase) {
    const hybrid_plan *plan = phase->plan;
    const hybrid_point *at = &phase->at->of;
    const double *y = phase->elastic.inner->now.y;
    phase->search.has_least =
        hybrid_norm_inf(plan->m, at->c) > HYBRID_FEASIBLE_C && hybrid_is_stationary(phase, y);
    if (!phase->search.has_least) return;
    hybrid_copy(plan->n, at->w, phase->search.least);
    hybrid_copy(plan->m, y, phase->state->infeasibility);
}

/* A step of the elastic problem. It ends if the filter accepts the point. The multipliers are new
 * then, since the old ones belong to a point far from it. Returns HYBRID_BLOCKED if it leads no
 * further. */
static int elastic_step(hybrid_phase *phase, int t) {
    hybrid_phase *inner = phase->elastic.inner;
    int status;
    inner->now.t = t;
    status = update_elastic_nu(phase) ? hybrid_newton_step(inner, &inner->now) : HYBRID_BLOCKED;
    if (status) return status == HYBRID_NOT_NEARER ? HYBRID_BLOCKED : status;
    hybrid_accept_next(inner);
    hybrid_swap_trials(&inner->at, &inner->trial);
    phase->at = inner->at->base;
    if (!hybrid_is_restored(phase, phase->at)) return HYBRID_SOLVED;
    leave_elastic(phase);
    hybrid_equal_multipliers(&phase->form, 1.0, &phase->now);
    hybrid_zero(phase->plan->m, phase->now.y);
    phase->now.tiny = 0;
    end_restoration(phase, t);
    return HYBRID_SOLVED;
}

/* No step reduces |c|_2: ends the phase with the proof of that, or else with that of |c|_1. */
static int least_violation(hybrid_phase *phase, int status) {
    if (hybrid_norm_inf(phase->plan->m, phase->at->of.c) <= HYBRID_FEASIBLE_C) return status;
    if (status == HYBRID_INFEASIBLE && hybrid_is_stationary(phase, 0)) return status;
    if (!phase->search.has_least) return status;
    hybrid_copy(phase->plan->n, phase->search.least, phase->at->of.w);
    if (hybrid_evaluate_problem(phase, phase->at)) return HYBRID_UNDEFINED;
    phase->state->proved = 1;
    return HYBRID_SOLVED;
}

/* A step of the search for the least |c|_2. */
static int squares_step(hybrid_phase *phase, int t) {
    int status = hybrid_least_squares_step(phase);
    if (status == HYBRID_INFEASIBLE || status == HYBRID_STALLED)
        return least_violation(phase, status);
    if (!status && !phase->search.begun) {
        hybrid_accept_next(phase);
        end_restoration(phase, t);
    }
    return status;
}

int hybrid_restoration_step(hybrid_phase *phase) {
    const int t = phase->now.t + 1;
    int status = HYBRID_BLOCKED;
    if (phase->state->proved) return hybrid_fail(phase, HYBRID_INFEASIBLE, HYBRID_LEAST_SUM);
    if (phase->restoring == ELASTIC) {
        status = elastic_step(phase, t);
        if (status == HYBRID_BLOCKED) {
            look_for_proof(phase);
            leave_elastic(phase);
            phase->restoring = SQUARES;
            hybrid_begin_least_squares(phase, phase->elastic.theta_began);
        }
    }
    if (status == HYBRID_BLOCKED) status = squares_step(phase, t);
    if (status) return status;
    phase->now.stepped = phase->now.curved = 0;
    phase->now.t = t;
    return HYBRID_SOLVED;
}

int hybrid_begin_restoration(hybrid_phase *phase) {
    const hybrid_plan *plan = phase->plan;
    hybrid_iterate *it = &phase->now;
    double size = hybrid_norm_inf(plan->n, phase->at->of.w);
    if (phase->at->theta <= HYBRID_RESTORATION_THETA_ROUNDING * hybrid_max(size, 1.0))
        return hybrid_fail(phase, HYBRID_STALLED, HYBRID_NO_DESCENT);
    hybrid_filter_pair_at(&phase->form, phase->at, it->nu, &phase->pair);
    hybrid_filter_add(&phase->pair, it);
    it->cut = 0;
    phase->search.has_least = 0;
    phase->elastic.theta_began = phase->pair.theta;
    /* More equations than unknowns: their least squares are what is wanted. */
    phase->restoring = plan->m > plan->n ? SQUARES : ELASTIC;
    if (phase->restoring == ELASTIC) begin_elastic(phase);
    else hybrid_begin_least_squares(phase, phase->elastic.theta_began);
    return hybrid_restoration_step(phase);
}
