/* Restoration: the violation alone is reduced, until the filter accepts a point again.
 *
 * First the least |c|_1 near the point, by steps of the barrier method on the elastic problem
 * (Waechter and Biegler 2006, section 3.3), whose own parameter falls as that of the problem does.
 * Where that leads no further, or there are more equations than unknowns, the least |c|_2
 * (feasibility/least_squares.c). Where that leads no further either, the run ends: |c|_2 is
 * stationary, or |c|_1 was where the elastic problem ended, with the elastic y as the proof; else
 * it has stalled. */
#include <math.h>

#include "barrier/barrier.h"
#include "feasibility/feasibility.h"

/* Kinds of restoration. */
enum { ELASTIC = 1, SQUARES = 2 };

/* Begins the elastic problem at the present point, with the minimizing p and n for it (Waechter and
 * Biegler 2006, section 3.3). */
static void begin_elastic(hybrid_run *outer) {
    const hybrid_plan *plan = outer->plan;
    hybrid_run *inner = outer->elastic.inner;
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
static int update_elastic_nu(hybrid_run *outer) {
    hybrid_run *inner = outer->elastic.inner;
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
static void leave_elastic(hybrid_run *outer) {
    hybrid_trial *base = outer->at, saved = *outer->elastic.saved_base;
    *outer->elastic.saved_base = *base;
    *base = saved;
    outer->at = outer->elastic.saved_base;
}

/* The barrier method goes on from step t after a restoration. */
static void end_restoration(hybrid_run *run, int t) {
    run->restoring = 0;
    run->now.reference.t = t;
    run->now.reference.rounds++;
}

/* Remembers the point where the elastic problem leads no further, if |c|_1 is stationary there. */
static void look_for_proof(hybrid_run *run) {
    const hybrid_plan *plan = run->plan;
    const hybrid_point *at = &run->at->of;
    const double *y = run->elastic.inner->now.y;
    run->search.has_least =
        hybrid_norm_inf(plan->m, at->c) > HYBRID_FEASIBLE_C && hybrid_is_stationary(run, y);
    if (!run->search.has_least) return;
    hybrid_copy(plan->n, at->w, run->search.least);
    hybrid_copy(plan->m, y, run->state->infeasibility);
}

/* A step of the elastic problem. It ends if the filter accepts the point. The multipliers are new
 * then, since the old ones belong to a point far from it. Returns HYBRID_BLOCKED if it leads no
 * further. */
static int elastic_step(hybrid_run *run, int t) {
    hybrid_run *inner = run->elastic.inner;
    int status;
    inner->now.t = t;
    status = update_elastic_nu(run) ? hybrid_newton_step(inner, &inner->now) : HYBRID_BLOCKED;
    if (status) return status == HYBRID_NOT_NEARER ? HYBRID_BLOCKED : status;
    hybrid_accept_next(inner);
    hybrid_swap_trials(&inner->at, &inner->trial);
    run->at = inner->at->base;
    if (!hybrid_is_restored(run, run->at)) return HYBRID_SOLVED;
    leave_elastic(run);
    hybrid_equal_multipliers(&run->form, 1.0, &run->now);
    hybrid_zero(run->plan->m, run->now.y);
    run->now.tiny = 0;
    end_restoration(run, t);
    return HYBRID_SOLVED;
}

/* No step reduces |c|_2: the proof of that, or else that of |c|_1, at which the run then ends. */
static int least_violation(hybrid_run *run, int status) {
    if (hybrid_norm_inf(run->plan->m, run->at->of.c) <= HYBRID_FEASIBLE_C) return status;
    if (status == HYBRID_INFEASIBLE && hybrid_is_stationary(run, 0)) return status;
    if (!run->search.has_least) return status;
    hybrid_copy(run->plan->n, run->search.least, run->at->of.w);
    if (hybrid_evaluate_problem(run, run->at)) return HYBRID_UNDEFINED;
    run->state->proved = 1;
    return HYBRID_SOLVED;
}

/* A step of the search for the least |c|_2. */
static int squares_step(hybrid_run *run, int t) {
    int status = hybrid_least_squares_step(run);
    if (status == HYBRID_INFEASIBLE || status == HYBRID_STALLED)
        return least_violation(run, status);
    if (!status && !run->search.begun) {
        hybrid_accept_next(run);
        end_restoration(run, t);
    }
    return status;
}

int hybrid_restoration_step(hybrid_run *run) {
    const int t = run->now.t + 1;
    int status = HYBRID_BLOCKED;
    if (run->state->proved) return hybrid_fail(run, HYBRID_INFEASIBLE, HYBRID_LEAST_SUM);
    if (run->restoring == ELASTIC) {
        status = elastic_step(run, t);
        if (status == HYBRID_BLOCKED) {
            look_for_proof(run);
            leave_elastic(run);
            run->restoring = SQUARES;
            hybrid_begin_least_squares(run, run->elastic.theta_began);
        }
    }
    if (status == HYBRID_BLOCKED) status = squares_step(run, t);
    if (status) return status;
    run->now.stepped = run->now.curved = 0;
    run->now.t = t;
    return HYBRID_SOLVED;
}

int hybrid_begin_restoration(hybrid_run *run) {
    const hybrid_plan *plan = run->plan;
    hybrid_iterate *it = &run->now;
    double size = hybrid_norm_inf(plan->n, run->at->of.w);
    if (run->at->theta <= HYBRID_RESTORATION_THETA_ROUNDING * hybrid_max(size, 1.0))
        return hybrid_fail(run, HYBRID_STALLED, HYBRID_NO_DESCENT);
    hybrid_filter_pair_at(&run->form, run->at, it->nu, &run->pair);
    hybrid_filter_add(&run->pair, it);
    it->cut = 0;
    run->search.has_least = 0;
    run->elastic.theta_began = run->pair.theta;
    /* More equations than unknowns: their least squares are what is wanted. */
    run->restoring = plan->m > plan->n ? SQUARES : ELASTIC;
    if (run->restoring == ELASTIC) begin_elastic(run);
    else hybrid_begin_least_squares(run, run->elastic.theta_began);
    return hybrid_restoration_step(run);
}
