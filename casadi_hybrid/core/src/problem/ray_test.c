/* The proof by iterates that run away that f falls without bound.
 *
 * Beyond |x| = 1e10 a feasible point with f < 0 that falls outwards is the proof, on two
 * conditions. No finite bound of a variable or a row lies ahead on the ray through the point. And f
 * is still lower at |x| = 1e20, outside the range of numbers in use.
 *
 * Feasible means within 1e-2 at most. Further out rounding alone may exceed that. Then a point
 * counts that is feasible to 100 u of the terms of each row, if a nearer one was feasible with a
 * larger f. That one has |x| >= 1e3, where constants are not yet lost in rounding. Infeasible
 * problems do not have one.
 *
 * Residuals within the tolerances are no argument against the proof: f may fall ever more slowly.
 * Such a point is a solution only if the iterates have come to rest, |x| <= |x before|, or if f
 * does not fall any more in proportion to x, -grad f'x < 0.01 |f|. Iterates that go on outwards
 * beyond 1e10 and prove nothing diverge. */
#include <math.h>

#include "problem/problem.h"

int hybrid_falls_outwards(const hybrid_plan *plan, const hybrid_point *at) {
    double along = hybrid_dot(plan->n_x, at->raw_gradient, at->x);
    return -along >= HYBRID_RAY_TEST_SLOPE * fabs(at->raw_f);
}

int hybrid_is_feasible(const hybrid_plan *plan, const hybrid_numbers *of, const hybrid_point *at,
                       double cap, double *sizes) {
    if (!(hybrid_max_violation(plan->n_x, at->x, of->lbx, of->ubx) <= HYBRID_FEASIBLE_C)) return 0;
    hybrid_row_sizes(plan, at, sizes);
    for (int i = 0; i < plan->n_g; i++) {
        double room = HYBRID_RESIDUALS_ROUNDING * sizes[i];
        room = hybrid_clamp(room, HYBRID_FEASIBLE_C, cap);
        double over = hybrid_max(at->raw_g[i] - of->ubg[i], of->lbg[i] - at->raw_g[i]);
        if (!(over <= room)) return 0;
    }
    return 1;
}

/* Returns whether the ray from x outwards ends: at a finite bound of a variable or a row ahead, or
 * where f is no lower any more. A row counts if it changes along the ray about as fast as x can
 * change it. A curved row counts only if its bound is that far away, since iterates may follow it
 * outwards. Functions that are not defined far out say nothing. `far` is overwritten; `steep`: n_g
 * numbers. */
static int ray_ends(hybrid_form *form, const hybrid_point *at, double reach, hybrid_point *far,
                    double *steep) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *of = form->numbers;
    const double least = HYBRID_RAY_TEST_MOVED * reach, *x = at->x;
    const double factor = hybrid_max(HYBRID_RAY_TEST_END / reach, 2.0);
    double *along = far->raw_g;
    int defined;
    for (int i = 0; i < plan->n_x; i++) {
        if (fabs(x[i]) > least && isfinite(x[i] < 0.0 ? of->lbx[i] : of->ubx[i])) return 1;
        far->x[i] = hybrid_clamp(x[i] * factor, of->lbx[i], of->ubx[i]);
    }
    defined = !hybrid_call_first(form, far);
    if (defined ? !(far->raw_f < at->raw_f) : hybrid_is_ended(form->functions)) return 1;
    for (int i = 0; i < plan->n_g; i++) along[i] = steep[i] = 0.0;
    for (int k = 0; k < plan->nnz_J; k++) {
        const int i = plan->J_rows[k];
        along[i] += at->raw_J[k] * x[plan->J_cols[k]];
        steep[i] = hybrid_max(steep[i], fabs(at->raw_J[k]));
    }
    for (int k = 0; k < plan->nnz_J; k++) /* curved rows: a minus sign */
        if (!defined || far->raw_J[k] != at->raw_J[k])
            steep[plan->J_rows[k]] = -fabs(steep[plan->J_rows[k]]);
    for (int i = 0; i < plan->n_g; i++) {
        const double bound = along[i] < 0.0 ? of->lbg[i] : of->ubg[i];
        const double least_of_row = fabs(steep[i]) * least;
        if (fabs(along[i]) > least_of_row && isfinite(bound) &&
            (steep[i] > 0.0 || fabs(bound - at->raw_g[i]) > least_of_row))
            return 1;
    }
    return 0;
}

int hybrid_ray_test(hybrid_form *form, const hybrid_point *at, double merit, double *sizes,
                    hybrid_point *far, hybrid_ray *ray) {
    const hybrid_plan *plan = form->plan;
    const hybrid_numbers *numbers = form->numbers;
    const double reach = hybrid_norm_inf(plan->n_x, at->x), before = ray->reach;
    ray->reach = reach;
    if (reach < HYBRID_RAY_TEST_LARGE) return HYBRID_SOLVED;
    if (merit <= 1.0 && !(hybrid_falls_outwards(plan, at) && reach > before)) return HYBRID_SOLVED;
    if (at->raw_f < 0.0) {
        int met = hybrid_is_feasible(plan, numbers, at, HYBRID_RAY_TEST_VIOLATION, sizes);
        if (met) ray->least = hybrid_min(at->raw_f, ray->least);
        else if (at->raw_f < ray->least && ray->least < INFINITY)
            met = hybrid_is_feasible(plan, numbers, at, INFINITY, sizes);
        if (met && reach > HYBRID_RAY_TEST_FAR && hybrid_falls_outwards(plan, at) &&
            !ray_ends(form, at, reach, far, sizes))
            return HYBRID_UNBOUNDED;
    }
    ray->beyond = reach > HYBRID_RAY_TEST_FAR && reach >= before ? ray->beyond + 1 : 0;
    return ray->beyond > HYBRID_RAY_TEST_STEPS ? HYBRID_DIVERGED : HYBRID_SOLVED;
}

int hybrid_divergence_test(const hybrid_plan *plan, const hybrid_numbers *numbers,
                           const hybrid_point *at, double limit, double *sizes) {
    if (at->raw_f < -limit &&
        hybrid_is_feasible(plan, numbers, at, HYBRID_RAY_TEST_VIOLATION, sizes))
        return HYBRID_UNBOUNDED;
    return hybrid_norm_inf(plan->n_x, at->x) > limit ? HYBRID_DIVERGED : HYBRID_SOLVED;
}
